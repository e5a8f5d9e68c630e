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

namespace {

// Written by the owning thread only, with relaxed stores; read by the report.
struct EntryCounters {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> total{0};
  std::atomic<std::uint64_t> min{UINT64_MAX};
  std::atomic<std::uint64_t> max{0};
  std::atomic<std::uint64_t> flushed{0};
  std::atomic<std::uint64_t> buckets[kBucketCount] = {};
};

struct ThreadCounters {
  // Release store of a new block pairs with the acquire load in totals().
  std::atomic<EntryCounters*> entries[runtime::kEntryCount] = {};
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

[[gnu::noinline]] EntryCounters* attach_entry(std::atomic<EntryCounters*>& slot) noexcept {
  const int saved_errno = errno;
  auto* counters = new (std::nothrow) EntryCounters;
  slot.store(counters, std::memory_order_release);
  errno = saved_errno;
  return counters;
}

EntryCounters* counters_of(runtime::EntryId entry) noexcept {
  ThreadCounters* thread = t_counters;
  if (thread == nullptr) [[unlikely]]
    thread = attach_thread();
  if (thread == nullptr) [[unlikely]]
    return nullptr;
  auto& slot = thread->entries[static_cast<std::size_t>(entry)];
  EntryCounters* counters = slot.load(std::memory_order_relaxed);
  return counters != nullptr ? counters : attach_entry(slot);
}

void merge(const EntryCounters& counters, EntryTotals* sum) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  sum->calls += counters.calls.load(kRelaxed);
  sum->total += counters.total.load(kRelaxed);
  sum->flushed += counters.flushed.load(kRelaxed);
  const std::uint64_t min = counters.min.load(kRelaxed);
  const std::uint64_t max = counters.max.load(kRelaxed);
  if (min < sum->min) sum->min = min;
  if (max > sum->max) sum->max = max;
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    sum->buckets[bucket] += counters.buckets[bucket].load(kRelaxed);
  }
}

}  // namespace

void CallStats::record(runtime::EntryId entry, std::uint64_t start_ticks, std::uint64_t end_ticks,
                       bool flushed) noexcept {
  EntryCounters* counters = counters_of(entry);
  if (counters == nullptr) [[unlikely]] {
    g_lost_calls.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // Counters of two cores may be a few ticks apart.
  const std::uint64_t ticks = end_ticks > start_ticks ? end_ticks - start_ticks : 0;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  add(counters->calls, 1);
  add(counters->total, ticks);
  add(counters->flushed, flushed ? 1 : 0);
  add(counters->buckets[bucket_of(ticks)], 1);
  if (ticks < counters->min.load(kRelaxed)) counters->min.store(ticks, kRelaxed);
  if (ticks > counters->max.load(kRelaxed)) counters->max.store(ticks, kRelaxed);
}

EntryTotals CallStats::totals(runtime::EntryId entry) noexcept {
  EntryTotals sum;
  const auto index = static_cast<std::size_t>(entry);
  const ThreadCounters* thread = g_threads.load(std::memory_order_acquire);
  for (; thread != nullptr; thread = thread->next) {
    const EntryCounters* counters = thread->entries[index].load(std::memory_order_acquire);
    if (counters != nullptr) merge(*counters, &sum);
  }
  return sum;
}

std::uint64_t CallStats::lost_calls() noexcept {
  return g_lost_calls.load(std::memory_order_relaxed);
}

std::uint64_t EntryTotals::median() const noexcept {
  if (calls == 0) return 0;
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBucketCount; ++bucket) {
    seen += buckets[bucket];
    if (2 * seen >= calls) break;
  }
  const std::uint64_t floor = bucket_floor(bucket);
  std::uint64_t middle = floor + (bucket_floor(bucket + 1) - floor) / 2;
  if (middle < min) middle = min;
  if (middle > max) middle = max;
  return middle;
}

}  // namespace profiler
