// SPDX-License-Identifier: Apache-2.0
// Programs that a signal ends in some unusual way: KIND [FOLDER]. Their status must be what it is
// without the library.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

const char* g_folder;

void start() {
  tiny::start();
  for (int i = 0; i < 50; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
  std::fflush(stdout);
}

void run_on(std::size_t stack_bytes, void* (*run)(void*)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) std::_Exit(91);
  pthread_join(thread, nullptr);
}

void die_on_small_stack() {
  start();
  run_on(16 * 1024, [](void*) -> void* {
    [[maybe_unused]] volatile char used[4096];
    used[0] = 1;
    pthread_kill(pthread_self(), SIGTERM);
    return nullptr;
  });
}

void exit_on_small_stack() {
  start();
  run_on(16 * 1024, [](void*) -> void* { exit(7); });
}

// The shape of a runtime that turns an overflow into a message and abort().
void say_and_abort(int) {
  static const char kText[] = "overflow\n";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0) return;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &standard, nullptr);
  abort();
}

[[gnu::noinline]] unsigned overflow(unsigned depth) {
  volatile char used[256];
  used[0] = static_cast<char>(depth);
  return depth == ~0U ? 0 : overflow(depth + 1) + static_cast<unsigned>(used[0]);
}

// 8 KiB and a guard page, as Rust has it.
void use_alternative_stack() {
  const std::size_t page = 4096, size = 2 * page;
  char* stack =
      static_cast<char*>(mmap(nullptr, page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(stack + page, size, PROT_READ | PROT_WRITE);
  stack_t alternative{};
  alternative.ss_sp = stack + page;
  alternative.ss_size = size;
  if (sigaltstack(&alternative, nullptr) != 0) std::_Exit(92);
}

void abort_on_alternative_stack() {
  struct sigaction action {};
  action.sa_handler = say_and_abort;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  start();
  run_on(64 * 1024, [](void*) -> void* {
    use_alternative_stack();
    std::printf("%u\n", overflow(0));
    return nullptr;
  });
}

void term_on_alternative_stack() {
  start();
  use_alternative_stack();
  raise(SIGTERM);
}

// Handlers that come later and pass the signal on to what was there before.
struct sigaction g_before;

void pass_on_number(int number) {
  std::printf("one\n");
  std::fflush(stdout);
  if (g_before.sa_handler != SIG_DFL) return g_before.sa_handler(number);
  signal(number, SIG_DFL);
  raise(number);
}

void pass_on_all(int number, siginfo_t* info, void* context) {
  std::printf("three\n");
  std::fflush(stdout);
  if (g_before.sa_handler != SIG_DFL) return g_before.sa_sigaction(number, info, context);
  signal(number, SIG_DFL);
  raise(number);
}

void chain(int number, bool has_info) {
  start();
  struct sigaction action {};
  if (has_info) {
    action.sa_sigaction = pass_on_all;
    action.sa_flags = SA_SIGINFO;
  } else {
    action.sa_handler = pass_on_number;
  }
  sigaction(number, &action, &g_before);
  if (number == SIGSEGV) {
    *static_cast<volatile int*>(nullptr) = 1;
  } else {
    raise(number);
  }
  sleep(1);
  std::printf("alive\n");
}

void chain_number() {
  chain(SIGTERM, false);
}
void chain_info() {
  chain(SIGTERM, true);
}
void chain_fault() {
  chain(SIGSEGV, true);
}

void trap_a_system_call() {
  start();
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::_Exit(93);
  getppid();
  std::printf("alive\n");
}

void meet_a_memory_error() {
  start();
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = BUS_MCEERR_AO;
  syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGBUS, &info);
  std::printf("alive\n");
}

// Blocked but for the wait, as in programs that wait for signals and descriptors.
void die_in_ppoll() {
  start();
  sigset_t term, none;
  sigemptyset(&none);
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  kill(getpid(), SIGTERM);
  const timespec at_once{0, 0};
  ppoll(nullptr, 0, &at_once, &none);
  std::printf("alive\n");
}

void fault() {
  start();
  *static_cast<volatile int*>(nullptr) = 1;
}

// Two threads at once.
void die_twice() {
  start();
  pthread_t threads[2];
  for (pthread_t& thread : threads) {
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          kill(getpid(), SIGTERM);
          pause();
          return nullptr;
        },
        nullptr);
  }
  pause();
}

void reset_by_itself() {
  start();
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGTERM, &action, nullptr);
  raise(SIGTERM);
  std::printf("once\n");
  std::fflush(stdout);
  raise(SIGTERM);
}

void child_of_vfork() {
  start();
  const pid_t child = vfork();
  if (child == 0) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status);
  std::fflush(stdout);
  raise(SIGTERM);
}

// Told to end as soon as anything appears in the folder.
void* watch(void*) {
  const int notes = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(notes, g_folder, IN_CREATE | IN_MOVED_TO);
  std::printf("watching\n");
  std::fflush(stdout);
  char buffer[4096];
  if (read(notes, buffer, sizeof buffer) > 0) kill(getpid(), SIGTERM);
  return nullptr;
}

void term_while_exiting() {
  start();
  pthread_t watcher;
  pthread_create(&watcher, nullptr, watch, nullptr);
  while (pthread_kill(watcher, 0) != 0) sched_yield();
  usleep(100'000);
}

void term_in_snapshot() {
  start();
  const int notes = inotify_init1(IN_CLOEXEC);
  inotify_add_watch(notes, g_folder, IN_CREATE | IN_MOVED_TO);
  raise(SIGUSR1);
  char buffer[4096];
  if (read(notes, buffer, sizeof buffer) > 0) kill(getpid(), SIGTERM);
  pause();
}

void plain() {
  start();
}

void plain_after_exec() {
  start();
  execl("/proc/self/exe", "dying", "plain", nullptr);
}

// Until standard input ends.
void wait_for_input() {
  start();
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

// Asks for snapshots, each of which the report thread has time for.
void ask_for_snapshots() {
  start();
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR1);
    usleep(20'000);
  }
}

}  // namespace

int main(int count, char** arguments) {
  g_folder = count > 2 ? arguments[2] : ".";
  const struct {
    const char* name;
    void (*run)();
  } kinds[] = {{"small", die_on_small_stack},
               {"small_exit", exit_on_small_stack},
               {"alternative_abort", abort_on_alternative_stack},
               {"alternative_term", term_on_alternative_stack},
               {"chain_number", chain_number},
               {"chain_info", chain_info},
               {"chain_fault", chain_fault},
               {"trap", trap_a_system_call},
               {"memory_error", meet_a_memory_error},
               {"ppoll", die_in_ppoll},
               {"fault", fault},
               {"twice", die_twice},
               {"reset", reset_by_itself},
               {"vfork", child_of_vfork},
               {"exiting", term_while_exiting},
               {"snapshot", term_in_snapshot},
               {"plain", plain},
               {"exec", plain_after_exec},
               {"waits", wait_for_input},
               {"asks", ask_for_snapshots}};
  for (const auto& each : kinds) {
    if (std::strcmp(each.name, arguments[1]) == 0) each.run();
  }
}
