// SPDX-License-Identifier: Apache-2.0
// Needs linked_b.cu. Both have private symbols of the same names.
extern __device__ int exchanged;
extern __device__ int combine(int value);

static __device__ int hidden = 100;
static __device__ __noinline__ int helper(int value) {
  return value + hidden;
}

extern "C" __global__ void linked(int* out) {
  exchanged += 1;
  out[0] = combine(helper(threadIdx.x));
  out[1] = exchanged;
}
