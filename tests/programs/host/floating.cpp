// SPDX-License-Identifier: Apache-2.0
// Floating point as the program has set it up on its thread, by letters: z flushes denormals, u and
// d round up and down, t traps the grave exceptions and i all, x has x87 compute in single
// precision, X has it trap, f raises flags beforehand. Kernels must not feel it, and the thread's
// environment, flags included, is the same after each step. One thread, and with T a second one
// that is the first to compute.
#include <fenv.h>
#include <xmmintrin.h>

#include <cstring>
#include <thread>

#include "tests/programs/host/tiny.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry compute(.param .u64 p) {
  .reg .u64 %a; .reg .f32 %x, %y, %z; .reg .f64 %d, %e; .reg .u32 %n; .reg .b16 %h;
  ld.param.u64 %a, [p];
  mov.f32 %x, 0f00800000; mov.f32 %y, 0f3F000000; mul.rn.f32 %z, %x, %y; st.global.f32 [%a], %z;
  mov.f32 %x, 0f3F800000; mov.f32 %y, 0f40400000; div.rn.f32 %z, %x, %y; st.global.f32 [%a+4], %z;
  div.rz.f32 %z, %x, %y; st.global.f32 [%a+8], %z;
  div.rp.f32 %z, %x, %y; st.global.f32 [%a+12], %z;
  mov.f32 %y, 0f00000000; div.rn.f32 %z, %x, %y; st.global.f32 [%a+16], %z;
  mov.f32 %x, 0f3DCCCCCD; mov.f32 %y, 0f3E4CCCCD; fma.rn.f32 %z, %x, %y, %x; st.global.f32 [%a+20], %z;
  ex2.approx.f32 %z, %x; st.global.f32 [%a+24], %z;
  sin.approx.f32 %z, %x; st.global.f32 [%a+28], %z;
  sqrt.rn.f32 %z, %y; st.global.f32 [%a+32], %z;
  cvt.rn.f16.f32 %h, %x; st.global.b16 [%a+36], %h;
  cvt.rni.s32.f32 %n, 0f40200000; st.global.u32 [%a+40], %n;
  mov.u32 %n, 16777217; cvt.rn.f32.u32 %z, %n; st.global.f32 [%a+44], %z;
  mov.f64 %d, 0d0010000000000000; mul.rn.f64 %d, %d, 0d3FE0000000000000; st.global.f64 [%a+48], %d;
  mov.f64 %d, 0d3FB999999999999A; mov.f64 %e, 0d3FC999999999999A; fma.rn.f64 %d, %d, %e, %d;
  st.global.f64 [%a+56], %d;
  cvt.rn.f32.f64 %z, %d; st.global.f32 [%a+64], %z;
  ret;
})";

constexpr unsigned kWords = 18;

struct Floats {
  unsigned mxcsr;
  unsigned short control, status;
};

Floats floats_now() {
  Floats now{_mm_getcsr(), 0, 0};
  asm volatile("fnstcw %0" : "=m"(now.control));
  asm volatile("fnstsw %0" : "=m"(now.status));
  return now;
}

void set_up(const char* letters) {
  unsigned short control = 0;
  asm volatile("fnstcw %0" : "=m"(control));
  for (const char* letter = letters; *letter != '\0'; ++letter) {
    if (*letter == 'z') _mm_setcsr(_mm_getcsr() | 0x8040);
    if (*letter == 'u') fesetround(FE_UPWARD);
    if (*letter == 'd') fesetround(FE_DOWNWARD);
    if (*letter == 't') feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    if (*letter == 'i') feenableexcept(FE_ALL_EXCEPT);
    if (*letter == 'f') _mm_setcsr(_mm_getcsr() | 0x09);  // invalid and overflow were raised
    asm volatile("fnstcw %0" : "=m"(control));
    if (*letter == 'x') control &= 0xfcff;
    if (*letter == 'X') control &= 0xffc0;
    asm volatile("fldcw %0" ::"m"(control));
  }
}

// After `step`: as at the start?
void check(const Floats& before, const char* step) {
  const Floats now = floats_now();
  if (now.mxcsr == before.mxcsr && now.control == before.control && now.status == before.status) {
    return;
  }
  std::printf("%s: mxcsr %04x -> %04x, x87 %04x -> %04x, status %04x -> %04x\n", step, before.mxcsr,
              now.mxcsr, before.control, now.control, before.status, now.status);
}

void compute(const char* letters) {
  set_up(letters);
  const Floats before = floats_now();
  CUmodule module;
  CUfunction function;
  CUdeviceptr cells;
  CHECK(cuCtxSetCurrent(tiny::g_context));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&function, module, "compute"));
  CHECK(cuMemAlloc(&cells, kWords * 4));
  CHECK(cuMemsetD32(cells, 0, kWords));
  check(before, "load");
  CUevent start, end;
  CHECK(cuEventCreate(&start, 0));
  CHECK(cuEventCreate(&end, 0));
  CHECK(cuEventRecord(start, nullptr));
  void* arguments[] = {&cells};
  for (int i = 0; i < 20; ++i) {
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    check(before, "launch");
    if (i % 4 == 3) CHECK(cuStreamSynchronize(nullptr));
    check(before, "synchronise");
  }
  CHECK(cuEventRecord(end, nullptr));
  CHECK(cuEventSynchronize(end));
  float milliseconds;
  CHECK(cuEventElapsedTime(&milliseconds, start, end));
  int blocks, size;
  CHECK(cuOccupancyMaxPotentialBlockSize(&blocks, &size, function, nullptr, 0, 0));
  check(before, "ask");
  CUstream streams[40];
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (CUstream stream : streams) {
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy(stream));
  }
  check(before, "streams");
  unsigned words[kWords];
  CHECK(cuMemcpyDtoH(words, cells, sizeof words));
  check(before, "copy");
  for (const unsigned word : words) std::printf("%08x\n", word);
}

}  // namespace

int main(int count, char** arguments) {
  const char* letters = count > 1 ? arguments[1] : "";
  // Before the library and the driver have done anything, as a program with -ffast-math does.
  if (std::strchr(letters, 'T') == nullptr) {
    set_up(letters);
    tiny::start();
    compute(letters);
  } else {
    tiny::start();
    std::thread(compute, letters).join();
    compute("");
  }
}
