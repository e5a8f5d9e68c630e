// SPDX-License-Identifier: Apache-2.0
// The system's clocks past whatever stands in front of clock_gettime(): programs are run under
// libraries that stop, jump or turn their time. Any thread; async-signal-safe; keeps errno.
#pragma once

#include <time.h>

#include <atomic>

namespace runtime {

using ClockReader = int (*)(clockid_t clock, timespec* time);

// The kernel's own function in this process, or the system call. Relaxed: a code address.
extern constinit std::atomic<ClockReader> g_clock_reader [[gnu::visibility("hidden")]];

inline timespec read_real_clock(clockid_t clock) noexcept {
  timespec time{};
  g_clock_reader.load(std::memory_order_relaxed)(clock, &time);
  return time;
}

}  // namespace runtime
