// SPDX-License-Identifier: Apache-2.0
// What the kernel says of this process's threads. No allocation, so that an exiting thread may ask
// too, whatever it was doing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace profiler {

// The ids of all threads. False: the list could not be read to its end.
bool list_threads(void (*take)(void* context, pid_t tid), void* context) noexcept;

struct ThreadStatus {
  char name[16];
  std::uint64_t blocked_signals;  // bit signal - 1
  bool is_filtered;               // its system calls (seccomp)
};
bool read_thread_status(pid_t tid, ThreadStatus* status) noexcept;

}  // namespace profiler
