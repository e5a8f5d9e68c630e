// SPDX-License-Identifier: Apache-2.0
// Kernels of the scenario programs. Their results depend on the order and the arguments of every
// launch, so a launch that is lost, doubled, moved or given stale arguments shows. SCENARIO_VARIANT
// gives the same names other bodies.
#include <cooperative_groups.h>

#ifndef SCENARIO_VARIANT
#define SCENARIO_VARIANT 0
#endif

extern "C" {

__global__ void affine(unsigned* data, unsigned multiply, unsigned add, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = data[i] * multiply + add + SCENARIO_VARIANT * 1000003U;
}

__global__ void mix(unsigned* out, const unsigned* in, unsigned key, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = (out[i] * 31 + in[i]) ^ (key + SCENARIO_VARIANT);
}

// Eight arguments: six of 8 bytes and two of 4.
__global__ void wide(unsigned* out, const unsigned* a, const unsigned* b, unsigned long long c,
                     long long d, double e, unsigned f, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) {
    out[i] = out[i] * 17 + a[i] + 3 * b[i] + static_cast<unsigned>(c >> 8) +
             static_cast<unsigned>(d) + static_cast<unsigned>(static_cast<int>(e)) + f;
  }
}

// Small and odd sizes, so that the layout has holes.
__global__ void narrow(unsigned* out, unsigned char a, unsigned short b, bool c,
                       unsigned long long d, signed char e) {
  out[threadIdx.x] = out[threadIdx.x] * 7 + a + 256U * b + (c ? 65536U : 0U) +
                     static_cast<unsigned>(d) + static_cast<unsigned>(static_cast<int>(e));
}

// A structure by value, as C++ programs pass them.
struct Block {
  unsigned words[24];
};
__global__ void by_value(unsigned* out, Block block, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = out[i] * 13 + block.words[i % 24];
}

// What the launch looked like.
__global__ void shape(unsigned* out) {
  extern __shared__ unsigned scratch[];
  unsigned size;
  asm volatile("mov.u32 %0, %dynamic_smem_size;" : "=r"(size));
  scratch[threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += scratch[i];
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    atomicAdd(out + block % 16, sum * 3 + gridDim.x + 5 * gridDim.y + 7 * gridDim.z +
                                    11 * blockDim.x + 13 * blockDim.y + 17 * size);
  }
}

__global__ void count_up(unsigned* counter, unsigned amount) {
  atomicAdd(counter, amount);
}

// For host memory that the host polls or another process reads.
__global__ void publish(volatile unsigned* where, unsigned value) {
  *where = value;
  __threadfence_system();
}

// For a word that the host polls: atomic on both sides, so that a thread sanitizer has nothing to
// say.
__global__ void raise(unsigned* flag, unsigned value) {
  atomicExch_system(flag, value);
}

// Neighbouring blocks exchange values across a barrier of the whole grid; launched plainly there is
// none, and the result says so.
__global__ void relay(unsigned* data, unsigned key, int count) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (!grid.is_valid()) {
    if (i < count) data[i] = data[i] * 5 + key;
    return;
  }
  if (i < count) data[i] = data[i] * 3 + key;
  grid.sync();
  const int next = (i + static_cast<int>(blockDim.x)) % static_cast<int>(gridDim.x * blockDim.x);
  const unsigned other = next < count ? data[next] : 0;
  grid.sync();
  if (i < count) data[i] = data[i] * 31 + other;
}

__global__ void empty() {}

}  // extern "C"
