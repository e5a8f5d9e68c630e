// SPDX-License-Identifier: Apache-2.0
// Kernels for the executor tests, compiled to PTX at build time. Each is checked against host C++
// in executor_test.cpp.
#include <cooperative_groups.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

extern "C" {

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void matrix_multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int tile = 0; tile < n / 16; ++tile) {
    left[y][x] = a[row * n + tile * 16 + x];
    right[y][x] = b[(tile * 16 + y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum = fmaf(left[y][k], right[k][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Dynamic shared memory, a partial last warp, a barrier in a loop.
__global__ void reduce_shared(const int* in, int* out) {
  extern __shared__ int values[];
  const unsigned t = threadIdx.x;
  values[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned width = 1; width < blockDim.x; width *= 2) {
    int other = 0;
    if (t % (2 * width) == 0 && t + width < blockDim.x) other = values[t + width];
    __syncthreads();
    values[t] += other;
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = values[0];
}

// --- divergence
// ------------------------------------------------------------------------------------------------------

__global__ void nested_branches(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i];
  if (v & 1) {
    if (v & 2) {
      v = v * 3 + 1;
      if (v % 5 == 0) v -= 7;
    } else {
      v = v / 2 - 4;
    }
    v ^= 0x55;
  } else if (v % 3 == 0) {
    v = -v;
  } else {
    for (int k = 0; k < (v & 7); ++k) v += k * v;
  }
  out[i] = v + 1;
}

__global__ void collatz(const unsigned* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i];
  int steps = 0;
  while (v != 1) {
    if (steps > 300) break;
    ++steps;
    if (v & 1) {
      v = 3 * v + 1;
      continue;
    }
    v >>= 1;
  }
  out[i] = steps;
}

__global__ void dispatch(const int* in, int* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  int v = in[i];
  switch (v & 7) {
    case 0:
      v += 100;
      break;
    case 1:
      v *= 3;
    case 2:
      v -= 9;
      break;
    case 3:
      v = v * v;
      break;
    case 4:
      v = ~v;
      break;
    case 5:
      v <<= 2;
      break;
    case 6:
      for (int k = 0; k < 5; ++k) v += k;
      break;
    default:
      v = -1;
  }
  out[i] = v;
}

// Lanes leave before others use a barrier and warp operations.
__global__ void leave_early(int* out, int leave_below) {
  const int t = threadIdx.x;
  if (t < leave_below && (t & 1)) return;
  __syncthreads();
  out[t] = 1;
  if (t % 3 == 0) asm volatile("exit;");
  __syncthreads();
  out[t] = 2;
}

// --- warp operations
// -------------------------------------------------------------------------------------------------

__global__ void warp_operations(const int* in, int* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  const int v = in[i];
  int sum = v;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  int butterfly = v;
  for (int offset = 16; offset > 0; offset /= 2)
    butterfly += __shfl_xor_sync(~0u, butterfly, offset);
  int prefix = v;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int up = __shfl_up_sync(~0u, prefix, offset);
    if ((threadIdx.x & 31) >= offset) prefix += up;
  }
  const int segment = __shfl_sync(~0u, v, 3, 8);
  const unsigned ballot = __ballot_sync(~0u, v & 1);
  const unsigned matched = __match_any_sync(~0u, v & 3);
  int all_same;
  const unsigned matched_all = __match_all_sync(~0u, v & 0x40000000, &all_same);
  int* to = out + i * 12;
  to[0] = __shfl_sync(~0u, sum, 0);
  to[1] = butterfly;
  to[2] = prefix;
  to[3] = segment;
  to[4] = ballot;
  to[5] = matched;
  to[6] = matched_all;
  to[7] = all_same;
  to[8] = __reduce_add_sync(~0u, v);
  to[9] = __reduce_max_sync(~0u, v);
  to[10] = __any_sync(~0u, v == in[0]) * 2 + __all_sync(~0u, v > -1000000000);
  to[11] = __reduce_xor_sync(~0u, (unsigned)v);
}

// Halves of a warp synchronise with each other at different instructions.
__global__ void split_sync(int* out) {
  __shared__ int mailbox[32];
  const int t = threadIdx.x;
  if (t < 16) {
    mailbox[t] = t * 10;
    __syncwarp();
    __syncwarp();
    out[t] = mailbox[t + 16];
  } else {
    mailbox[t] = t * 100;
    __syncwarp();
    out[t] = mailbox[t - 16];
    __syncwarp();
  }
}

// The sub-warps diverge on purpose; each works on its own mask.
__global__ void partial_masks(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[t];
  if (t % 4 == 0) {
    const unsigned mask = 0x11111111u;
    for (int offset = 16; offset >= 4; offset /= 2) v += __shfl_down_sync(mask, v, offset);
    out[t] = v;
  } else {
    out[t] = __popc(__activemask());
  }
}

// --- atomics and inter-thread communication
// --------------------------------------------------------------------------

__global__ void histogram(const unsigned* in, unsigned* bins, int n) {
  __shared__ unsigned local[64];
  if (threadIdx.x < 64) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] & 63], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void atomic_family(unsigned* u, int* s, float* f, double* d, unsigned long long* w) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(u + 0, t);
  atomicSub(u + 1, t);
  atomicMin(u + 2, t ^ 0x2a);
  atomicMax(u + 3, t ^ 0x2a);
  atomicInc(u + 4, 9);
  atomicDec(u + 5, 9);
  atomicAnd(u + 6, ~(1u << (t & 31)));
  atomicOr(u + 7, 1u << (t & 31));
  atomicXor(u + 8, t * 2654435761u);
  atomicMin(s + 0, 50 - (int)t);
  atomicMax(s + 1, (int)t - 1000);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
  atomicAdd(w + 0, (unsigned long long)t << 20);
  atomicMax(w + 1, (unsigned long long)t << 33);
  unsigned long long seen = w[2], assumed;
  do {
    assumed = seen;
    seen = atomicCAS(w + 2, assumed, assumed + 3);
  } while (seen != assumed);
}

__device__ unsigned g_lock = 0;
__device__ unsigned g_plain = 0;

// A lock that every thread of every block takes: lanes of a warp wait for each other.
__global__ void spin_lock() {
  while (atomicCAS(&g_lock, 0, 1) != 0) {
  }
  __threadfence();
  *(volatile unsigned*)&g_plain = *(volatile unsigned*)&g_plain + 1;
  __threadfence();
  atomicExch(&g_lock, 0);
}

// Each block waits for the prefix of the block before it.
__global__ void look_back(const unsigned* in, unsigned* out, volatile unsigned* flags,
                          volatile unsigned* prefixes, unsigned* ticket) {
  __shared__ unsigned block, before;
  __shared__ unsigned scan[64];
  const int t = threadIdx.x;
  if (t == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  scan[t] = in[block * 64 + t];
  __syncthreads();
  for (int offset = 1; offset < 64; offset *= 2) {
    const unsigned other = t >= offset ? scan[t - offset] : 0;
    __syncthreads();
    scan[t] += other;
    __syncthreads();
  }
  if (t == 0) {
    unsigned previous = 0;
    if (block > 0) {
      while (flags[block - 1] == 0) {
      }
      __threadfence();
      previous = prefixes[block - 1];
    }
    prefixes[block] = previous + scan[63];
    __threadfence();
    flags[block] = 1;
    before = previous;
  }
  __syncthreads();
  out[block * 64 + t] = before + scan[t];
}

__global__ void grid_barrier(unsigned* counter, unsigned* data, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    const unsigned self = blockIdx.x;
    if (threadIdx.x == 0) {
      const unsigned left = data[(round - 1) * gridDim.x + (self + gridDim.x - 1) % gridDim.x];
      data[round * gridDim.x + self] = left + self;
      __threadfence();
      atomicAdd(counter, 1);
      while (*(volatile unsigned*)counter < round * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

__global__ void grid_groups(unsigned* data) {
  cg::grid_group grid = cg::this_grid();
  data[grid.thread_rank()] = grid.thread_rank() * 3;
  grid.sync();
  const unsigned other = data[grid.size() - 1 - grid.thread_rank()];
  grid.sync();
  data[grid.thread_rank()] = other;
}

__global__ void wait_for_host(volatile unsigned* mailbox) {
  if (threadIdx.x == 0) {
    while (mailbox[0] == 0) {
    }
    mailbox[1] = mailbox[0] + 1;
  }
}

__global__ void barrier_votes(const int* in, int* out) {
  const int v = in[threadIdx.x];
  const int odd = __syncthreads_count(v & 1);
  const int any = __syncthreads_or(v > 90);
  const int all = __syncthreads_and(v >= 0);
  out[threadIdx.x] = odd * 4 + (any ? 2 : 0) + (all ? 1 : 0);
}

// --- calls
// -------------------------------------------------------------------------------------------------------------

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 13);
}

struct Triple {
  int x;
  double y;
  char z[12];
};
__device__ __noinline__ Triple by_value(Triple t, int n) {
  t.x += n;
  t.y *= t.x;
  for (int i = 0; i < 12; ++i) t.z[i] = (char)(t.z[i] + n + i);
  return t;
}
__global__ void structures(Triple* data) {
  data[threadIdx.x] = by_value(data[threadIdx.x], threadIdx.x);
}

__device__ __noinline__ int twice(int v) {
  return 2 * v;
}
__device__ __noinline__ int square(int v) {
  return v * v;
}
__device__ __noinline__ int odd_sum(int v) {
  int sum = 0;
  for (int i = 1; i <= v; i += 2) sum += i;
  return sum;
}
typedef int (*Operation)(int);
__device__ Operation g_operations[3] = {twice, square, odd_sum};
__global__ void function_pointers(int* out) {
  out[threadIdx.x] = g_operations[threadIdx.x % 3](threadIdx.x);
}

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Rectangle : Shape {
  float a, b;
  __device__ Rectangle(float x, float y) : a(x), b(y) {}
  __device__ float area() const override { return a * b; }
};
__global__ void virtual_calls(float* out) {
  const int t = threadIdx.x;
  Shape* shape;
  if (t & 1) {
    shape = new Square((float)t);
  } else {
    shape = new Rectangle((float)t, 3.0f);
  }
  out[t] = shape->area();
  delete shape;
}

__global__ void local_arrays(const int* in, int* out) {
  int values[20];
  for (int i = 0; i < 20; ++i) values[i] = in[threadIdx.x] + i * i;
  int* p = values + (in[threadIdx.x] & 3);
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum = sum * 31 + p[i];
  out[threadIdx.x] = sum;
}

__constant__ int c_table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ const char* g_text = "constant string";
__global__ void prints(int n) {
  if (threadIdx.x < n) {
    printf("t%d %5u|%-4x|%08llx %.3f %g %e %s %c %% %lld\n", threadIdx.x, 7u, 0xabcu,
           0x123456789abcull, 1.0 / 3.0, 1e20, 12345.678, g_text, 'q', -5000000000ll);
    if (threadIdx.x == 1)
      printf("%s %p %*d %+d no arguments\n", "literal", (void*)0x1234, 6, 42, 9);
    printf("plain\n");
  }
}

__global__ void asserts(int* out) {
  out[threadIdx.x] = 1;
  assert(threadIdx.x < 40);
}

__global__ void heap(unsigned* out, int bytes) {
  unsigned* p = (unsigned*)malloc(bytes);
  if (p == nullptr) {
    out[threadIdx.x] = 0xffffffffu;
    return;
  }
  for (int i = 0; i < bytes / 4; ++i) p[i] = threadIdx.x * 1000 + i;
  unsigned sum = 0;
  for (int i = 0; i < bytes / 4; ++i) sum += p[i];
  free(p);
  out[threadIdx.x] = sum;
}

// Each of the first `count` threads sets the condition of its number.
__global__ void set_conditions(unsigned long long count, unsigned value) {
  if (threadIdx.x < count) cudaGraphSetConditional(threadIdx.x, value + threadIdx.x);
}

// --- faults
// --------------------------------------------------------------------------------------------------------------

__global__ void store_at(int* where, int offset) {
  if (threadIdx.x == 5) where[offset] = 1;
}
__global__ void load_bytes_at(const char* where, int* out) {
  if (threadIdx.x == 7) out[0] = *(const int*)(where + 2);
}
__global__ void read_constant(int* out) {
  out[threadIdx.x] = c_table[threadIdx.x & 7];
}
__global__ void traps() {
  if (threadIdx.x == 3) __trap();
}
__global__ void call_nowhere(Operation* table, int* out) {
  out[threadIdx.x] = table[0](1);
}
__device__ volatile int g_depth;
__device__ __noinline__ int endless(int n) {
  g_depth = n;
  return n == -1 ? 0 : endless(n + 1) ^ endless(n + 3);
}
__global__ void runaway(int* out) {
  out[threadIdx.x] = endless(threadIdx.x);
}
__global__ void shared_overrun(int* out, int index) {
  __shared__ int values[8];
  values[threadIdx.x & 7] = 1;
  __syncthreads();
  out[threadIdx.x] = values[index];
}

}  // extern "C"
