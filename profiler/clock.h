// SPDX-License-Identifier: Apache-2.0
// Ticks for timing driver calls: the time stamp counter where it is invariant, else
// CLOCK_MONOTONIC. now_ticks() and ns_between() run on every thread on the call path and must not
// allocate, lock or change errno. Everything that is kept is nanoseconds: reports of machines with
// different counters must merge.
#pragma once

#include <time.h>

#include <cstdint>

#include "runtime/real_clock.h"

namespace profiler {

// Written once by start_clock(), before profiling is enabled; until then a tick is a nanosecond.
struct Clock {
  bool uses_tsc = false;
  std::uint64_t ns_per_tick = std::uint64_t{1} << 32;  // times 2^32
  std::uint64_t start_ns = 0;                          // CLOCK_MONOTONIC
  std::uint64_t pair_ns = 0;                           // what two readings cost a call
};
extern constinit Clock g_clock;

inline std::uint64_t monotonic_ns() noexcept {
  const timespec now = runtime::read_real_clock(CLOCK_MONOTONIC);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t now_ticks() noexcept {
#if defined(__x86_64__)
  if (g_clock.uses_tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return monotonic_ns();
}

// Counters of two cores may be a few ticks apart: never negative.
inline std::uint64_t ns_between(std::uint64_t start_ticks, std::uint64_t end_ticks) noexcept {
  if (end_ticks <= start_ticks) return 0;
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>((Product{end_ticks - start_ticks} * g_clock.ns_per_tick) >> 32);
}

// Chooses the source and finds out what a tick is worth, which takes a millisecond where it is not
// known and can be found out. Call it once, before the first now_ticks().
void start_clock() noexcept;

}  // namespace profiler
