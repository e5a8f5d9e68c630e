// SPDX-License-Identifier: Apache-2.0
// Choice and calibration of the tick source.
#include "profiler/clock.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/float_scope.h"

namespace profiler {

constinit Clock g_clock;

namespace {

// 1 ms: both ends are read within some 50 ns, so a tick is known to 0.01 %. Longer would be felt at
// the program's first CUDA call.
constexpr std::uint64_t kCalibrationNs = 1'000'000;
// Two readings of the clock around one of the counter that lie further apart were interrupted.
constexpr std::uint64_t kInterruptedNs = 500;
constexpr int kTries = 100;

struct Reading {
  std::uint64_t ns;
  std::uint64_t ticks;
};

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

// Both clocks at one moment.
Reading read_both() noexcept {
  Reading best{monotonic_ns(), now_ticks()};
  std::uint64_t best_gap = UINT64_MAX;
  for (int attempt = 0; attempt < kTries && best_gap > kInterruptedNs; ++attempt) {
    const std::uint64_t before = monotonic_ns();
    const std::uint64_t ticks = now_ticks();
    const std::uint64_t gap = monotonic_ns() - before;
    if (gap >= best_gap) continue;
    best_gap = gap;
    best = {before + gap / 2, ticks};
  }
  return best;
}

// The least of several rounds: interruptions only add.
std::uint64_t cost_of_pair() noexcept {
  constexpr std::uint64_t kPairs = 64;
  std::uint64_t least = UINT64_MAX;
  for (int round = 0; round < 8; ++round) {
    const std::uint64_t start = monotonic_ns();
    for (std::uint64_t reading = 0; reading < 2 * kPairs; ++reading) (void)now_ticks();
    least = std::min(least, (monotonic_ns() - start) / kPairs);
  }
  return least;
}

// Ends on a clock that stands still, or goes backwards, too.
void wait_for_calibration(std::uint64_t start_ns) noexcept {
  constexpr int kMostReadings = 1'000'000;
  for (int reading = 0; reading < kMostReadings; ++reading) {
    if (monotonic_ns() - start_ns >= kCalibrationNs) return;
  }
}

// False: the two clocks do not go together.
bool calibrate() noexcept {
  const Reading first = read_both();
  wait_for_calibration(first.ns);
  const Reading second = read_both();
  if (second.ns <= first.ns || second.ticks <= first.ticks) return false;
  const double ns = static_cast<double>(second.ns - first.ns);
  const double ns_per_tick = ns / static_cast<double>(second.ticks - first.ticks);
  // Counters run at some 20 MHz to 10 GHz.
  if (ns_per_tick < 0.1 || ns_per_tick > 50) return false;
  g_clock.ns_per_tick = static_cast<std::uint64_t>(ns_per_tick * 0x1p32);
  return true;
}

}  // namespace

void start_clock() noexcept {
  const runtime::DefaultFloats scope;
  g_clock.start_ns = monotonic_ns();
  g_clock.uses_tsc = has_invariant_tsc();
  if (g_clock.uses_tsc && !calibrate()) g_clock.uses_tsc = false;
  g_clock.pair_ns = cost_of_pair();
}

}  // namespace profiler
