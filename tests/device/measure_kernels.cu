// SPDX-License-Identifier: Apache-2.0
// Kernels for measuring the driver: one that only has arguments to pass, and one that keeps the
// device busy.
extern "C" __global__ void wide(unsigned* out, const unsigned* a, const unsigned* b,
                                unsigned long long c, long long d, double e, unsigned f,
                                int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    out[i] =
        a[i] + b[i] + static_cast<unsigned>(c + d) + static_cast<unsigned>(static_cast<int>(e)) + f;
}

// A chain of dependent steps that the compiler cannot fold. Same argument sizes as `wide`.
extern "C" __global__ void busy(unsigned* out, const unsigned* a, const unsigned* b,
                                unsigned long long c, long long steps, double e, unsigned f,
                                int count) {
  unsigned value = f + static_cast<unsigned>(c);
  for (long long i = 0; i < steps; ++i) value = value * 1664525U + 1013904223U;
  if (count == 0) out[0] = value + a[0] + b[0] + static_cast<unsigned>(static_cast<int>(e));
}
