// SPDX-License-Identifier: Apache-2.0
// An iterative solver with a hidden wait, the example of docs/profile.md: `solver EVERY [STEPS]`
// reads the residual back every EVERY steps, and ends after STEPS (2,000) of them.
#include "tests/programs/profile/check.h"

namespace {

constexpr int kUsualSteps = 2000;
constexpr unsigned kCells = 256;

// cell = cell * 0.5 + 1, so that all end at 2.
constexpr const char* kRelax = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry relax(.param .u64 cells) {
  .reg .b32 %r<2>;
  .reg .f32 %f<2>;
  .reg .b64 %d<3>;
  ld.param.u64 %d0, [cells];
  cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.s64 %d2, %d0, %d1;
  ld.global.f32 %f0, [%d2];
  fma.rn.f32 %f1, %f0, 0f3F000000, 0f3F800000;
  st.global.f32 [%d2], %f1;
  ret;
})";

[[gnu::noinline]] float read_residual(CUdeviceptr cells) {
  float cell = 0;
  CHECK(cuMemcpyDtoH(&cell, cells, sizeof cell));
  return 2.0F - cell;
}

[[gnu::noinline]] float solve(CUfunction relax, CUdeviceptr cells, int every, int steps) {
  float residual = 2;
  void* arguments[] = {&cells};
  for (int step = 1; step <= steps; ++step) {
    CHECK(cuLaunchKernel(relax, 1, 1, 1, kCells, 1, 1, 0, nullptr, arguments, nullptr));
    if (step % every == 0) residual = read_residual(cells);
  }
  return residual;
}

}  // namespace

int main(int count, char** arguments) {
  const int every = count > 1 ? atoi(arguments[1]) : 1;
  const int steps = count > 2 ? atoi(arguments[2]) : kUsualSteps;
  if (every < 1 || steps < 1) {
    fprintf(stderr, "usage: solver EVERY [STEPS]: the steps between two readings, and in all\n");
    return 2;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction relax = nullptr;
  CUdeviceptr cells = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kRelax));
  CHECK(cuModuleGetFunction(&relax, module, "relax"));
  CHECK(cuMemAlloc(&cells, kCells * sizeof(float)));
  CHECK(cuMemsetD32(cells, 0, kCells));
  const float residual = solve(relax, cells, every, steps);
  CHECK(cuMemFree(cells));
  return residual > 1e-6F ? 1 : 0;
}
