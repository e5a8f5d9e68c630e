// SPDX-License-Identifier: Apache-2.0
// The other half of linked_a.cu.
__device__ int exchanged = 10;

static __device__ int hidden = 3;
static __device__ __noinline__ int helper(int value) {
  return value * hidden;
}

__device__ int combine(int value) {
  return helper(value) + exchanged;
}
