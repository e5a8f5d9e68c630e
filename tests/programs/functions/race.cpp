// SPDX-License-Identifier: Apache-2.0
// Threads launch one function on a stream each while another changes an attribute of it, all of it
// legal: race WAY ROUNDS. WAY is the handle that is changed, `function`, or `kernel` beside
// launches of the function made of it. Prints what each thread has counted on the device.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/host/tiny.h"

namespace {

constexpr int kThreads = 6;
constexpr int kLaunches = 24;

std::atomic<int> g_running{kThreads};
unsigned g_sums[kThreads];
unsigned g_asked[kThreads];

void launch_all(int thread, int rounds, CUfunction bump) {
  CHECK(cuCtxSetCurrent(tiny::g_context));
  CUstream stream;
  CUdeviceptr cell;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&cell, 4));
  CHECK(cuMemsetD32Async(cell, 0, 1, stream));
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kLaunches; ++i) {
      unsigned by = static_cast<unsigned>(round * 13 + i + thread);
      void* arguments[] = {&cell, &by};
      CHECK(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
      g_asked[thread] += by;
    }
    cuStreamQuery(stream);
    if (round % 16 == 15) CHECK(cuStreamSynchronize(stream));
  }
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemcpyDtoH(&g_sums[thread], cell, 4));
  g_running.fetch_sub(1);
}

void change_until_done(CUfunction function, CUkernel kernel) {
  CHECK(cuCtxSetCurrent(tiny::g_context));
  const auto attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  for (int i = 0; g_running.load() != 0; ++i) {
    CHECK(kernel != nullptr ? cuKernelSetAttribute(attribute, i / 2 % 100, kernel, 0)
                            : cuFuncSetAttribute(function, attribute, i / 2 % 100));
    std::this_thread::yield();
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const bool by_kernel = std::string(arguments[1]) == "kernel";
  const int rounds = std::atoi(arguments[2]);
  tiny::start();
  CUlibrary library;
  CUkernel kernel = nullptr;
  CUfunction bump = tiny::g_bump;
  if (by_kernel) {
    CHECK(cuLibraryLoadData(&library, tiny::kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "bump"));
    CHECK(cuKernelGetFunction(&bump, kernel));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(launch_all, i, rounds, bump);
  threads.emplace_back(change_until_done, bump, kernel);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) std::printf("%u of %u\n", g_sums[i], g_asked[i]);
}
