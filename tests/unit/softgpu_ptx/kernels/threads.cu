// SPDX-License-Identifier: Apache-2.0
// Atomics, warp functions and cooperative groups; only compiled and parsed, never run.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

__global__ void atomics(int* p, unsigned long long* q, double* d, float* f) {
  __shared__ int sum;
  atomicAdd(&sum, p[0]);
  atomicAdd(p, 1);
  atomicCAS(p, 1, 2);
  atomicExch(q, 3ull);
  atomicMax(q, 5ull);
  atomicAdd(d, 1.0);
  atomicAdd(f, 1.f);
  atomicInc(reinterpret_cast<unsigned*>(p), 5u);
  cuda::atomic_ref<int> shared_with_all(p[3]);
  shared_with_all.fetch_add(1);
  shared_with_all.store(4, cuda::memory_order_release);
  p[1] = shared_with_all.load(cuda::memory_order_acquire) + sum;
  __threadfence();
  __threadfence_block();
  __threadfence_system();
}

__global__ void warps(int* p) {
  const unsigned all = 0xffffffffu;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int v = p[threadIdx.x];
  v = cg::reduce(tile, v, cg::plus<int>());
  v += cg::inclusive_scan(tile, v);
  cg::this_grid().sync();
  v += __ballot_sync(all, v > 3) + __any_sync(all, v) + __match_any_sync(all, v) + __activemask();
  v += __syncthreads_or(v) + __syncthreads_count(v) + __shfl_up_sync(all, v, 1) +
       __shfl_xor_sync(all, v, 1);
  int same;
  v += __match_all_sync(all, v, &same) + same;
#if __CUDA_ARCH__ >= 800
  v += __reduce_add_sync(all, v) + __reduce_max_sync(all, v);
#endif
  __nanosleep(100);
  __syncwarp();
  p[threadIdx.x] = v;
}
