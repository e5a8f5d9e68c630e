// SPDX-License-Identifier: Apache-2.0
#include "profiler/report_triggers.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
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

// The thread that writes the dying report, and the signal that came to it.
constinit std::atomic<pid_t> g_dying_thread{0};
int g_dying_signal = 0;
pid_t g_owner = 0;  // written before the handlers are put

// Set to its default and sent again with what it said of its sender, it is delivered when the
// handler returns, before the program goes on: with the program's registers, whether or not what
// raised it would happen again. `context`: where the kernel will read the mask to go on with, which
// may be one that blocks the signal (it came to a ppoll()); null: a handler of the program called
// ours.
void let_it_kill(int number, siginfo_t* info, ucontext_t* context) noexcept {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(number, &standard, nullptr);
  const long thread = syscall(SYS_gettid);
  if (context != nullptr) {
    sigdelset(&context->uc_sigmask, number);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, info) == 0) return;
  }
  if (syscall(SYS_tgkill, getpid(), thread, number) != 0) raise(number);
}

// At once, from inside the handler.
void kill_now(int number) noexcept {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(number, &standard, nullptr);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

// Another thread is dying, by the signal that came first.
void wait_to_be_killed() noexcept {
  // 6 s: longer than that thread may wait for a report.
  for (int ms = 0; ms < 6000; ++ms) {
    const timespec millisecond{0, 1'000'000};
    nanosleep(&millisecond, nullptr);
  }
}

void report_death(int number) noexcept {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  pid_t dying = 0;
  if (g_dying_thread.compare_exchange_strong(dying, self)) {
    g_dying_signal = number;
    write_dying_report();
  } else if (dying == self) {
    kill_now(g_dying_signal);  // a fault of our own: the first signal is what killed the program
  } else {
    wait_to_be_killed();
  }
}

// Async-signal-safe: static memory, system calls, and formatting that takes no lock. On next to no
// stack: what is large runs on ours.
[[gnu::noinline]] void on_fatal(int number, siginfo_t* info, void* context) noexcept {
  const int saved_errno = errno;
  // The kernel lays the context right above the return address.
  const bool is_from_kernel = context == __builtin_dwarf_cfa();
  // A child of vfork() shares our memory.
  if (getpid() == g_owner) report_death(number);
  let_it_kill(number, info, is_from_kernel ? static_cast<ucontext_t*>(context) : nullptr);
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
  g_owner = getpid();
  struct sigaction fatal {};
  fatal.sa_sigaction = on_fatal;
  fatal.sa_flags = SA_SIGINFO | SA_ONSTACK;  // a stack of Go's or Rust's may end at once
  sigfillset(&fatal.sa_mask);
  for (const int number : kFaults) {
    sigdelset(&fatal.sa_mask, number);  // a fault of our own in the handler must kill, not hang
  }
  for (const int number : kFaults) install(number, fatal);
  // The first process of a container is sent no signal that it does not handle: nothing of this
  // kills it, so there is nothing to write before.
  if (g_owner == 1) return;
  for (const int number : kOrders) {
    if (number != signal) install(number, fatal);
  }
}

}  // namespace profiler
