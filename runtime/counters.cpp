// SPDX-License-Identifier: Apache-2.0
// Names of the counted reasons, and the snapshot.
#include "runtime/counters.h"

#include "runtime/stream_map.h"
#include "runtime/stream_queue.h"

namespace runtime {

constinit Counters g_counters{};

const char* name(DirectReason reason) noexcept {
  constexpr const char* kNames[] = {
      "first sight of a sequence",
      "too short to replay",
      "deadline",
      "graph failed",
      "no memory for a graph",
      "not deferred",
      "parameter layout unknown",
      "first launch loads code",
      "texture references",
      "launch attributes",
      "cooperative launch",
      "legacy launch call",
      "limits",
      "per-thread default stream",
      "stream attributes",
      "capture active",
      "green context",
      "unknown stream",
      "after a fault",
      "queueing stopped",
      "profiler armed",
      "no deadline thread",
      "real-time thread",
  };
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(DirectReason::kCount));
  return kNames[static_cast<std::size_t>(reason)];
}

const char* name(FlushReason reason) noexcept {
  constexpr const char* kNames[] = {
      "deadline",      "queue full",      "order group",      "code load",
      "direct launch", "end of a stream", "change of code",   "end of a context",
      "out of memory", "capture",         "queueing stopped", "API",
      "exit",
  };
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(FlushReason::kCount));
  return kNames[static_cast<std::size_t>(reason)];
}

CounterSnapshot snapshot_counters() noexcept {
  auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  CounterSnapshot snapshot{};
  for (StreamQueue* queue = first_queue(); queue != nullptr; queue = queue->next_queue()) {
    // Bounded: reports are written at exit, where a holder may have been interrupted for good.
    if (!queue->lock().lock_within(100)) continue;
    snapshot.pending += queue->pending();
    queue->lock().unlock();
  }
  snapshot.queued = read(g_counters.queued) + snapshot.pending;
  snapshot.replayed = read(g_counters.replayed);
  snapshot.graphs_built = read(g_counters.graphs_built);
  snapshot.graphs_evicted = read(g_counters.graphs_evicted);
  snapshot.graph_launches = read(g_counters.graph_launches);
  snapshot.patches = read(g_counters.patches);
  snapshot.flushes = read(g_counters.flushes);
  snapshot.graph_bytes = read(g_counters.graph_bytes);
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    snapshot.flushes_by_entry[i] = read(g_counters.flushes_by_entry[i]);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(FlushReason::kCount); ++i) {
    snapshot.flushes_by_reason[i] = read(g_counters.flushes_by_reason[i]);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(DirectReason::kCount); ++i) {
    snapshot.direct_by_reason[i] = read(g_counters.direct_by_reason[i]);
    snapshot.direct += snapshot.direct_by_reason[i];
  }
  return snapshot;
}

}  // namespace runtime
