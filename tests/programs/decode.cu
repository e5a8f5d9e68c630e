// SPDX-License-Identifier: Apache-2.0
// The kernels of a small Llama-shaped decoder, one token at a time: 11 a layer and 4 around the
// layers. Compiled to PTX with -fmad=false, so that every float operation rounds as the CPU
// reference's does. One thread computes one output row of a matrix; matrices are stored column by
// column so that neighbouring threads read neighbouring words.
#include "tests/programs/decode_math.h"

using namespace decode;

extern "C" {

__global__ void embed(float* x, const float* table, int token, int dim) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < dim) x[i] = table[token * dim + i];
}

// One block of `dim` threads, a power of two.
__global__ void rms_norm(float* out, const float* x, const float* weight, float epsilon, int dim) {
  __shared__ float squares[128];
  const int i = static_cast<int>(threadIdx.x);
  const float value = x[i];
  squares[i] = value * value;
  __syncthreads();
  for (int stride = dim / 2; stride > 0; stride /= 2) {
    if (i < stride) squares[i] = squares[i] + squares[i + stride];
    __syncthreads();
  }
  const float mean = squares[0] / static_cast<float>(dim);
  out[i] = value * (1.0F / sqrtf(mean + epsilon)) * weight[i];
}

__device__ float row_product(const float* matrix, const float* x, int rows, int columns, int row) {
  float sum = 0;
#pragma unroll 8
  for (int column = 0; column < columns; ++column) {
    sum = sum + matrix[column * rows + row] * x[column];
  }
  return sum;
}

__global__ void matvec(float* out, const float* matrix, const float* x, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows) out[row] = row_product(matrix, x, rows, columns, row);
}

__global__ void matvec_add(float* out, const float* matrix, const float* x, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows) out[row] = out[row] + row_product(matrix, x, rows, columns, row);
}

// Rotates the query in place and the key into its cache row; copies the value into its cache row.
__global__ void rope_cache(float* qkv, float* key_row, float* value_row, const float* frequencies,
                           int position, int dim, int key_dim, int head_dim) {
  const int pair = static_cast<int>(threadIdx.x);
  const int half = head_dim / 2;
  if (pair < (dim + key_dim) / 2) {
    const float angle = static_cast<float>(position) * frequencies[pair % half];
    const float c = cosine(angle), s = sine(angle);
    const float a = qkv[2 * pair], b = qkv[2 * pair + 1];
    float* target = 2 * pair < dim ? qkv + 2 * pair : key_row + (2 * pair - dim);
    target[0] = a * c - b * s;
    target[1] = a * s + b * c;
  }
  if (pair < key_dim) value_row[pair] = qkv[dim + key_dim + pair];
}

__device__ float warp_max(float value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, value, mask);
    value = other > value ? other : value;
  }
  return value;
}

__device__ float warp_sum(float value) {
  for (int mask = 16; mask > 0; mask /= 2)
    value = value + __shfl_xor_sync(0xffffffffU, value, mask);
  return value;
}

// A block of one warp for each query head. Dynamic shared memory: one float per position.
__global__ void attention(float* out, const float* query, const float* keys, const float* values,
                          int positions, int head_dim, int key_dim, int heads_per_key,
                          float scale) {
  extern __shared__ float scores[];
  const int lane = static_cast<int>(threadIdx.x), head = static_cast<int>(blockIdx.x);
  const int offset = head / heads_per_key * head_dim;
  float highest = -1e30F;
  for (int t = lane; t < positions; t += 32) {
    float sum = 0;
    for (int d = 0; d < head_dim; ++d) {
      sum = sum + query[head * head_dim + d] * keys[t * key_dim + offset + d];
    }
    scores[t] = sum * scale;
    highest = scores[t] > highest ? scores[t] : highest;
  }
  highest = warp_max(highest);
  float total = 0;
  for (int t = lane; t < positions; t += 32) {
    scores[t] = exponential(scores[t] - highest);
    total = total + scores[t];
  }
  total = warp_sum(total);
  __syncthreads();
  if (lane < head_dim) {
    float sum = 0;
    for (int t = 0; t < positions; ++t) sum = sum + scores[t] * values[t * key_dim + offset + lane];
    out[head * head_dim + lane] = sum / total;
  }
}

__global__ void add(float* x, const float* delta, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] = x[i] + delta[i];
}

__global__ void swiglu(float* gate, const float* up, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) gate[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

// One warp; the lowest index wins a tie.
__global__ void argmax(int* token, const float* logits, int count) {
  const int lane = static_cast<int>(threadIdx.x);
  float best = -1e30F;
  int where = count;
  for (int i = lane; i < count; i += 32) {
    if (logits[i] > best) {
      best = logits[i];
      where = i;
    }
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, best, mask);
    const int place = __shfl_xor_sync(0xffffffffU, where, mask);
    if (other > best || (other == best && place < where)) {
      best = other;
      where = place;
    }
  }
  if (lane == 0) *token = where;
}

}  // extern "C"
