// SPDX-License-Identifier: Apache-2.0
// The launch that the benchmarks repeat: eight arguments, six of 8 bytes and two of 4. Its body
// never matters; the second name makes a second sequence on one stream.
__device__ void body(unsigned* out, const unsigned* a, const unsigned* b, unsigned long long c,
                     long long d, double e, unsigned f, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    out[i] =
        a[i] + b[i] + static_cast<unsigned>(c + d) + static_cast<unsigned>(static_cast<int>(e)) + f;
}

extern "C" __global__ void wide(unsigned* out, const unsigned* a, const unsigned* b,
                                unsigned long long c, long long d, double e, unsigned f,
                                int count) {
  body(out, a, b, c, d, e, f, count);
}

extern "C" __global__ void wide_again(unsigned* out, const unsigned* a, const unsigned* b,
                                      unsigned long long c, long long d, double e, unsigned f,
                                      int count) {
  body(out, a, b, c, d, e, f, count);
}
