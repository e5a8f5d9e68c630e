// SPDX-License-Identifier: Apache-2.0
// Where the stacks of other threads lie: the kernel knows where a thread's descriptor is (its list
// of robust mutexes is in it), and libc writes into the descriptor which memory it lies in. Both
// are read without asking the thread. Threads that libc did not make are not known.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace profiler {

struct ThreadStack {
  std::uintptr_t low, high;   // all of it is mapped while the thread lives, but for the first
                              // thread's, which grows downwards
  std::uintptr_t descriptor;  // what pthread_self() returns in it
};

// Finds out how descriptors look, from that of the calling thread, which is not the process's first
// one. False: it cannot be told.
bool learn_thread_stacks() noexcept;
// Any thread; the one that is asked for may end meanwhile.
[[nodiscard]] bool find_thread_stack(pid_t tid, ThreadStack* stack) noexcept;

}  // namespace profiler
