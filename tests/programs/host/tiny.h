// SPDX-License-Identifier: Apache-2.0
// The smallest CUDA work there is, for programs whose point is something else: one kernel that adds
// to one cell of device memory. A failed call ends the program with status 90. One thread.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                      \
  do {                                                                                   \
    const CUresult result_ = (call);                                                     \
    if (result_ != CUDA_SUCCESS) {                                                       \
      std::fprintf(stderr, "%s:%d %s -> %d\n", __FILE__, __LINE__, #call, int{result_}); \
      std::_Exit(90);                                                                    \
    }                                                                                    \
  } while (false)

namespace tiny {

inline constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 p, .param .u32 by) {
  .reg .u64 %a; .reg .u32 %v, %b;
  ld.param.u64 %a, [p]; ld.param.u32 %b, [by];
  ld.global.u32 %v, [%a]; add.u32 %v, %v, %b; st.global.u32 [%a], %v; ret;
})";

inline CUcontext g_context;
inline CUfunction g_bump;
inline CUdeviceptr g_cell;

// Everything up to a cell that holds 0, in the primary context of device 0.
inline void start() {
  CUdevice device;
  CUmodule module;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&g_context, device));
  CHECK(cuCtxSetCurrent(g_context));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&g_bump, module, "bump"));
  CHECK(cuMemAlloc(&g_cell, 4));
  CHECK(cuMemsetD32(g_cell, 0, 1));
  CHECK(cuCtxSynchronize());  // a non-blocking stream does not wait for the legacy one's memset
}

// One launch; the cell grows by `by`.
inline void bump(unsigned by, CUstream stream = nullptr) {
  void* arguments[] = {&g_cell, &by};
  CHECK(cuLaunchKernel(g_bump, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
}

// Waits for the legacy stream.
inline unsigned cell() {
  unsigned value;
  CHECK(cuMemcpyDtoH(&value, g_cell, 4));
  return value;
}

}  // namespace tiny
