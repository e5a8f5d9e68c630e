// SPDX-License-Identifier: Apache-2.0
#include "profiler/report_triggers.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "profiler/exit_report.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"

namespace profiler {
namespace {

// What kills by default and is neither uncatchable nor a common means of talking (PIPE, ALRM, USR).
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
constexpr int kOrders[] = {SIGABRT, SIGTERM, SIGINT, SIGHUP, SIGQUIT};

std::uint64_t g_every_s = 0;                         // written before the thread starts
constinit std::atomic<std::uint32_t> g_requests{0};  // counted up by the handler

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

void* run(void*) noexcept {
  pthread_setname_np(pthread_self(), "cajeta-report");
  std::uint32_t seen = 0;
  for (;;) {
    const timespec period{static_cast<time_t>(g_every_s), 0};
    const long waited =
        futex(g_requests, FUTEX_WAIT_PRIVATE, seen, g_every_s != 0 ? &period : nullptr);
    const bool is_time = waited != 0 && errno == ETIMEDOUT;
    const std::uint32_t requests = g_requests.load(std::memory_order_relaxed);
    if (is_time || requests != seen) write_snapshot();
    seen = requests;
  }
}

void on_request(int) noexcept {
  const int saved_errno = errno;
  g_requests.fetch_add(1, std::memory_order_relaxed);
  futex(g_requests, FUTEX_WAKE_PRIVATE, 1, nullptr);
  errno = saved_errno;
}

bool is_fault(int number) noexcept {
  for (const int fault : kFaults) {
    if (number == fault) return true;
  }
  return false;
}

// Async-signal-safe: static memory, system calls, and formatting that takes no lock.
void on_fatal(int number, siginfo_t* info, void*) noexcept {
  const int saved_errno = errno;
  write_dying_report();
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(number, &standard, nullptr);
  // A fault happens again on return. Anything else is sent again, with what it said of its sender,
  // and is delivered when this handler returns.
  if (!is_fault(number) || info->si_code <= 0) {
    const long thread = syscall(SYS_gettid);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, info) != 0) raise(number);
  }
  errno = saved_errno;
}

// False when the program has a say in this signal already.
bool install(int number, const struct sigaction& wanted) noexcept {
  struct sigaction present {};
  if (sigaction(number, nullptr, &present) != 0) return false;
  if ((present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL) return false;
  return sigaction(number, &wanted, nullptr) == 0;
}

void start_thread() noexcept {
  pthread_t thread;
  const int failure = runtime::start_own_thread(&thread, &run);
  if (failure == 0) {
    pthread_detach(thread);
  } else {
    runtime::warn("no report thread (error %d): there will be no report before the end", failure);
  }
}

}  // namespace

void start_report_triggers(std::uint64_t every_s, int signal) noexcept {
  g_every_s = every_s;
  if (every_s != 0 || signal != 0) start_thread();
  if (signal != 0) {
    struct sigaction request {};
    request.sa_handler = on_request;
    request.sa_flags = SA_RESTART;
    if (!install(signal, request)) {
      runtime::warn("CAJETA_XPU_REPORT_SIGNAL: the program handles signal %d itself", signal);
    }
  }
  struct sigaction fatal {};
  fatal.sa_sigaction = on_fatal;
  fatal.sa_flags = SA_SIGINFO;
  sigfillset(&fatal.sa_mask);
  for (const int number : kFaults) {
    sigdelset(&fatal.sa_mask, number);  // a fault of our own in the handler must kill, not hang
  }
  for (const int number : kFaults) install(number, fatal);
  for (const int number : kOrders) {
    if (number != signal) install(number, fatal);
  }
}

}  // namespace profiler
