// SPDX-License-Identifier: Apache-2.0
// Each case runs in a child of its own: what it does to its threads cannot always be undone. A
// program of its own, because glibc uses the stacks of threads that have ended again.
#include "runtime/own_thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>

#include "tests/unit/catch.h"

namespace {

constexpr int kNotAllowed = 77;

int status_of(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

struct Seen {
  int policy;
  int priority;
  int cpus;
  int nice;
  bool blocks_all;
  std::size_t stack;
};
Seen g_seen;

void* look(void*) {
  sched_param parameters{};
  g_seen.policy = sched_getscheduler(0);  // pthread_getschedparam() remembers the first answer
  sched_getparam(0, &parameters);
  g_seen.priority = parameters.sched_priority;
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  g_seen.cpus = CPU_COUNT(&cpus);
  g_seen.nice = getpriority(PRIO_PROCESS, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  g_seen.blocks_all = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGPROF) == 1;
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &g_seen.stack);
  pthread_attr_destroy(&attributes);
  return nullptr;
}

bool run_own_thread(void* (*run)(void*)) {
  pthread_t thread;
  errno = 5;
  if (runtime::start_own_thread(&thread, run) != 0) return false;
  return errno == 5 && pthread_join(thread, nullptr) == 0;
}

int cpus_of_process() {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  return CPU_COUNT(&cpus);
}

void pin_to_one_cpu() {
  cpu_set_t cpus, one;
  sched_getaffinity(0, sizeof cpus, &cpus);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

bool become_real_time(int policy, int priority) {
  const sched_param parameters{priority};
  return sched_setscheduler(0, policy, &parameters) == 0;
}

}  // namespace

TEST_CASE("a thread of ours has none of its starter's limits") {
  const int status = status_of([] {
    const int cpus = cpus_of_process();
    pin_to_one_cpu();
    if (!run_own_thread(look)) return 1;
    if (g_seen.policy != SCHED_OTHER || !g_seen.blocks_all) return 2;
    if (g_seen.cpus != cpus) return 3;
    return g_seen.stack >= 256u << 10 && g_seen.stack <= 2u << 20 ? 0 : 4;
  });
  CHECK(status == 0);
}

TEST_CASE("a real-time thread that never yields has an ordinary one started") {
  for (const int policy : {SCHED_FIFO, SCHED_RR}) {
    const int status = status_of([policy] {
      pin_to_one_cpu();
      if (!become_real_time(policy, 50)) return kNotAllowed;
      if (!run_own_thread(look)) return 1;
      return g_seen.policy == SCHED_OTHER && g_seen.priority == 0 ? 0 : 2;
    });
    CHECK((status == 0 || status == kNotAllowed));
  }
}

TEST_CASE("niceness is not inherited where that is allowed") {
  const int status = status_of([] {
    setpriority(PRIO_PROCESS, 0, 10);
    if (!run_own_thread(look)) return 1;
    if (setpriority(PRIO_PROCESS, 0, 0) != 0) return kNotAllowed;
    return g_seen.nice == 0 ? 0 : 2;
  });
  CHECK((status == 0 || status == kNotAllowed));
}

TEST_CASE("a real-time thread is seen") {
  CHECK_FALSE(runtime::is_real_time_thread());
  for (const int policy : {SCHED_FIFO, SCHED_RR, SCHED_RR | SCHED_RESET_ON_FORK}) {
    const int status = status_of([policy] {
      if (!become_real_time(policy, 50)) return kNotAllowed;
      if (!runtime::may_become_real_time()) return 1;
      return runtime::is_real_time_thread() ? 0 : 2;
    });
    CHECK((status == 0 || status == kNotAllowed));
  }
}

TEST_CASE("without permission no thread becomes one") {
  const int status = status_of([] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_RTPRIO, &none);
    if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) return kNotAllowed;
    if (become_real_time(SCHED_FIFO, 1)) return kNotAllowed;  // a capability of its own
    return runtime::may_become_real_time() ? 1 : 0;
  });
  CHECK((status == 0 || status == kNotAllowed));
}

TEST_CASE("with little room for its stack a thread gets a smaller one") {
  const int status = status_of([] {
    unsigned long pages = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) return 3;
    std::fclose(file);
    const rlim_t room = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1u << 20);
    const rlimit limit{room, room};
    setrlimit(RLIMIT_AS, &limit);
    if (!run_own_thread(look)) return 1;
    return g_seen.stack < 1u << 20 ? 0 : 2;
  });
  CHECK(status == 0);
}
