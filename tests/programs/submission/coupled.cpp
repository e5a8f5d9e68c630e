// SPDX-License-Identifier: Apache-2.0
// coupled WAY: two threads whose streams have nothing to do with each other. One fills its stream
// with launches behind a kernel that spins until the host sets a flag; the other works on its own
// stream, waits for that alone in some WAY, and only then sets the flag. On a driver whose launch
// queue is full meanwhile (CAJETA_SOFTGPU_QUEUE_DEPTH) the first thread waits in a launch, the
// second never. Prints what was computed; a program that hangs is ended by its alarm.
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/programs/host/tiny.h"

namespace {

constexpr char kSpinPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry put(.param .u64 p, .param .u32 v) {
  .reg .u64 %a; .reg .u32 %v;
  ld.param.u64 %a, [p]; ld.param.u32 %v, [v]; st.volatile.global.u32 [%a], %v; ret;
}
.visible .entry spin(.param .u64 p) {
  .reg .u64 %a; .reg .u32 %v; .reg .pred %q;
  ld.param.u64 %a, [p];
again: ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %q, %v, 0; @%q bra again;
  ret;
})";

constexpr int kLaunches = 400;
constexpr int kDepth = 64;  // as the test sets it

CUfunction g_put, g_spin;
unsigned* g_host;  // flag, last word of the first stream, word of the second
CUdeviceptr g_words;
std::atomic<int> g_launched{0};

unsigned read(int word) {
  return __atomic_load_n(&g_host[word], __ATOMIC_ACQUIRE);
}

void put(CUstream stream, unsigned word, unsigned value) {
  CUdeviceptr at = g_words + word * 4;
  void* arguments[] = {&at, &value};
  CHECK(cuLaunchKernel(g_put, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
}

void fill(CUstream stream) {
  CHECK(cuCtxSetCurrent(tiny::g_context));
  void* arguments[] = {&g_words};
  CHECK(cuLaunchKernel(g_spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  for (int i = 1; i <= kLaunches; ++i) {
    put(stream, 1, static_cast<unsigned>(i));
    ++g_launched;
  }
}

void wait_for(const std::string& way, CUstream stream) {
  if (way == "synchronize") CHECK(cuStreamSynchronize(stream));
  if (way == "poll") {
    while (read(2) == 0) {
    }
  }
  if (way == "query") {
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
  }
  if (way == "event") {
    CUevent event;
    CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    CHECK(cuEventRecord(event, stream));
    CHECK(cuEventSynchronize(event));
  }
  if (way == "copy") {  // on the legacy stream, which waits for the blocking one
    unsigned value = 0;
    CHECK(cuMemcpyDtoH(&value, g_words + 8, 4));
  }
  if (way == "allocate") {
    CUdeviceptr memory;
    CHECK(cuMemAlloc(&memory, 64));
    CHECK(cuStreamSynchronize(stream));
  }
}

void start() {
  tiny::start();
  CUmodule module;
  CHECK(cuModuleLoadData(&module, kSpinPtx));
  CHECK(cuModuleGetFunction(&g_put, module, "put"));
  CHECK(cuModuleGetFunction(&g_spin, module, "spin"));
  CHECK(cuFuncLoad(g_put));
  CHECK(cuFuncLoad(g_spin));
  void* host;
  CHECK(cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  g_host = static_cast<unsigned*>(host);
  for (int i = 0; i < 3; ++i) g_host[i] = 0;
  CHECK(cuMemHostGetDevicePointer(&g_words, host, 0));
}

}  // namespace

int main(int, char** arguments) {
  const std::string way = arguments[1];
  alarm(60);
  start();
  CUstream filled, free_one;
  CHECK(cuStreamCreate(&filled, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&free_one, way == "copy" ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
  std::thread filler(fill, filled);
  std::thread other([&] {
    CHECK(cuCtxSetCurrent(tiny::g_context));
    while (g_launched < kDepth - 1) std::this_thread::yield();
    put(free_one, 2, 7);
    wait_for(way, free_one);
    __atomic_store_n(&g_host[0], 1u, __ATOMIC_RELEASE);
  });
  other.join();
  filler.join();
  CHECK(cuCtxSynchronize());
  std::printf("%u %u %u\n", read(0), read(1), read(2));
}
