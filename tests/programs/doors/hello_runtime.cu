// SPDX-License-Identifier: Apache-2.0
// The smallest <<<>>> program, for the look-ups that NVIDIA's runtime makes. Where the driver is
// not NVIDIA's the runtime gives up during its start; the program says so and succeeds.
#include <cstdio>

__global__ void set_one(int* value) {
  *value = 1;
}

int main() {
  int* device = nullptr;
  cudaError_t error = cudaMalloc(&device, sizeof *device);
  if (error == cudaSuccess) {
    set_one<<<1, 1>>>(device);
    int value = 0;
    error = cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess && value != 1) return 1;
  }
  std::printf("%s\n", cudaGetErrorName(error));
  return 0;
}
