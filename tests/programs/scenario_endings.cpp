// SPDX-License-Identifier: Apache-2.0
// Scenarios about handlers, signals and the ends of processes and threads: CUDA calls from places
// where the process is half gone. Each happens in a child; the parent never touches CUDA and prints
// what the child left in shared memory and how it ended.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <thread>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

constexpr std::size_t kPage = 4096;
constexpr unsigned kCodes = 64;  // words from here on: results, in order

// Shared by parent and child, and mapped for the device.
volatile unsigned* g_words;
CUdeviceptr g_mapped;
CUfunction g_count_up, g_publish;
CUstream g_stream;

void note(CUresult result) {
  const unsigned count = g_words[kCodes];
  g_words[kCodes + 1 + count] = static_cast<unsigned>(result) + 1;
  g_words[kCodes] = count + 1;
}

void print_page() {
  std::printf("count %u last %u:", g_words[0], g_words[1]);
  for (unsigned i = 0; i < g_words[kCodes]; ++i) {
    std::printf(" %s", error_name(static_cast<CUresult>(g_words[kCodes + 1 + i] - 1)));
  }
  std::printf("\n");
}

void start_cuda() {
  new Device;  // for the life of the process
  CUmodule module = nullptr;
  CHECK(cuModuleLoadData(&module, kScenarioPtx));
  g_count_up = function_of(module, "count_up");
  g_publish = function_of(module, "publish");
  CHECK(cuStreamCreate(&g_stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemHostRegister(const_cast<unsigned*>(g_words), kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
  CHECK(cuMemHostGetDevicePointer(&g_mapped, const_cast<unsigned*>(g_words), 0));
}

void launch_some(unsigned value) {
  for (unsigned i = 0; i < 3; ++i) {
    note(launch(g_count_up, {1, 1, 0}, g_stream, g_mapped, 1U));
    note(launch(g_publish, {1, 1, 0}, g_stream, g_mapped + sizeof(unsigned), value + i));
  }
}

void warm_up() {
  for (unsigned round = 0; round < 4; ++round) {
    launch_some(round);
    CHECK(cuStreamSynchronize(g_stream));
  }
  g_words[kCodes] = 0;
}

// Forks, runs `body` in the child, prints what it left.
template <typename Body>
void in_a_child(Body body, bool prints_page = true) {
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  g_words = static_cast<volatile unsigned*>(memory);
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);
    body();
    std::exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) std::printf("exit %d\n", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) std::printf("signal %d\n", WTERMSIG(status));
  if (prints_page) print_page();
  munmap(memory, kPage);
}

void quick_exit_with_launches_pending() {
  in_a_child([] {
    start_cuda();
    warm_up();
    launch_some(70);
    std::quick_exit(4);
  });
  in_a_child([] {
    std::at_quick_exit([] { launch_some(90); });
    start_cuda();
    warm_up();
    launch_some(70);
    std::quick_exit(4);
  });
}

struct LaunchesWhenDestroyed {
  explicit LaunchesWhenDestroyed(unsigned value) : value_(value) {}
  ~LaunchesWhenDestroyed() {
    if (value_ == 0) return;
    launch_some(value_);
    note(cuStreamSynchronize(g_stream));
  }
  LaunchesWhenDestroyed(const LaunchesWhenDestroyed&) = delete;
  LaunchesWhenDestroyed& operator=(const LaunchesWhenDestroyed&) = delete;

 private:
  unsigned value_;
};

// Handlers that were registered before CUDA started run after those that were registered later.
void calls_in_exit_handlers() {
  in_a_child([] {
    std::atexit([] {
      launch_some(300);
      note(cuStreamSynchronize(g_stream));
      note(cuCtxSynchronize());
    });
    static const LaunchesWhenDestroyed early(200);
    start_cuda();
    warm_up();
    static const LaunchesWhenDestroyed late(100);
    std::atexit([] { launch_some(50); });
    launch_some(10);
  });
}

// A thread's objects go when it ends, and that is before the process does.
void calls_in_thread_destructors() {
  in_a_child([] {
    start_cuda();
    warm_up();
    CUcontext context = nullptr;
    CHECK(cuCtxGetCurrent(&context));
    for (unsigned round = 0; round < 6; ++round) {
      std::thread([&] {
        thread_local const LaunchesWhenDestroyed at_end(100 * (round + 1));
        CHECK(cuCtxSetCurrent(context));
        launch_some(round);
        (void)at_end;
      }).join();
    }
    launch_some(7);
    // The rest is left to the end of the process.
    std::thread([&] {
      CHECK(cuCtxSetCurrent(context));
      launch_some(8);
    }).join();
  });
}

// Killed: the way it ends is the same.
void killed_with_launches_pending() {
  for (const int signal_number : {SIGTERM, SIGSEGV, SIGKILL, SIGABRT, SIGINT}) {
    in_a_child(
        [signal_number] {
          start_cuda();
          warm_up();
          launch_some(5);
          raise(signal_number);
        },
        false);
  }
}

// A handler ends the process in the middle of whatever it interrupted, as servers do at SIGTERM.
void exit_in_a_signal_handler() {
  for (int attempt = 0; attempt < 24; ++attempt) {
    in_a_child(
        [attempt] {
          start_cuda();
          warm_up();
          Stream other(CU_STREAM_NON_BLOCKING);
          std::signal(SIGALRM, [](int) { _exit(9); });
          itimerval when{};
          when.it_value.tv_usec = 3000 + attempt * 37;
          setitimer(ITIMER_REAL, &when, nullptr);
          for (unsigned round = 0;; ++round) {
            g_words[kCodes] = 0;
            launch_some(round);
            for (unsigned i = 0; i < 3; ++i) launch(g_count_up, {1, 1, 0}, other, g_mapped, 1U);
            if (round % 3 == 0) cuStreamSynchronize(g_stream);
            if (round % 5 == 0) cuCtxSynchronize();
          }
        },
        false);
  }
}

// Handlers that return, a thousand times a second, from launches and waits.
void interrupted_by_signals() {
  in_a_child([] {
    start_cuda();
    warm_up();
    struct sigaction action {};
    action.sa_handler = [](int) { g_words[2] = g_words[2] + 1; };
    sigaction(SIGALRM, &action, nullptr);  // without SA_RESTART
    itimerval often{};
    often.it_interval.tv_usec = often.it_value.tv_usec = 1000;
    setitimer(ITIMER_REAL, &often, nullptr);
    for (unsigned round = 0; round < 300; ++round) {
      g_words[kCodes] = 0;
      launch_some(round);
      note(cuStreamSynchronize(g_stream));
    }
    setitimer(ITIMER_REAL, new itimerval{}, nullptr);
  });
}

// The driver does not work in a forked child; what it answers is for the driver to say.
void cuda_in_a_forked_child() {
  CHECK(cuInit(0));
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 4; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    in_a_child([&] {
      CUdeviceptr memory = 0;
      CUcontext context = nullptr;
      note(launch(affine, {}, stream, x.at(), 3U, 1U, 64));
      note(cuStreamSynchronize(stream));
      note(cuCtxSynchronize());
      note(cuMemAlloc(&memory, 64));
      note(cuCtxGetCurrent(&context));
      note(cuInit(0));
      if (round % 2 == 1) _exit(3);
    });
    stream.wait();
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kEndingScenarios = {
    {"quick_exit_with_launches_pending", quick_exit_with_launches_pending},
    {"calls_in_exit_handlers", calls_in_exit_handlers},
    {"calls_in_thread_destructors", calls_in_thread_destructors},
    {"killed_with_launches_pending", killed_with_launches_pending},
    {"exit_in_a_signal_handler", exit_in_a_signal_handler},
    {"interrupted_by_signals", interrupted_by_signals},
    {"cuda_in_a_forked_child", cuda_in_a_forked_child},
};

}  // namespace scenario
