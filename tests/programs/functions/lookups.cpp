// SPDX-License-Identifier: Apache-2.0
// A program that looks something up ahead of every launch: lookups WHAT. What it finds is printed
// once; the value depends on every launch.
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .global .u32 table[8];
.visible .entry step(.param .u64 p, .param .u32 n) {
  .reg .u64 %a; .reg .u32 %v, %n;
  ld.param.u64 %a, [p]; ld.param.u32 %n, [n];
  ld.global.u32 %v, [%a]; mad.lo.u32 %v, %v, 3, %n; st.global.u32 [%a], %v; ret;
}
.visible .entry idle(.param .u64 p) { ret; }
)";

CUmodule g_module;
CUlibrary g_library;
CUkernel g_kernel;
CUfunction g_step, g_idle;

int look_up(const std::string& what) {
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int value = 0;
  if (what == "function") {
    CHECK(cuModuleGetFunction(&function, g_module, "step"));
    return function == g_step;
  }
  if (what == "missing") return cuModuleGetFunction(&function, g_module, "no such name");
  if (what == "kernel") {
    CHECK(cuKernelGetFunction(&function, g_kernel));
    return function != nullptr;
  }
  if (what == "library_global") {
    CHECK(cuLibraryGetGlobal(&address, &bytes, g_library, "table"));
    return static_cast<int>(bytes);
  }
  if (what == "attribute") {
    CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, g_step));
    return value;
  }
  if (what == "attribute_of_another") {
    CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, g_idle));
    return value;
  }
  if (what == "attribute_of_a_kernel") {
    CHECK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, g_kernel, 0));
    return value;
  }
  if (what == "occupancy") {
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, g_idle, 128, 0));
    return value;
  }
  return 0;  // nothing: what the others are compared with
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  tiny::start();
  CHECK(cuModuleLoadData(&g_module, kPtx));
  CHECK(cuModuleGetFunction(&g_step, g_module, "step"));
  CHECK(cuModuleGetFunction(&g_idle, g_module, "idle"));
  CHECK(cuLibraryLoadData(&g_library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&g_kernel, g_library, "idle"));
  std::printf("%d\n", look_up(arguments[1]));
  unsigned sum = 0;
  for (unsigned round = 0; round < 50; ++round) {
    for (unsigned i = 0; i < 8; ++i) {
      look_up(arguments[1]);
      unsigned n = round + i;
      void* parameters[] = {&tiny::g_cell, &n};
      CHECK(cuLaunchKernel(g_step, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    }
    sum = sum * 31 + tiny::cell();
  }
  std::printf("%u\n", sum);
}
