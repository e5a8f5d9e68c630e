// SPDX-License-Identifier: Apache-2.0
// A program whose blocking calls are known: where they stand (the lines marked SITE), how many
// there are. profile_test.py holds the report against the marks.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "tests/programs/profile/check.h"

namespace hidden {
void wait_for(CUstream stream);  // in a library of its own
}

namespace {

constexpr int kCopies = 40;
constexpr int kWaits = 25;
constexpr int kFrees = 9;
constexpr int kPolls = 200;
constexpr int kThreadCopies = 30;

CUcontext g_context;

class Residual {
 public:
  Residual() { CHECK(cuMemAlloc(&memory_, sizeof(float))); }
  [[gnu::noinline]] float read() const {
    float value = 0;
    CHECK(cuMemcpyDtoH(&value, memory_, sizeof value));  // SITE read_four_bytes
    return value;
  }

 private:
  CUdeviceptr memory_ = 0;
};

[[gnu::noinline]] void free_memory() {
  for (int i = 0; i < kFrees; ++i) {
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 4096));
    CHECK(cuMemFree(memory));  // SITE free_that_waits
  }
}

[[gnu::noinline]] void poll(CUstream stream) {
  for (int i = 0; i < kPolls; ++i) {
    const CUresult result = cuStreamQuery(stream);  // SITE poll
    if (result != CUDA_ERROR_NOT_READY) CHECK(result);
  }
}

void work(const char* name) {
  CHECK(cuCtxSetCurrent(g_context));
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, 1024));
  char* locked = nullptr;
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&locked), 1024));
  if (std::strcmp(name, "up") == 0) {
    for (int i = 0; i < kThreadCopies; ++i) {
      CHECK(cuMemcpyHtoD(memory, locked, 1024));  // SITE thread_up
    }
  } else {
    for (int i = 0; i < kThreadCopies; ++i) {
      CHECK(cuMemcpyDtoH(locked, memory, 1024));  // SITE thread_down
    }
  }
}

void wait_for_file(const char* path) {
  while (access(path, F_OK) != 0) std::this_thread::yield();
}

// How the program ends: the report must be there in any case.
void end(const std::string& how, const char* path) {
  if (how == "_exit") _exit(7);
  if (how == "abort") std::abort();
  if (how == "fault") *static_cast<volatile int*>(nullptr) = 1;
  if (how == "raised_fault") raise(SIGSEGV);
  if (how == "term") raise(SIGTERM);
  if (how == "handled") {
    std::signal(SIGTERM, [](int) { _exit(5); });
    raise(SIGTERM);
  }
  // Killed with nothing to say at the end: what a snapshot wrote before stays.
  if (how == "asked") raise(SIGUSR1);
  if (how == "asked" || how == "waited") {
    wait_for_file(path);
    raise(SIGKILL);
  }
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(cuInit(0));
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&g_context, device));
  CHECK(cuCtxSetCurrent(g_context));
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const Residual residual;
  float sum = 0;
  for (int i = 0; i < kCopies; ++i) sum += residual.read();
  for (int i = 0; i < kWaits; ++i) hidden::wait_for(stream);
  free_memory();
  poll(stream);
  std::thread up(work, "up");
  std::thread down(work, "down");
  up.join();
  down.join();
  if (count > 1) end(arguments[1], count > 2 ? arguments[2] : "");
  return sum == sum ? 0 : 1;
}
