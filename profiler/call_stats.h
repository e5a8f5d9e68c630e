// SPDX-License-Identifier: Apache-2.0
// Calls and host time per driver entry. Each thread writes counters of its own; the report adds
// them up, those of ended threads included. record() runs on every thread inside the wrappers: no
// lock ever, no allocation but for a thread's first call and its first call of an entry, errno
// kept.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/entry.h"

namespace profiler {

// Set while calls are to be recorded. Off in a forked child.
extern constinit std::atomic<bool> g_profile_enabled;

// Eight buckets per power of two: a bucket is at most 12.5 % wide. Values from 2^41 up share the
// last one.
inline constexpr std::size_t kBucketCount = 8 + 8 * 38;
constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
  if (value < 8) return static_cast<std::size_t>(value);
  const unsigned exponent = 63u - static_cast<unsigned>(__builtin_clzll(value));
  const std::size_t bucket = 8u * (exponent - 2u) + ((value >> (exponent - 3u)) & 7u);
  return bucket < kBucketCount ? bucket : kBucketCount - 1;
}
// The smallest value of a bucket.
constexpr std::uint64_t bucket_floor(std::size_t bucket) noexcept {
  if (bucket < 8) return bucket;
  return (8u + bucket % 8u) << (bucket / 8u - 1u);
}

// Sums over threads, in ticks.
struct EntryTotals {
  std::uint64_t calls = 0;
  std::uint64_t total = 0;
  std::uint64_t min = UINT64_MAX;
  std::uint64_t max = 0;
  std::uint64_t flushed = 0;
  std::uint64_t buckets[kBucketCount] = {};

  // The middle of the bucket that holds the median, kept inside [min, max]; 0 without calls.
  std::uint64_t median() const noexcept;
};

class CallStats {
 public:
  // `flushed`: queued launches were submitted ahead of this call.
  static void record(runtime::EntryId entry, std::uint64_t start_ticks, std::uint64_t end_ticks,
                     bool flushed) noexcept;
  // What all threads recorded for `entry` so far.
  static EntryTotals totals(runtime::EntryId entry) noexcept;
  // Calls that could not be counted for want of memory.
  static std::uint64_t lost_calls() noexcept;
};

}  // namespace profiler
