// SPDX-License-Identifier: Apache-2.0
// Kernels that choose what a conditional graph node runs. An image of its own: a driver that does
// not know cudaGraphSetConditional cannot load it. A handle of 0 chooses nothing, so that the same
// kernels run outside graphs too.

extern "C" {

// What is chosen depends on all that was done to `data` before.
__global__ void choose(cudaGraphConditionalHandle handle, unsigned* data, unsigned choices,
                       unsigned add, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  if (i == 0 && handle != 0)
    cudaGraphSetConditional(handle, (data[0] * 2654435761U >> 20) % choices);
  data[i] = data[i] * 5 + add;
}

// One round of a loop of *left rounds.
__global__ void one_round(cudaGraphConditionalHandle handle, unsigned* left, unsigned* data,
                          unsigned add, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  data[i] = data[i] * 3 + add;
  if (i != 0) return;
  *left -= 1;
  if (handle != 0) cudaGraphSetConditional(handle, *left);
}

}  // extern "C"
