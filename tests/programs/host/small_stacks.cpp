// SPDX-License-Identifier: Apache-2.0
// Threads that use the CPU on stacks that are small, nearly used up, or not their own.
// small_stacks CASE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

constexpr std::size_t kSmallest = 16384;  // that pthreads have ever allowed

void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

// Keeps to its own frame.
void spin(int milliseconds = 400) {
  timespec start{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do {
    for (int i = 0; i < 10000; ++i) {
      __asm__ volatile("" : : : "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1'000'000 <
           milliseconds);
}

// Uses the stack until `left` bytes of it are left.
[[gnu::noinline]] void spin_deep(std::size_t left, int milliseconds = 400) {
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  require(pthread_getattr_np(pthread_self(), &attributes) == 0, "the stack is known");
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  char here;
  const auto room = static_cast<std::size_t>(&here - static_cast<char*>(low));
  require(room > left, "there is that much");
  auto* used = static_cast<char*>(__builtin_alloca(room - left));
  std::memset(used, 0x5a, room - left);
  spin(milliseconds);
  for (std::size_t i = 0; i < room - left; ++i) require(used[i] == 0x5a, "the stack is kept");
}

void run_on(std::size_t stack_bytes, void* (*run)(void*)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstacksize(&attributes, stack_bytes) == 0, "the size is allowed");
  pthread_t thread;
  require(pthread_create(&thread, &attributes, run, nullptr) == 0, "a thread starts");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

void smallest() {
  run_on(kSmallest, [](void*) -> void* {
    spin();
    return nullptr;
  });
}
void deep() {
  run_on(kSmallest, [](void*) -> void* {
    spin_deep(1500);
    return nullptr;
  });
  // A larger one, of which as little is left later.
  run_on(64 * 1024, [](void*) -> void* {
    spin_deep(2500);
    return nullptr;
  });
}

// Memory of the program below a stack that it gave to a thread.
void given() {
  constexpr std::size_t kBelow = 64 * 1024;
  static char memory[kBelow + kSmallest] __attribute__((aligned(4096)));
  std::memset(memory, 0x77, kBelow);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstack(&attributes, memory + kBelow, kSmallest) == 0, "it is taken");
  pthread_t thread;
  const auto run = [](void*) -> void* {
    spin_deep(1500);
    return nullptr;
  };
  require(pthread_create(&thread, &attributes, run, nullptr) == 0, "a thread starts");
  pthread_join(thread, nullptr);
  for (std::size_t i = 0; i < kBelow; ++i) require(memory[i] == 0x77, "memory below is kept");
}

void with_signal_stack(std::size_t bytes, void (*run)()) {
  void* memory = mmap(nullptr, 65536 + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* top = static_cast<char*>(memory) + 65536;
  const std::size_t pages = (bytes + 4095) / 4096 * 4096;
  require(mprotect(top - pages, pages, PROT_READ | PROT_WRITE) == 0, "it can be used");
  const stack_t next{top - bytes, 0, bytes};
  require(sigaltstack(&next, nullptr) == 0, "it is set");
  stack_t now{};
  require(sigaltstack(nullptr, &now) == 0 && now.ss_sp == next.ss_sp && now.ss_size == bytes,
          "it is what was set");
  run();
  const stack_t none{nullptr, SS_DISABLE, 0};
  require(sigaltstack(&none, &now) == 0 && now.ss_size == bytes, "it is what was set still");
}

// From the least that the kernel takes; set before the thread is sampled, and while it is.
void alternative() {
  for (const std::size_t bytes : {2048, 4096, 8192, 65536})
    with_signal_stack(bytes, [] { spin(); });
  run_on(256 * 1024, [](void*) -> void* {
    with_signal_stack(2048, [] { spin(); });
    return nullptr;
  });
  stack_t tiny{nullptr, 0, 100};
  require(sigaltstack(&tiny, nullptr) == -1 && errno == ENOMEM, "too small a stack is refused");
  require(sigaltstack(reinterpret_cast<stack_t*>(8), nullptr) == -1 && errno == EFAULT,
          "a pointer that is none is refused");
  spin();
}

// A handler of the program's that works on an alternative stack of the usual size.
void handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { spin(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  with_signal_stack(8192, [] {
    spin();
    raise(SIGUSR1);
  });
}

// A coroutine, on a stack of its own that is not much larger than a signal needs.
void coroutine() {
  constexpr std::size_t kBytes = 32 * 1024;
  static ucontext_t here, there;
  static char memory[kBytes] __attribute__((aligned(4096)));
  getcontext(&there);
  there.uc_stack.ss_sp = memory;
  there.uc_stack.ss_size = kBytes;
  there.uc_link = &here;
  makecontext(
      &there, [] { spin(); }, 0);
  swapcontext(&here, &there);
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"smallest", smallest},       {"deep", deep},       {"given", given},
    {"alternative", alternative}, {"handler", handler}, {"coroutine", coroutine},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 7;
  tiny::start();
  tiny::bump(1);
  // Binds what is called on small stacks: the loader needs room for all registers. So large that
  // libc does not give its stack to a later thread.
  run_on(4 << 20, [](void*) -> void* {
    spin_deep(128 * 1024, 0);
    return nullptr;
  });
  for (const Case& each : kCases) {
    if (std::strcmp(each.name, arguments[1]) == 0) each.run();
  }
  std::printf("%s: %u\n", arguments[1], tiny::cell());
  return 0;
}
