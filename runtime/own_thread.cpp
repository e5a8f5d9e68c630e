// SPDX-License-Identifier: Apache-2.0
#include "runtime/own_thread.h"

#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

namespace runtime {
namespace {

// The driver's just-in-time compiler runs on it where modules are loaded lazily; where the program
// limits its address space or locks its memory, less has to do.
constexpr std::size_t kStackSizes[] = {2u << 20, 512u << 10, 256u << 10};

// CPUs of the process as it was started: a program that pins its threads does so later. Written by
// the constructor. 8192: as many as kernels are built for; of fewer than it has the kernel tells
// nothing, more are 1 KiB of memory for nobody.
constexpr std::size_t kMostCpus = 8192;
unsigned long g_cpus[kMostCpus / 8 / sizeof(unsigned long)];
std::size_t g_cpu_bytes = 0;  // 0: not known

[[gnu::constructor]] void note_cpus() noexcept {
  const int saved_errno = errno;
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof g_cpus, g_cpus);
  g_cpu_bytes = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  errno = saved_errno;
}

// What the attributes could not say, or were not allowed to.
void* run_as_own(void* run) noexcept {
  if (g_cpu_bytes != 0) syscall(SYS_sched_setaffinity, 0, g_cpu_bytes, g_cpus);
  errno = 0;
  const auto self = static_cast<id_t>(syscall(SYS_gettid));
  const int nice = getpriority(PRIO_PROCESS, self);
  if (errno == 0 && nice > 0) setpriority(PRIO_PROCESS, self, 0);
  return reinterpret_cast<void* (*)(void*)>(run)(nullptr);
}

// By the starting thread, as it may be a real-time thread that never yields to the new one.
void set_scheduling(pthread_attr_t* attributes) noexcept {
  const sched_param parameters{};
  pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
  pthread_attr_setschedparam(attributes, &parameters);
  if (g_cpu_bytes != 0) {
    pthread_attr_setaffinity_np(attributes, g_cpu_bytes, reinterpret_cast<cpu_set_t*>(g_cpus));
  }
}

// A `stack` of 0 is the program's default.
int create(pthread_t* thread, void* run, std::size_t stack, bool sets_scheduling) noexcept {
  pthread_attr_t attributes;
  int failure = pthread_attr_init(&attributes);
  if (failure != 0) return failure;
  if (stack != 0) pthread_attr_setstacksize(&attributes, stack);
  if (sets_scheduling) set_scheduling(&attributes);
  failure = pthread_create(thread, &attributes, run_as_own, run);
  pthread_attr_destroy(&attributes);
  return failure;
}

int create_somehow(pthread_t* thread, void* run) noexcept {
  int failure = 0;
  for (const bool sets_scheduling : {true, false}) {
    for (const std::size_t stack : kStackSizes) {
      failure = create(thread, run, stack, sets_scheduling);
      if (failure == EINVAL) failure = create(thread, run, 0, sets_scheduling);
      if (failure == 0) return 0;
      if (failure == EPERM) break;  // a sandbox's word about the scheduling
    }
    if (failure != EPERM && failure != EINVAL) break;
  }
  return failure;
}

}  // namespace

int start_own_thread(pthread_t* thread, void* (*run)(void*)) noexcept {
  const int saved_errno = errno;
  // Blocked before the thread is there: it inherits the mask.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failure = create_somehow(thread, reinterpret_cast<void*>(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved_errno;
  return failure;
}

bool is_real_time_thread() noexcept {
  constexpr int kDeadline = 6, kResetOnFork = 0x40000000;
  const int saved_errno = errno;
  const long scheduler = syscall(SYS_sched_getscheduler, 0);
  errno = saved_errno;
  if (scheduler < 0) return false;
  const int policy = static_cast<int>(scheduler) & ~kResetOnFork;
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == kDeadline;
}

bool may_become_real_time() noexcept {
  const int saved_errno = errno;
  rlimit limit{};
  bool may = getrlimit(RLIMIT_RTPRIO, &limit) != 0 || limit.rlim_max != 0;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  may |= syscall(SYS_capget, &header, data) != 0 || (data[0].permitted & 1u << CAP_SYS_NICE) != 0;
  errno = saved_errno;
  return may;
}

}  // namespace runtime
