// SPDX-License-Identifier: Apache-2.0
// Ticks for timing driver calls: the time stamp counter where it is invariant, else
// CLOCK_MONOTONIC. now_ticks() runs on every thread on the call path and must not allocate, lock or
// change errno. What a tick is worth is found out only when the report is written.
#pragma once

#include <time.h>

#include <cstdint>

namespace profiler {

struct ClockStart {
  bool uses_tsc;        // written once by start_clock(), before profiling is enabled
  std::uint64_t ticks;  // both 0 until then: ticks are nanoseconds
  std::uint64_t ns;
};
extern constinit ClockStart g_clock_start;

inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t now_ticks() noexcept {
#if defined(__x86_64__)
  if (g_clock_start.uses_tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return monotonic_ns();
}

// Chooses the source and notes where it stands. Call it once, before the first now_ticks().
void start_clock() noexcept;

// Nanoseconds a tick, from the time since start_clock(). Spins until that is a millisecond: the two
// clocks are read some 50 ns apart, so the error stays below 0.01 %.
double ns_per_tick() noexcept;

}  // namespace profiler
