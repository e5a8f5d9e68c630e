// SPDX-License-Identifier: Apache-2.0
// A library that sets an attribute of its function ahead of every launch, beside a stream that has
// nothing to do with it: settings WAY. `same` sets one value of a function that is launched in a
// way that is never queued, `other` sets another each time, `cache` prefers one cache each time.
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry own(.param .u64 p) { ret; }
)";

void launch_with_priority(CUfunction function, CUstream stream) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* arguments[] = {&tiny::g_cell};
  CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string way = arguments[1];
  tiny::start();
  CUmodule module;
  CUfunction own;
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&own, module, "own"));
  CUstream librarys, programs;
  CHECK(cuStreamCreate(&librarys, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&programs, CU_STREAM_NON_BLOCKING));
  if (way == "other") CHECK(cuFuncLoad(own));
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 10; ++i) {
      tiny::bump(1, programs);
      if (way == "cache") {
        CHECK(cuFuncSetCacheConfig(own, CU_FUNC_CACHE_PREFER_L1));
      } else {
        const int bytes = way == "other" ? 1024 + i : 4096;
        CHECK(cuFuncSetAttribute(own, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
      }
      launch_with_priority(own, librarys);
    }
    CHECK(cuCtxSynchronize());
  }
  std::printf("%u\n", tiny::cell());
}
