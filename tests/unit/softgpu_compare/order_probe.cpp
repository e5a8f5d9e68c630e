// SPDX-License-Identifier: Apache-2.0
// A program of two streams that planted_test runs for its trace: as it should be ("whole"), or with
// one fault that a preload library could commit. Every variant makes the same calls in each stream
// but for its fault.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 word, .param .u32 value) {
  .reg .b64 %rd<3>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [word]; ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

void require(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "order_probe: %s returned %d\n", what, static_cast<int>(code));
  std::exit(2);
}
#define REQUIRE_OK(call) require(call, #call)

CUfunction load_store() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE_OK(cuInit(0));
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE_OK(cuCtxSetCurrent(context));
  REQUIRE_OK(cuModuleLoadData(&module, kPtx));
  REQUIRE_OK(cuModuleGetFunction(&function, module, "store"));
  return function;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "whole";
  const CUfunction store = load_store();
  CUstream blocking = nullptr, other = nullptr;
  CUdeviceptr words = 0;
  REQUIRE_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  REQUIRE_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuMemAlloc(&words, 256));
  const auto launch = [&](CUstream stream, CUdeviceptr word, unsigned value) {
    void* arguments[] = {&word, &value};
    REQUIRE_OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  };
  const auto clear = [&] { REQUIRE_OK(cuMemsetD32Async(words, 0, 16, CU_STREAM_LEGACY)); };

  // A legacy memset comes after the blocking stream's launch.
  if (fault == "legacy") clear();
  launch(blocking, words, fault == "argument" ? 2 : 1);
  if (fault != "legacy") clear();

  // The host sees the launch before it submits to the other stream.
  if (fault == "early-wait") REQUIRE_OK(cuStreamSynchronize(blocking));
  launch(blocking, words + 64, 3);
  if (fault == "twice") launch(blocking, words + 64, 3);
  if (fault != "early-wait" && fault != "no-wait") REQUIRE_OK(cuStreamSynchronize(blocking));
  if (fault != "dropped") launch(other, words + 64, 4);

  // A result in memory that no other operation touches.
  if (fault == "early-query") {
    while (cuStreamQuery(other) != CUDA_SUCCESS) {
    }
  }
  launch(other, words + 128, 5);
  if (fault != "early-query") {
    while (cuStreamQuery(other) != CUDA_SUCCESS) {
    }
  }
  REQUIRE_OK(cuCtxSynchronize());
  return 0;
}
