// SPDX-License-Identifier: Apache-2.0
// A plugin that uses CUDA and is unloaded with launches pending, their arguments in its own data.
#include <cuda.h>

namespace {
CUdeviceptr g_memory;
unsigned g_multiply, g_add;
int g_count;
void* g_parameters[] = {&g_memory, &g_multiply, &g_add, &g_count};
}  // namespace

extern "C" [[gnu::visibility("default")]] CUresult plugin_launch(CUfunction affine, CUstream stream,
                                                                 CUdeviceptr memory, unsigned add) {
  g_memory = memory;
  g_multiply = 3;
  g_add = add;
  g_count = 64;
  const CUresult result =
      cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, stream, g_parameters, nullptr);
  g_memory = 0;
  g_multiply = g_add = 0xdead;
  return result;
}
