// SPDX-License-Identifier: Apache-2.0
// Counters of threads add up, outlive their threads, and medians stay inside their bucket. Each
// test uses entries of its own, because the counters are process-wide and never reset.
#include "profiler/call_stats.h"

#include <pthread.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "profiler/clock.h"
#include "tests/unit/catch.h"

using profiler::bucket_floor;
using profiler::bucket_of;
using profiler::CallStats;
using profiler::EntryTotals;
using runtime::EntryId;

TEST_CASE("every value lies in its bucket, and a bucket is at most an eighth wide") {
  for (std::uint64_t value = 0; value < (1ull << 41); value = value + value / 37 + 1) {
    const std::size_t bucket = bucket_of(value);
    REQUIRE(bucket_floor(bucket) <= value);
    REQUIRE(value < bucket_floor(bucket + 1));
    if (value >= 8) {
      REQUIRE(bucket_floor(bucket + 1) - bucket_floor(bucket) <= (value + 7) / 8);
    }
  }
}

TEST_CASE("buckets follow each other without a gap, the last one takes all that is larger") {
  for (std::size_t bucket = 0; bucket < profiler::kBucketCount; ++bucket) {
    REQUIRE(bucket_of(bucket_floor(bucket)) == bucket);
  }
  REQUIRE(bucket_of(1ull << 41) == profiler::kBucketCount - 1);
  REQUIRE(bucket_of(UINT64_MAX) == profiler::kBucketCount - 1);
}

TEST_CASE("one thread: count, sum, extremes and flushed calls") {
  constexpr EntryId kEntry = EntryId::cuCtxSynchronize;
  CallStats::record(kEntry, 1000, 1100, true);
  CallStats::record(kEntry, 2000, 2007, false);
  CallStats::record(kEntry, 5000, 4990, false);  // two cores' counters: never negative
  const EntryTotals totals = CallStats::totals(kEntry);
  CHECK(totals.calls == 3);
  CHECK(totals.total == 107);
  CHECK(totals.min == 0);
  CHECK(totals.max == 100);
  CHECK(totals.flushed == 1);
  CHECK(totals.median() == 7);
  CHECK(CallStats::totals(EntryId::cuCtxSynchronize_v2).calls == 0);
  CHECK(CallStats::totals(EntryId::cuCtxSynchronize_v2).median() == 0);
}

TEST_CASE("the median is the middle of its bucket") {
  constexpr EntryId kEntry = EntryId::cuMemFree;
  for (int call = 0; call < 60; ++call) CallStats::record(kEntry, 0, 10'000, false);
  for (int call = 0; call < 40; ++call) CallStats::record(kEntry, 0, 1'000'000, false);
  const double median = static_cast<double>(CallStats::totals(kEntry).median());
  CHECK(median == Approx(10'000).epsilon(0.07));
}

TEST_CASE("counts of ended threads survive, and their blocks are used again") {
  constexpr EntryId kEntry = EntryId::cuMemFreeHost;
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kCalls = 1000;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t number = 1; number <= kThreads; ++number) {
      threads.emplace_back([number] {
        for (std::uint64_t call = 0; call < kCalls; ++call) {
          CallStats::record(kEntry, 0, number, call % 10 == 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const EntryTotals totals = CallStats::totals(kEntry);
  CHECK(totals.calls == 3 * kThreads * kCalls);
  CHECK(totals.total == 3 * kCalls * (1 + 2 + 3 + 4));
  CHECK(totals.min == 1);
  CHECK(totals.max == kThreads);
  CHECK(totals.flushed == 3 * kThreads * kCalls / 10);
  CHECK(CallStats::lost_calls() == 0);
}

TEST_CASE("totals may be read while threads record") {
  constexpr EntryId kEntry = EntryId::cuMemHostUnregister;
  constexpr std::uint64_t kCalls = 20'000;
  std::thread writer([] {
    for (std::uint64_t call = 0; call < kCalls; ++call) CallStats::record(kEntry, 0, 3, false);
  });
  std::uint64_t last = 0;
  while (last < kCalls) {
    const std::uint64_t calls = CallStats::totals(kEntry).calls;
    REQUIRE(calls >= last);
    last = calls;
  }
  writer.join();
  CHECK(CallStats::totals(kEntry).calls == kCalls);
}

namespace {
pthread_key_t g_late_key;
void record_late(void*) {
  CallStats::record(EntryId::cuMemHostRegister, 0, 5, false);
}
}  // namespace

TEST_CASE("a thread's last destructors may still record") {
  REQUIRE(pthread_key_create(&g_late_key, record_late) == 0);
  std::thread([] {
    CallStats::record(EntryId::cuMemHostRegister, 0, 5, false);
    pthread_setspecific(g_late_key, &g_late_key);
  }).join();
  CHECK(CallStats::totals(EntryId::cuMemHostRegister).calls == 2);
  pthread_key_delete(g_late_key);
}

TEST_CASE("recording keeps errno") {
  std::thread([] {
    errno = EPIPE;
    CallStats::record(EntryId::cuMemHostAlloc, 0, 5, false);
    CHECK(errno == EPIPE);
  }).join();
}

TEST_CASE("ticks convert to the nanoseconds of CLOCK_MONOTONIC") {
  profiler::start_clock();
  const std::uint64_t ns_before = profiler::monotonic_ns();
  const std::uint64_t ticks_before = profiler::now_ticks();
  while (profiler::monotonic_ns() - ns_before < 5'000'000) {
  }
  const std::uint64_t ticks = profiler::now_ticks() - ticks_before;
  const auto ns = static_cast<double>(profiler::monotonic_ns() - ns_before);
  CHECK(static_cast<double>(ticks) * profiler::ns_per_tick() == Approx(ns).epsilon(0.02));
}
