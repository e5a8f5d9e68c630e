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
using profiler::CallTotals;
using profiler::LaunchKind;
using profiler::stat_of;
using runtime::EntryId;

namespace {

void record(EntryId entry, std::uint64_t ns, bool flushed = false) {
  profiler::CallFacts facts;
  facts.flushed = flushed;
  CallStats::record(stat_of(entry), ns, facts);
}
CallTotals totals_of(EntryId entry) {
  return CallStats::totals(stat_of(entry));
}

}  // namespace

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
  record(kEntry, 100, true);
  record(kEntry, 7);
  record(kEntry, 0);
  const CallTotals totals = totals_of(kEntry);
  CHECK(totals.calls == 3);
  CHECK(totals.total_ns == 107);
  CHECK(totals.min_ns == 0);
  CHECK(totals.max_ns == 100);
  CHECK(totals.flushed == 1);
  CHECK(totals.quantile_ns(0.5) == 7);
  CHECK(totals_of(EntryId::cuCtxSynchronize_v2).calls == 0);
  CHECK(totals_of(EntryId::cuCtxSynchronize_v2).quantile_ns(0.5) == 0);
}

TEST_CASE("a quantile is the middle of its bucket, within the extremes") {
  constexpr EntryId kEntry = EntryId::cuMemFree;
  for (int call = 0; call < 60; ++call) record(kEntry, 10'000);
  for (int call = 0; call < 39; ++call) record(kEntry, 1'000'000);
  record(kEntry, 5'000'000);
  const CallTotals totals = totals_of(kEntry);
  CHECK(static_cast<double>(totals.quantile_ns(0.5)) == Approx(10'000).epsilon(0.07));
  CHECK(static_cast<double>(totals.quantile_ns(0.99)) == Approx(1'000'000).epsilon(0.07));
  CHECK(totals.quantile_ns(0) == 10'000);
  CHECK(static_cast<double>(totals.quantile_ns(1)) == Approx(5'000'000).epsilon(0.07));
}

TEST_CASE("what a call was is counted beside its time") {
  const std::size_t stat = stat_of(EntryId::cuMemcpyDtoH_v2);
  profiler::CallFacts facts;
  facts.bytes = 4;
  facts.host = profiler::HostSide::kPageable;
  facts.submit_ns = 30;
  CallStats::record(stat, 50, facts);
  facts.host = profiler::HostSide::kLocked;
  facts.failed = true;
  CallStats::record(stat, 50, facts);
  facts.host = profiler::HostSide::kUnknown;
  facts.not_ready = true;
  CallStats::record(stat, 50, facts);
  const CallTotals totals = CallStats::totals(stat);
  CHECK(totals.amount == 12);
  CHECK(totals.pageable == 1);
  CHECK(totals.locked == 1);
  CHECK(totals.unknown == 1);
  CHECK(totals.failed == 2);
  CHECK(totals.not_ready == 1);
  CHECK(totals.submit_ns == 90);
}

TEST_CASE("a batch counts its launches, and its quantiles are prices of one launch") {
  CallStats::record_batch(LaunchKind::kReplayed, 8000, 80);
  CallStats::record_batch(LaunchKind::kReplayed, 600, 3);
  const CallTotals totals = CallStats::totals(stat_of(LaunchKind::kReplayed));
  CHECK(totals.calls == 2);
  CHECK(totals.amount == 83);
  CHECK(totals.total_ns == 8600);
  CHECK(totals.min_ns == 100);
  CHECK(totals.max_ns == 200);
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
          record(kEntry, number, call % 10 == 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const CallTotals totals = totals_of(kEntry);
  CHECK(totals.calls == 3 * kThreads * kCalls);
  CHECK(totals.total_ns == 3 * kCalls * (1 + 2 + 3 + 4));
  CHECK(totals.min_ns == 1);
  CHECK(totals.max_ns == kThreads);
  CHECK(totals.flushed == 3 * kThreads * kCalls / 10);
  CHECK(CallStats::lost_calls() == 0);
}

TEST_CASE("totals may be read while threads record") {
  constexpr EntryId kEntry = EntryId::cuMemHostUnregister;
  constexpr std::uint64_t kCalls = 20'000;
  std::thread writer([] {
    for (std::uint64_t call = 0; call < kCalls; ++call) record(kEntry, 3);
  });
  std::uint64_t last = 0;
  while (last < kCalls) {
    const std::uint64_t calls = totals_of(kEntry).calls;
    REQUIRE(calls >= last);
    last = calls;
  }
  writer.join();
  CHECK(totals_of(kEntry).calls == kCalls);
}

namespace {
pthread_key_t g_late_key;
void record_late(void*) {
  record(EntryId::cuMemHostRegister, 5);
}
}  // namespace

TEST_CASE("a thread's last destructors may still record") {
  REQUIRE(pthread_key_create(&g_late_key, record_late) == 0);
  std::thread([] {
    record(EntryId::cuMemHostRegister, 5);
    pthread_setspecific(g_late_key, &g_late_key);
  }).join();
  CHECK(totals_of(EntryId::cuMemHostRegister).calls == 2);
  pthread_key_delete(g_late_key);
}

TEST_CASE("recording keeps errno") {
  std::thread([] {
    errno = EPIPE;
    record(EntryId::cuMemHostAlloc, 5);
    CHECK(errno == EPIPE);
  }).join();
}

TEST_CASE("ticks convert to the nanoseconds of CLOCK_MONOTONIC") {
  profiler::start_clock();
  const std::uint64_t ns_before = profiler::monotonic_ns();
  const std::uint64_t ticks_before = profiler::now_ticks();
  while (profiler::monotonic_ns() - ns_before < 5'000'000) {
  }
  const std::uint64_t ticks = profiler::now_ticks();
  const auto ns = static_cast<double>(profiler::monotonic_ns() - ns_before);
  CHECK(static_cast<double>(profiler::ns_between(ticks_before, ticks)) == Approx(ns).epsilon(0.02));
  CHECK(profiler::ns_between(10, 9) == 0);
}
