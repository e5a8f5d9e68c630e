// SPDX-License-Identifier: Apache-2.0
// What programs do with signals while their threads use the CPU. A signal that the program has not
// sent itself is told on standard output, and so is one that does not come.
// signals CASE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

const char* g_program;
std::atomic<int> g_seen[NSIG];

// Long enough for several looks of a sampler, and some hundred samples. `step` is called on the
// way.
template <typename Step>
void burn_and(Step step) {
  timespec start{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do {
    tiny::bump(1);
    if (tiny::cell() == 0) std::_Exit(91);
    step();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 250);
}

void burn() {
  burn_and([] {});
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

void say_seen() {
  int all = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (g_seen[signal] == 0) continue;
    std::printf("signal %d came %d times\n", signal, g_seen[signal].load());
    all += g_seen[signal];
  }
  std::printf("%d signals\n", all);
}

sigset_t block_all() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return all;
}

void read_by_descriptor() {
  burn();
  const sigset_t all = block_all();
  const int file = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
  const auto read_all = [file] {
    signalfd_siginfo info;
    while (read(file, &info, sizeof info) == sizeof info) ++g_seen[info.ssi_signo];
  };
  burn_and(read_all);
  raise(SIGUSR1);
  read_all();
  say_seen();
}

void wait_for_all() {
  burn();
  const sigset_t all = block_all();
  const auto take_all = [&all] {
    const timespec at_once{};
    int signal = 0;
    while ((signal = sigtimedwait(&all, nullptr, &at_once)) > 0) ++g_seen[signal];
  };
  burn_and(take_all);
  raise(SIGUSR1);
  take_all();
  say_seen();
}

// Also those above SIGRTMIN; libc refuses two.
void handle_all() {
  burn();
  struct sigaction action {};
  action.sa_handler = [](int signal) { ++g_seen[signal]; };
  int refused = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigaction(signal, &action, nullptr) != 0) ++refused;
  }
  burn();
  raise(SIGPROF);
  raise(SIGRTMAX);
  say_seen();
  std::printf("%d refused\n", refused);
}

void set_defaults() {
  burn();
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  burn();
  say_seen();
}

void* spin(void*) {
  int before = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  for (;;) {
  }
}

// What the thread's end sees is what it would have seen alone.
void say_mask(void*) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  int blocked = 0;
  for (int signal = 1; signal < NSIG; ++signal) blocked += sigismember(&mask, signal) == 1 ? 1 : 0;
  std::printf("cleaned up with %d signals blocked\n", blocked);
}

void* sleep_on(void*) {
  pthread_cleanup_push(&say_mask, nullptr);
  for (;;) sleep(100);
  pthread_cleanup_pop(0);
}

void cancel_one(void* (*run)(void*)) {
  pthread_t thread;
  void* result = nullptr;
  require(pthread_create(&thread, nullptr, run, nullptr) == 0, "a thread starts");
  burn();
  pthread_cancel(thread);
  pthread_join(thread, &result);
  require(result == PTHREAD_CANCELED, "the thread was cancelled");
}

void cancel_threads() {
  for (int round = 0; round < 2; ++round) {
    cancel_one(&spin);
    cancel_one(&sleep_on);
  }
  std::puts("cancelled");
}

void use_timer_thread() {
  burn();
  static std::atomic<int> calls{0};
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) { ++calls; };
  timer_t timer;
  require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "a timer is created");
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  require(timer_settime(timer, 0, &period, nullptr) == 0, "the timer is set");
  while (calls < 20) burn();
  timer_delete(timer);
  std::puts("called");
}

// libc has every thread do it, and waits for them.
void change_identity() {
  static std::atomic<bool> is_over{false};
  pthread_t threads[2];
  for (pthread_t& thread : threads) {
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          while (!is_over) {
          }
          return nullptr;
        },
        nullptr);
  }
  burn();
  for (int i = 0; i < 20; ++i) {
    require(setgid(getgid()) == 0 && setuid(getuid()) == 0, "the identity is set");
  }
  burn();
  is_over = true;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  std::puts("identity set");
}

int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0) {
  }
  return status;
}

extern "C" char** environ;

void start_programs() {
  burn();
  const char* arguments[] = {g_program, "end", nullptr};
  pid_t child = -1;
  require(
      posix_spawn(&child, g_program, nullptr, nullptr, const_cast<char**>(arguments), environ) == 0,
      "a program is spawned");
  std::printf("spawned: %d\n", status_of(child));
  child = fork();
  if (child == 0) {
    timespec start{}, now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec == start.tv_sec && now.tv_nsec - start.tv_nsec < 100'000'000);
    execve(g_program, const_cast<char**>(arguments), environ);
    _exit(92);
  }
  std::printf("forked: %d\n", status_of(child));
  std::fflush(stdout);
  burn();
  execve(g_program, const_cast<char**>(arguments), environ);
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"descriptor", read_by_descriptor}, {"wait", wait_for_all},       {"handlers", handle_all},
    {"defaults", set_defaults},         {"cancel", cancel_threads},   {"timer", use_timer_thread},
    {"identity", change_identity},      {"programs", start_programs},
};

}  // namespace

int main(int count, char** arguments) {
  g_program = arguments[0];
  if (count != 2 || std::strcmp(arguments[1], "end") == 0) return 7;
  tiny::start();
  for (const Case& each : kCases) {
    if (std::strcmp(each.name, arguments[1]) == 0) each.run();
  }
  return 0;
}
