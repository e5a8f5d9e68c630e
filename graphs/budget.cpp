// SPDX-License-Identifier: Apache-2.0
#include "graphs/budget.h"

#include "runtime/driver_scope.h"
#include "runtime/mutants.h"
#include "runtime/stream_map.h"

namespace graphs {

using runtime::count;
using runtime::g_counters;
using runtime::is_mutant;
using runtime::Mutant;
using runtime::StreamQueue;

namespace {

// 1024 recordings a stream: real programs have tens (decode 1, schedulers a few shapes); a stream
// that makes more does not repeat itself, and each costs a look on removal.
constexpr std::uint32_t kMaxRecordings = 1024;

constinit std::atomic<std::uint64_t> g_budget_bytes{256ull << 20};

bool fits(std::size_t bytes) noexcept {
  return g_counters.graph_bytes.load(std::memory_order_relaxed) + bytes <=
         g_budget_bytes.load(std::memory_order_relaxed);
}

void give_back(std::size_t bytes) noexcept {
  g_counters.graph_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

// The least recently used recording that may go.
Sequence* oldest_but(Recordings& recordings, const Sequence* keep) noexcept {
  Sequence* sequence = recordings.oldest;
  while (sequence != nullptr && sequence == keep) sequence = sequence->newer;
  return sequence;
}

bool drop_oldest(Recordings* recordings, const Sequence* keep) noexcept {
  if (recordings == nullptr) return false;
  Sequence* sequence = oldest_but(*recordings, keep);
  if (sequence == nullptr) return false;
  if (sequence->plan != nullptr) count(g_counters.graphs_evicted, 1);
  forget(*recordings, *sequence);
  return true;
}

// One recording of some other stream that is idle now.
bool drop_elsewhere(const StreamQueue& mine) noexcept {
  bool dropped = false;
  runtime::for_each_queue(nullptr, [&](StreamQueue& other) {
    if (dropped || &other == &mine || other.is_open()) return;
    const runtime::SubmitTurn turn = runtime::SubmitTurn::at_once(other);
    if (!turn || other.is_open() || !other.is_in_use()) return;
    runtime::DriverScope scope(other.context(), true);
    dropped = drop_oldest(other.recordings, nullptr);
  });
  return dropped;
}

}  // namespace

void set_budget(std::uint64_t bytes) noexcept {
  g_budget_bytes.store(bytes, std::memory_order_relaxed);
}

bool reserve(StreamQueue& queue, const Sequence& sequence, std::size_t bytes) noexcept {
  if (is_mutant(Mutant::kBudgetIgnored)) return true;
  if (bytes > g_budget_bytes.load(std::memory_order_relaxed)) return false;
  while (!fits(bytes)) {
    if (!drop_oldest(queue.recordings, &sequence) && !drop_elsewhere(queue)) return false;
  }
  return true;
}

Sequence* add_within_budget(StreamQueue& queue, Sequence& batch, std::uint32_t launches,
                            bool is_scratch) noexcept {
  Recordings& recordings = *queue.recordings;
  // The batch may be following a recording: that one must stay until the batch is closed.
  if (recordings.count >= kMaxRecordings) drop_oldest(&recordings, &batch);
  if (!reserve(queue, batch, batch.memory_bytes())) return nullptr;
  Sequence* sequence = add(recordings, batch, launches, is_scratch);
  if (sequence != nullptr) count(g_counters.graph_bytes, sequence->memory_bytes());
  return sequence;
}

void account_plan(const GraphPlan& plan) noexcept {
  count(g_counters.graph_bytes, plan.bytes);
  count(g_counters.exec_bytes, plan.bytes);
}

void release_plan(Sequence& sequence) noexcept {
  if (sequence.plan == nullptr) return;
  give_back(sequence.plan->bytes);
  g_counters.exec_bytes.fetch_sub(sequence.plan->bytes, std::memory_order_relaxed);
  destroy_plan(sequence.plan);
  sequence.plan = nullptr;
}

void forget(Recordings& recordings, Sequence& sequence) noexcept {
  release_plan(sequence);
  give_back(sequence.memory_bytes());
  remove(recordings, sequence);
}

}  // namespace graphs
