// SPDX-License-Identifier: Apache-2.0
// A program that polls mapped memory for the result of a launch, in a process where threads of the
// library are hard to have: threads WHAT. Says what it saw; status 1 if a poll did not end.
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/programs/host/tiny.h"

namespace {

volatile unsigned* g_host;
bool g_has_no_threads = false;

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void start() {
  tiny::start();
  void* memory;
  CHECK(cuMemHostAlloc(&memory, 4, CU_MEMHOSTALLOC_DEVICEMAP));
  g_host = static_cast<unsigned*>(memory);
  *g_host = 0;
  CHECK(cuMemHostGetDevicePointer(&tiny::g_cell, memory, 0));
}

// Launches and polls without a call in between.
void steps(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const unsigned wanted = *g_host + 1;
    tiny::bump(1);
    const double begin = seconds();
    while (*g_host != wanted) {
      if (seconds() - begin > 20) {
        std::printf("still waiting for %u\n", wanted);
        std::fflush(stdout);
        std::_Exit(1);
      }
    }
  }
  std::printf("at %u\n", *g_host);
}

bool set_policy(int policy) {
  sched_param parameters{};
  parameters.sched_priority = policy == SCHED_FIFO || policy == SCHED_RR ? 50 : 0;
  return sched_setscheduler(0, policy, &parameters) == 0;
}

void pin() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &set)) --last;
  CPU_ZERO(&set);
  CPU_SET(last, &set);
  sched_setaffinity(0, sizeof set, &set);
}

std::string first_line(const std::string& path) {
  char text[256] = "";
  if (FILE* file = std::fopen(path.c_str(), "r")) {
    if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
    std::fclose(file);
  }
  text[std::strcspn(text, "\n")] = '\0';
  return text;
}

// Policy, nice value, number of cores and signal mask of the threads that are called cajeta-*.
void show_threads() {
  cpu_set_t set;
  DIR* tasks = opendir("/proc/self/task");
  while (dirent* entry = readdir(tasks)) {
    const std::string task = std::string("/proc/self/task/") + entry->d_name;
    const std::string name = first_line(task + "/comm");
    if (name.rfind("cajeta-", 0) != 0) continue;
    const int tid = std::atoi(entry->d_name);
    CPU_ZERO(&set);
    sched_getaffinity(tid, sizeof set, &set);
    std::printf("%s policy %d nice %d cores %d", name.c_str(), sched_getscheduler(tid),
                getpriority(PRIO_PROCESS, static_cast<id_t>(tid)), CPU_COUNT(&set));
    if (FILE* file = std::fopen((task + "/status").c_str(), "r")) {
      char line[256];
      while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::strncmp(line, "SigBlk:", 7) == 0) std::printf(" blocked %.16s", line + 8);
      }
      std::fclose(file);
    }
    std::printf("\n");
  }
  closedir(tasks);
}

int become(int policy, bool pins, bool before) {
  if (!before) {
    start();
    steps(3);
  }
  if (pins) pin();
  if (!set_policy(policy)) return 77;
  if (before) start();
  steps(20);
  return 0;
}

// A thread that another one makes real-time.
int made_real_time() {
  start();
  steps(3);
  static int status = 0;
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        CHECK(cuCtxSetCurrent(tiny::g_context));
        steps(3);
        sched_param parameters{};
        parameters.sched_priority = 50;
        if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) != 0) {
          status = 77;
        } else {
          steps(20);
        }
        return nullptr;
      },
      nullptr);
  pthread_join(thread, nullptr);
  return status;
}

int without_threads(bool for_good) {
  start();
  g_has_no_threads = true;
  steps(20);
  g_has_no_threads = for_good;
  steps(100);
  return 0;
}

int inherits() {
  start();
  pin();
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 0);
  if (!set_policy(SCHED_BATCH)) return 77;
  steps(1);
  show_threads();
  return 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*run)(void*), void* argument) {
  if (g_has_no_threads) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, run, argument);
}

int main(int, char** arguments) {
  const std::string_view what = arguments[1];
  if (what == "none-for-now") return without_threads(false);
  if (what == "none") return without_threads(true);
  if (what == "inherits") return inherits();
  if (what == "made") return made_real_time();
  // POLICY-WHEN-WHERE
  const int policy = what.starts_with("fifo") ? SCHED_FIFO : SCHED_RR;
  return become(policy, what.ends_with("pinned"), what.find("-before") != what.npos);
}
