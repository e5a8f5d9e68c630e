// SPDX-License-Identifier: Apache-2.0
// One function under two handles: aliases SET LAUNCH. The attribute is set through one, kernel or
// function, and launches through the other see it: what asks for more than it allows is refused.
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

struct Handles {
  CUkernel kernel;
  CUfunction function;
};

void allow(const Handles& of, const std::string& way, int bytes) {
  const auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK(way == "kernel" ? cuKernelSetAttribute(attribute, bytes, of.kernel, 0)
                        : cuFuncSetAttribute(of.function, attribute, bytes));
}

CUresult launch(const Handles& of, const std::string& way, unsigned shared_bytes, CUstream stream) {
  unsigned by = 1;
  void* arguments[] = {&tiny::g_cell, &by};
  const CUfunction function =
      way == "kernel" ? reinterpret_cast<CUfunction>(of.kernel) : of.function;
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, shared_bytes, stream, arguments, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string set_by = arguments[1], launched_by = arguments[2];
  tiny::start();
  CUlibrary library;
  Handles bump;
  CHECK(cuLibraryLoadData(&library, tiny::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&bump.kernel, library, "bump"));
  CHECK(cuKernelGetFunction(&bump.function, bump.kernel));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int bytes : {65536, 1024, 65536, 65536, 512}) {
    allow(bump, set_by, bytes);
    for (unsigned round = 0; round < 3; ++round) {
      for (unsigned asked : {256u, 512u, 2048u, 60000u}) {
        std::printf(" %d", launch(bump, launched_by, asked, stream));
      }
      CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuStreamSynchronize(stream));  // the copy would not wait for it
    std::printf(" allowed %d: %u\n", bytes, tiny::cell());
  }
}
