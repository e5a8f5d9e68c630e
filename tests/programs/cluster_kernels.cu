// SPDX-License-Identifier: Apache-2.0
// Kernels that see their cluster: compute capability 9.0 and later.
extern "C" __global__ void where(unsigned* out, unsigned key) {
  unsigned cluster, clusters, place, size, rank, ranks;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(place));
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  const unsigned seen = cluster + 3 * clusters + 5 * place + 7 * size + 11 * rank + 13 * ranks;
  out[block] = (out[block] * 31 + seen) ^ key;
}
