// SPDX-License-Identifier: Apache-2.0
// Calls and host time per driver entry and per way of launching. Each thread writes counters of its
// own; the report adds them up, those of ended threads included. record() runs on every thread
// inside the wrappers: no lock ever, no allocation but for a thread's first call and its first call
// of an entry, errno kept.
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

// How a launch, or a batch of launches, came to the driver.
enum class LaunchKind : std::uint8_t {
  kQueued,    // the launch call put it into a queue; its submission is another record
  kDirect,    // the launch call submitted it
  kReplayed,  // a batch as one graph launch, building and patching included
  kOneByOne,  // a batch of queued launches, one driver call each
  kCount,
};

// What is counted: an entry of the table, a kind of launch, or what a sample of calls cost us.
inline constexpr std::size_t kOwnCostStat =
    runtime::kEntryCount + static_cast<std::size_t>(LaunchKind::kCount);
inline constexpr std::size_t kStatCount = kOwnCostStat + 1;
// Every so many calls of a thread are sampled: a third reading of the clock would be felt at each.
inline constexpr std::uint32_t kOwnCostEvery = 128;
constexpr std::size_t stat_of(runtime::EntryId entry) noexcept {
  return static_cast<std::size_t>(entry);
}
constexpr std::size_t stat_of(LaunchKind kind) noexcept {
  return runtime::kEntryCount + static_cast<std::size_t>(kind);
}

// The host memory that a copy reads or writes, as far as this library saw it being made.
enum class HostSide : std::uint8_t {
  kNone,      // no host side, or none of the copies that name one
  kUnknown,   // a unified address that was not page-locked in our sight
  kPageable,  // named as host memory, and nobody was seen to page-lock it
  kLocked,    // page-locked or managed by a call that we saw
};

// What a call was, beside its time.
struct CallFacts {
  bool flushed = false;    // queued launches were submitted inside it
  bool failed = false;     // neither success nor "not ready"
  bool not_ready = false;  // a query that found work in progress
  HostSide host = HostSide::kNone;
  std::uint64_t bytes = 0;      // moved or set
  std::uint64_t submit_ns = 0;  // of its time: submitting queued launches
};

// Sums over threads, in nanoseconds.
struct CallTotals {
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t min_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t flushed = 0;
  std::uint64_t failed = 0;
  std::uint64_t not_ready = 0;
  std::uint64_t amount = 0;    // bytes of an entry, launches of a launch kind
  std::uint64_t pageable = 0;  // calls by host side
  std::uint64_t locked = 0;
  std::uint64_t unknown = 0;
  std::uint64_t submit_ns = 0;
  std::uint64_t buckets[kBucketCount] = {};

  // The middle of the bucket that holds the quantile `part` of 1, kept inside [min, max]; 0 without
  // calls.
  std::uint64_t quantile_ns(double part) const noexcept;
};

class CallStats {
 public:
  static void record(std::size_t stat, std::uint64_t ns, const CallFacts& facts) noexcept;
  // A batch of launches. Its extremes and buckets are of nanoseconds per launch, so that a median
  // is a price.
  static void record_batch(LaunchKind kind, std::uint64_t ns, std::uint64_t launches) noexcept;
  // What all threads recorded so far.
  static CallTotals totals(std::size_t stat) noexcept;
  // Calls that could not be counted for want of memory.
  static std::uint64_t lost_calls() noexcept;
};

// What this thread submitted inside its calls, so that a wrapper can tell its own share.
struct Submissions {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;
};
extern constinit thread_local Submissions t_submissions [[gnu::tls_model("initial-exec")]];

}  // namespace profiler
