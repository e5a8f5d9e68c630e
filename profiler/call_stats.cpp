// SPDX-License-Identifier: Apache-2.0
// The per-thread counters, their list, and their reuse: blocks are never freed, a block of an ended
// thread is handed to the next new thread, so memory is bounded by the largest number of threads
// alive at once.
#include "profiler/call_stats.h"

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace profiler {

constinit std::atomic<bool> g_profile_enabled{false};
constinit thread_local Submissions t_submissions [[gnu::tls_model("initial-exec")]];

namespace {

// Written by the owning thread only, with relaxed stores; read by the report. What every call
// writes comes first: one cache line and a bucket.
struct alignas(64) StatCounters {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> total{0};
  std::atomic<std::uint64_t> min{UINT64_MAX};
  std::atomic<std::uint64_t> max{0};
  std::atomic<std::uint64_t> amount{0};
  std::atomic<std::uint64_t> flushed{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> not_ready{0};
  std::atomic<std::uint64_t> pageable{0};
  std::atomic<std::uint64_t> locked{0};
  std::atomic<std::uint64_t> unknown{0};
  std::atomic<std::uint64_t> submit{0};
  std::atomic<std::uint64_t> buckets[kBucketCount] = {};
};

struct ThreadCounters {
  // Release store of a new block pairs with the acquire load in totals().
  std::atomic<StatCounters*> stats[kStatCount] = {};
  // Acquire on taking pairs with the release of the thread that ended: one writer at a time.
  std::atomic<bool> is_owned{true};
  ThreadCounters* next = nullptr;  // constant once the block is in the list
};

// Push only. Release of the push pairs with the acquire of every walk.
constinit std::atomic<ThreadCounters*> g_threads{nullptr};
constinit std::atomic<std::uint64_t> g_lost_calls{0};
constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
pthread_key_t g_key;
bool g_has_key = false;  // written under g_key_once

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCounters* t_counters = nullptr;

// The owner is the only writer, so a load and a store do without a locked instruction.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

void release_counters(void* block) noexcept {
  t_counters = nullptr;  // a later destructor of this thread may call the driver again
  static_cast<ThreadCounters*>(block)->is_owned.store(false, std::memory_order_release);
}

void make_key() noexcept {
  g_has_key = pthread_key_create(&g_key, release_counters) == 0;
}

ThreadCounters* take_unowned() noexcept {
  ThreadCounters* block = g_threads.load(std::memory_order_acquire);
  for (; block != nullptr; block = block->next) {
    bool owned = false;
    if (block->is_owned.compare_exchange_strong(owned, true, std::memory_order_acquire,
                                                std::memory_order_relaxed)) {
      return block;
    }
  }
  return nullptr;
}

ThreadCounters* add_block() noexcept {
  auto* block = new (std::nothrow) ThreadCounters;
  if (block == nullptr) return nullptr;
  block->next = g_threads.load(std::memory_order_relaxed);
  while (!g_threads.compare_exchange_weak(block->next, block, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  return block;
}

[[gnu::noinline]] ThreadCounters* attach_thread() noexcept {
  const int saved_errno = errno;
  pthread_once(&g_key_once, make_key);
  ThreadCounters* block = take_unowned();
  if (block == nullptr) block = add_block();
  // Without a key the block stays with its thread for ever: nothing lost but reuse.
  if (block != nullptr && g_has_key) pthread_setspecific(g_key, block);
  t_counters = block;
  errno = saved_errno;
  return block;
}

[[gnu::noinline]] StatCounters* attach_stat(std::atomic<StatCounters*>& slot) noexcept {
  const int saved_errno = errno;
  auto* counters = new (std::nothrow) StatCounters;
  slot.store(counters, std::memory_order_release);
  errno = saved_errno;
  return counters;
}

// Null, and the call counted as lost, when out of memory.
StatCounters* counters_of(std::size_t stat) noexcept {
  ThreadCounters* thread = t_counters;
  if (thread == nullptr) [[unlikely]]
    thread = attach_thread();
  StatCounters* counters = nullptr;
  if (thread != nullptr) [[likely]] {
    auto& slot = thread->stats[stat];
    counters = slot.load(std::memory_order_relaxed);
    if (counters == nullptr) [[unlikely]]
      counters = attach_stat(slot);
  }
  if (counters == nullptr) [[unlikely]]
    g_lost_calls.fetch_add(1, std::memory_order_relaxed);
  return counters;
}

void add_sample(StatCounters& counters, std::uint64_t total, std::uint64_t sample) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  add(counters.calls, 1);
  add(counters.total, total);
  add(counters.buckets[bucket_of(sample)], 1);
  if (sample < counters.min.load(kRelaxed)) counters.min.store(sample, kRelaxed);
  if (sample > counters.max.load(kRelaxed)) counters.max.store(sample, kRelaxed);
}

void merge(const StatCounters& counters, CallTotals* sum) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  sum->calls += counters.calls.load(kRelaxed);
  sum->total_ns += counters.total.load(kRelaxed);
  sum->flushed += counters.flushed.load(kRelaxed);
  sum->failed += counters.failed.load(kRelaxed);
  sum->not_ready += counters.not_ready.load(kRelaxed);
  sum->amount += counters.amount.load(kRelaxed);
  sum->pageable += counters.pageable.load(kRelaxed);
  sum->locked += counters.locked.load(kRelaxed);
  sum->unknown += counters.unknown.load(kRelaxed);
  sum->submit_ns += counters.submit.load(kRelaxed);
  const std::uint64_t min = counters.min.load(kRelaxed);
  const std::uint64_t max = counters.max.load(kRelaxed);
  if (min < sum->min_ns) sum->min_ns = min;
  if (max > sum->max_ns) sum->max_ns = max;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    sum->buckets[bucket] += counters.buckets[bucket].load(kRelaxed);
  }
}

void add_host_side(StatCounters& counters, HostSide host) noexcept {
  if (host == HostSide::kPageable) add(counters.pageable, 1);
  if (host == HostSide::kLocked) add(counters.locked, 1);
  if (host == HostSide::kUnknown) add(counters.unknown, 1);
}

}  // namespace

void CallStats::record(std::size_t stat, std::uint64_t ns, const CallFacts& facts) noexcept {
  StatCounters* counters = counters_of(stat);
  if (counters == nullptr) [[unlikely]]
    return;
  add_sample(*counters, ns, ns);
  add(counters->amount, facts.bytes);
  if (facts.flushed) add(counters->flushed, 1);
  if (facts.failed) add(counters->failed, 1);
  if (facts.not_ready) add(counters->not_ready, 1);
  if (facts.submit_ns != 0) add(counters->submit, facts.submit_ns);
  if (facts.host != HostSide::kNone) add_host_side(*counters, facts.host);
}

void CallStats::record_batch(LaunchKind kind, std::uint64_t ns, std::uint64_t launches) noexcept {
  StatCounters* counters = counters_of(stat_of(kind));
  if (counters == nullptr || launches == 0) [[unlikely]]
    return;
  add_sample(*counters, ns, ns / launches);
  add(counters->amount, launches);
}

CallTotals CallStats::totals(std::size_t stat) noexcept {
  CallTotals sum;
  sum.min_ns = UINT64_MAX;
  const ThreadCounters* thread = g_threads.load(std::memory_order_acquire);
  for (; thread != nullptr; thread = thread->next) {
    const StatCounters* counters = thread->stats[stat].load(std::memory_order_acquire);
    if (counters != nullptr) merge(*counters, &sum);
  }
  return sum;
}

std::uint64_t CallStats::lost_calls() noexcept {
  return g_lost_calls.load(std::memory_order_relaxed);
}

std::uint64_t CallTotals::quantile_ns(double part) const noexcept {
  if (calls == 0) return 0;
  const double wanted = part * static_cast<double>(calls);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBucketCount; ++bucket) {
    seen += buckets[bucket];
    if (static_cast<double>(seen) >= wanted && seen > 0) break;
  }
  const std::uint64_t floor = bucket_floor(bucket);
  std::uint64_t middle = floor + (bucket_floor(bucket + 1) - floor) / 2;
  if (middle < min_ns) middle = min_ns;
  if (middle > max_ns) middle = max_ns;
  return middle;
}

}  // namespace profiler
