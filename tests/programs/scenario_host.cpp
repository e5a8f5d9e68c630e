// SPDX-License-Identifier: Apache-2.0
// Scenarios about the host process: polling without a CUDA call, ends with launches pending, fork
// and exec. A parent that never touches CUDA watches over a child through a shared mapping, and
// prints what the child left there.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

constexpr std::size_t kPage = 4096;

// Memory that parent and child share and that the child maps for the device.
class SharedPage {
 public:
  SharedPage() {
    void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    words_ = static_cast<volatile unsigned*>(memory);
  }
  ~SharedPage() { munmap(const_cast<unsigned*>(words_), kPage); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  volatile unsigned* words() const { return words_; }
  CUdeviceptr map() const {
    CHECK(cuMemHostRegister(const_cast<unsigned*>(words_), kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr mapped = 0;
    CHECK(cuMemHostGetDevicePointer(&mapped, const_cast<unsigned*>(words_), 0));
    return mapped;
  }

 private:
  volatile unsigned* words_ = nullptr;
};

void print_child(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) std::printf("child exit %d\n", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) std::printf("child signal %d\n", WTERMSIG(status));
}

// The child queues launches after rounds that make them a known sequence, and ends without waiting.
template <typename End>
void end_with_launches_pending(End end, bool completes = true) {
  SharedPage page;
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto& device = *new Device;  // never destroyed: the process ends with it
    const CUfunction publish = device.function("publish"), count_up = device.function("count_up");
    auto& stream = *new Stream;
    const CUdeviceptr mapped = page.map();
    for (unsigned round = 0; round < 5; ++round) {
      for (unsigned i = 0; i < 6; ++i) {
        CHECK(launch(publish, {1, 1, 0}, stream, mapped + i * sizeof(unsigned), round * 100 + i));
        CHECK(launch(count_up, {1, 1, 0}, stream, mapped + 64 * sizeof(unsigned), 1U));
      }
      if (round < 4) stream.wait();
    }
    end();
  }
  print_child(child);
  if (!completes) return;
  for (int i = 0; i < 6; ++i) std::printf("%u ", page.words()[i]);
  std::printf("count %u\n", page.words()[64]);
}

void exit_with_launches_pending() {
  end_with_launches_pending([] { std::exit(5); });
}

void underscore_exit_with_launches_pending() {
  end_with_launches_pending([] { _exit(6); });
}

void exit_from_a_thread() {
  end_with_launches_pending([] { std::thread([] { std::exit(7); }).join(); });
}

// What a killed process had submitted may or may not run: only the way it ended is promised.
void abort_with_launches_pending() {
  end_with_launches_pending([] { std::abort(); }, false);
}

// No CUDA call between the launches and the poll: something else has to submit them.
void spin_on_mapped_memory() {
  Device device;
  const CUfunction raise = device.function("raise"), affine = device.function("affine");
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer x;
  unsigned* flag = nullptr;
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
  *flag = 0;
  CUdeviceptr mapped = 0;
  CHECK(cuMemHostGetDevicePointer(&mapped, flag, 0));
  for (unsigned round = 1; round <= 12; ++round) {
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    CHECK(launch(raise, {1, 1, 0}, stream, mapped, round));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round) {
      REQUIRE(std::chrono::steady_clock::now() < limit);
      std::this_thread::yield();
    }
    std::printf("seen %u\n", round);
  }
  stream.wait();
  print("x", x);
  CHECK(cuMemFreeHost(flag));
}

// A child forked with launches pending does no CUDA and ends; the launches are the parent's and run
// once.
void fork_with_launches_pending() {
  Device device;
  const CUfunction affine = device.function("affine"), count_up = device.function("count_up");
  Stream stream;
  Buffer x, counter;
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 5; ++i) {
      CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
      CHECK(launch(count_up, {1, 1, 0}, stream, counter.at(), 1U));
    }
    std::fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (round % 2 == 0) _exit(static_cast<int>(round));
      std::exit(static_cast<int>(round));
    }
    print_child(child);
    stream.wait();
    print("x", x);
    print("counter", counter);
  }
}

void fork_and_exec() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 5; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    std::fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // This program again, which only prints its list and never calls CUDA.
      execl("/proc/self/exe", "scenarios", "--list", static_cast<char*>(nullptr));
      _exit(127);
    }
    print_child(child);
    stream.wait();
    print("x", x);
  }
}

// The launches of a thread that has ended still count.
void thread_ends_with_launches_pending() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer x;
  for (unsigned round = 0; round < 6; ++round) {
    std::thread([&] {
      CHECK(cuCtxSetCurrent(device.context()));
      for (unsigned i = 0; i < 5; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    }).join();
    stream.wait();
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kHostScenarios = {
    {"exit_with_launches_pending", exit_with_launches_pending},
    {"underscore_exit_with_launches_pending", underscore_exit_with_launches_pending},
    {"exit_from_a_thread", exit_from_a_thread},
    {"abort_with_launches_pending", abort_with_launches_pending},
    {"spin_on_mapped_memory", spin_on_mapped_memory},
    {"fork_with_launches_pending", fork_with_launches_pending},
    {"fork_and_exec", fork_and_exec},
    {"thread_ends_with_launches_pending", thread_ends_with_launches_pending},
};

}  // namespace scenario
