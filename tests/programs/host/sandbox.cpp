// SPDX-License-Identifier: Apache-2.0
// Programs whose children or sandboxes punish what a profiler might do meanwhile.
// sandbox fork|filter
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

std::atomic<bool> g_is_over{false};

// Launches all the time, so that there is always something to look at.
void* keep_launching(void*) {
  CHECK(cuCtxSetCurrent(tiny::g_context));
  while (!g_is_over) {
    for (int i = 0; i < 50; ++i) tiny::bump(1);
    CHECK(cuCtxSynchronize());
  }
  return nullptr;
}

// Every child takes the loader's lock; one that was locked at the fork would never let it.
void load_in_children() {
  pthread_t thread;
  pthread_create(&thread, nullptr, &keep_launching, nullptr);
  int ended = 0;
  for (int i = 0; i < 400; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      void* library = dlopen("libresolv.so.2", RTLD_NOW);
      syscall(SYS_exit_group, library != nullptr ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) == child && status == 0) ++ended;
  }
  g_is_over = true;
  pthread_join(thread, nullptr);
  std::printf("%d children ended\n", ended);
}

// Kills for the call by which one process reads the memory of another.
void filter_calls() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {4, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::_Exit(77);
  timespec start{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do {
    tiny::bump(1);
    if (tiny::cell() == 0) std::_Exit(91);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1'000'000 < 400);
  std::puts("alive");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 7;
  tiny::start();
  if (std::strcmp(arguments[1], "fork") == 0) load_in_children();
  if (std::strcmp(arguments[1], "filter") == 0) filter_calls();
  return 0;
}
