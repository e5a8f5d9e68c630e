// SPDX-License-Identifier: Apache-2.0
// Choice and calibration of the tick source.
#include "profiler/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace profiler {

constinit ClockStart g_clock_start{false, 0, 0};

namespace {

constexpr std::uint64_t kCalibrationNs = 1'000'000;

// "Invariant TSC": the counter runs at one rate in all power states, and Linux keeps it in step
// between cores.
bool has_invariant_tsc() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (1u << 8)) != 0;
#else
  return false;
#endif
}

}  // namespace

void start_clock() noexcept {
  g_clock_start.uses_tsc = has_invariant_tsc();
  g_clock_start.ns = monotonic_ns();
  g_clock_start.ticks = now_ticks();
}

double ns_per_tick() noexcept {
  if (!g_clock_start.uses_tsc) return 1.0;
  std::uint64_t ns = monotonic_ns();
  while (ns - g_clock_start.ns < kCalibrationNs) ns = monotonic_ns();
  const std::uint64_t ticks = now_ticks() - g_clock_start.ticks;
  if (ticks == 0) return 1.0;
  return static_cast<double>(ns - g_clock_start.ns) / static_cast<double>(ticks);
}

}  // namespace profiler
