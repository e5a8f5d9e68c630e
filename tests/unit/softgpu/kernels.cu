// SPDX-License-Identifier: Apache-2.0
// Device code of the softgpu tests, built to PTX and to fatbins of every kind (meson.build).
#include <cstdio>

struct Mixed {
  char first;
  double second;
  short third;
};

extern "C" {

__device__ int counter = 41;
__device__ int* counter_address = &counter;
__constant__ float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};
__managed__ int shared_count = 7;

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void nothing() {}

// Parameters of all alignments: what is written shows that each was read from its own place.
__global__ void mixed_parameters(char a, double b, short c, Mixed d, long long e, double* out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d.first + d.second + d.third;
  out[4] = static_cast<double>(e);
}

__global__ void read_variables(float* out) {
  counter += 1;
  shared_count += 1;
  out[0] = static_cast<float>(*counter_address);
  for (int i = 0; i < 4; ++i) out[1 + i] = table[i];
}

// Reverses one block through dynamic shared memory; a static array is there for the attributes.
__global__ void reverse_block(int* data) {
  __shared__ int fixed[64];
  extern __shared__ int dynamic[];
  const int i = threadIdx.x, last = blockDim.x - 1;
  dynamic[i] = data[i];
  fixed[i % 64] = i;
  __syncthreads();
  data[i] = dynamic[last - i] + fixed[i % 64] - i % 64;
}

__global__ void __launch_bounds__(64) bounded(int* out) {
  out[threadIdx.x] = threadIdx.x;
}

__global__ void say(int value) {
  printf("value %d of thread %d\n", value, threadIdx.x);
}

__global__ void fault(int* out) {
  out[1 << 20] = 1;
}
}
