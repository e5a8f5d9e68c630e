// SPDX-License-Identifier: Apache-2.0
// CUDA C++ features that give PTX its different shapes; only compiled and parsed, never run.
#include <cassert>
#include <cstdio>

__device__ int counter = 5;
__constant__ float weights[16] = {1, 2, 3};
__device__ int* counter_address = &counter;
__managed__ int managed = 3;

typedef float (*Transform)(float);
__device__ __noinline__ float add_one(float x) {
  return x + 1;
}
__device__ __noinline__ float twice(float x) {
  return x * 2;
}
__device__ Transform transforms[2] = {add_one, twice};

struct Record {
  int a;
  double b;
  char c[12];
};

__device__ __noinline__ Record change(Record r, int n) {
  r.a += n;
  r.b *= n;
  r.c[n & 7] = 1;
  return r;
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern __shared__ float dynamic[];

__global__ void calls(float* p, int n, Record record) {
  __shared__ float buffer[256];
  __shared__ double three[3];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  buffer[threadIdx.x] = p[i];
  dynamic[threadIdx.x] = i;
  three[i % 3] = i;
  __syncthreads();
  const Record changed = change(record, n);
  p[i] = transforms[n & 1](buffer[255 - threadIdx.x]) + weights[n] + changed.b + fibonacci(n) +
         dynamic[n] + three[n];
  printf("%d %f\n", i, p[i]);
  assert(n > 0);
  int* memory = static_cast<int*>(malloc(n * 4));
  memory[0] = managed;
  p[i] += memory[0];
  free(memory);
  int local[20];
  for (int j = 0; j < 20; ++j) local[j] = j * n;
  p[i] += local[n % 20] + local[record.a % 20] + *counter_address;
}

__global__ void choices(float* p, double* d, int n) {
  const int i = threadIdx.x;
  switch (n) {
    case 0:
      p[i] = 1;
      break;
    case 1:
      p[i] = sinf(p[i]);
      break;
    case 2:
      p[i] *= 3;
      break;
    case 3:
      d[i] = pow(d[i], 2.5);
      break;
    case 4:
      p[i] = __expf(p[i]);
      break;
    case 5:
      d[i] = sqrt(d[i]) / d[1];
      break;
    case 6:
      p[i] = erff(p[i]);
      break;
    case 7:
      p[i] = __fdividef(p[i], p[1]) + p[i] / p[2] + rsqrtf(p[3]) + __fadd_ru(p[4], p[5]);
      break;
    default:
      __trap();
  }
  while (p[i] > n) p[i] = fmodf(p[i], p[0]) + copysignf(1, p[2]);
}

__global__ void __launch_bounds__(128, 2) integers(unsigned* p, long long* q, int n) {
  int v = p[threadIdx.x];
  v += __popc(v) + __clz(v) + __ffs(v) + __brev(v) + __byte_perm(v, n, 0x1234);
  v += __funnelshift_l(v, n, 3) + __umulhi(v, 3) + __sad(v, n, 3u) + (v / n) % 7 + __mul24(v, n);
  q[threadIdx.x] = __mul64hi(q[0], v) / (q[1] | 1) + clock64() + clock();
  q[1] = static_cast<__int128>(q[0]) * q[2] >> 64;
  p[threadIdx.x] = v;
}
