// SPDX-License-Identifier: Apache-2.0
// A program whose launches, waits and CPU time are known: which function launches what how often,
// on which stream. trace_test.py holds the trace of the profiler against the numbers that it
// prints.
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/programs/profile/check.h"

namespace {

constexpr int kLong = 20;
constexpr int kShort = 150;
constexpr int kThreadShort = 30;
constexpr int kPerThread = 12;
constexpr int kLegacy = 8;
constexpr int kCaptured = 3;
constexpr int kGraphs = 5;
constexpr int kWaits = 6;
constexpr int kCopies = 10;
constexpr long kBurnMs = 400;

constexpr char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry _Z9long_workPji(.param .u64 out, .param .u32 rounds) {
  .reg .u64 %out;
  .reg .u32 %round, %sum, %rounds;
  .reg .pred %more;
  ld.param.u64 %out, [out];
  ld.param.u32 %rounds, [rounds];
  mov.u32 %round, 0;
  mov.u32 %sum, 0;
again:
  add.u32 %sum, %sum, %round;
  add.u32 %round, %round, 1;
  setp.lt.u32 %more, %round, %rounds;
  @%more bra again;
  st.global.u32 [%out], %sum;
  ret;
}
.visible .entry short_work(.param .u64 out) {
  .reg .u64 %out;
  .reg .u32 %value;
  ld.param.u64 %out, [out];
  ld.global.u32 %value, [%out];
  add.u32 %value, %value, 1;
  st.global.u32 [%out], %value;
  ret;
}
)";

struct Work {
  CUfunction long_work = nullptr, short_work = nullptr;
  CUdeviceptr memory = 0;
};

[[gnu::noinline]] void launch_long(const Work& work, CUstream stream) {
  CUdeviceptr out = work.memory;
  int rounds = 3000;
  void* arguments[] = {&out, &rounds};
  for (int i = 0; i < kLong; ++i) {
    CHECK(cuLaunchKernel(work.long_work, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
  }
  asm volatile("");  // no tail call: the frame stays
}

[[gnu::noinline]] void launch_short(const Work& work, CUstream stream, int count) {
  CUdeviceptr out = work.memory + 64;
  void* arguments[] = {&out};
  for (int i = 0; i < count; ++i) {
    CHECK(cuLaunchKernel(work.short_work, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  }
  asm volatile("");
}

[[gnu::noinline]] void wait_for(const Work& work, CUstream stream) {
  for (int i = 0; i < kWaits; ++i) {
    launch_long(work, stream);
    CHECK(cuStreamSynchronize(stream));
  }
}

[[gnu::noinline]] unsigned read_back(const Work& work) {
  unsigned value = 0;
  for (int i = 0; i < kCopies; ++i) CHECK(cuMemcpyDtoH(&value, work.memory + 64, sizeof value));
  return value;
}

[[gnu::noinline]] void replay(const Work& work, CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch_short(work, stream, kCaptured);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < kGraphs; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

long cpu_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// CPU time, so that the number of samples does not hang on the load of the machine.
[[gnu::noinline]] unsigned burn(long milliseconds) {
  const long end = cpu_ms() + milliseconds;
  volatile unsigned sum = 0;
  while (cpu_ms() < end) {
    for (int i = 0; i < 200'000; ++i) sum = sum + static_cast<unsigned>(i);
  }
  return sum;
}

void work_in_thread(CUcontext context, const Work& work) {
  CHECK(cuCtxSetCurrent(context));
  launch_short(work, CU_STREAM_PER_THREAD, kPerThread);
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  launch_short(work, stream, kThreadShort);
  CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuStreamDestroy(stream));
}

void print_truth(unsigned value) {
  printf("launch_long _Z9long_workPji %d\n", kLong * kWaits);
  printf("launch_short short_work %d\n", kShort + kThreadShort + kPerThread + kLegacy);
  printf("untimed %d\n", kCaptured);
  printf("graphs %d\n", kGraphs);
  printf("waits %d\n", kWaits + 3);
  printf("copies %d\n", kCopies);
  printf("value %u\n", value);
  fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "";
  CHECK(cuInit(0));
  CUcontext context = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  CHECK(cuModuleLoadData(&module, kPtx));
  Work work;
  CHECK(cuModuleGetFunction(&work.long_work, module, "_Z9long_workPji"));
  CHECK(cuModuleGetFunction(&work.short_work, module, "short_work"));
  CHECK(cuMemAlloc(&work.memory, 4096));
  CHECK(cuMemsetD8(work.memory, 0, 4096));
  CUstream blocking = nullptr, free_stream = nullptr;
  CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CHECK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));

  wait_for(work, blocking);
  launch_short(work, free_stream, kShort);
  CHECK(cuCtxSynchronize());
  std::thread thread(work_in_thread, context, work);
  thread.join();
  launch_short(work, nullptr, kLegacy);
  const unsigned value = read_back(work);
  replay(work, free_stream);
  if (how != "quick") burn(kBurnMs);
  print_truth(value);
  if (how == "killed") {
    getchar();  // the test has seen the trace grow
    raise(SIGKILL);
  }
  if (how == "paused") getchar();
  if (how == "_exit") _exit(0);
  if (how == "unloaded") {
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxReset(0));
  }
  return 0;
}
