// SPDX-License-Identifier: Apache-2.0
// What deferral did, counted. At any quiet moment every launch call = replayed + direct + pending.
// Counters are relaxed atomics: they carry no other data. The launch fast path touches none of
// them; a batch is counted when it is submitted.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "runtime/entry.h"

namespace runtime {

// Why a launch went to the driver one by one.
enum class DirectReason : std::uint8_t {
  kFirstSight,        // queued, and its sequence had not been seen before
  kTooShort,          // queued, and its sequence is not worth a graph
  kDeadline,          // queued, and sent on before its sequence was complete
  kPatchFailed,       // queued, and its graph could not be built or patched
  kNoMemory,          // no room in the budget, or out of host memory
  kNotDeferred,       // deferral is off for this stream
  kUnknownLayout,     // the driver could not tell the parameter layout
  kFirstLaunch,       // no cuFuncLoad: the launch itself loads the function
  kTextureReference,  // its module uses texture or surface references
  kAttributes,        // launch attributes that a graph node does not carry
  kCooperative,
  kLegacyLaunch,  // cuLaunch and its kin, with per-function parameter state
  kLimits,        // the driver might refuse it
  kPerThreadStream,
  kStreamAttributes,  // the stream has non-default attributes
  kCapture,           // a capture is active in the context
  kGreenContext,
  kStream,    // no stream or context that we know
  kFault,     // a fault has been reported; the driver says whether it is this context's
  kStopped,   // queueing stopped for this process
  kProfiler,  // the profiler times each launch
  kNoThread,  // no thread bounds how long it would wait
  kRealTime,  // the program's thread may keep ours from running
  kCount,
};
const char* name(DirectReason reason) noexcept;

// Submissions that no driver entry of the program caused.
enum class FlushReason : std::uint8_t {
  kDeadline,
  kFull,
  kOrderGroup,
  kLoad,
  kDirectLaunch,
  kStreamEnd,   // the stream is destroyed, or changes in a way that stops queueing
  kCodeChange,  // unloaded, or launched differently from now on
  kContextEnd,
  kMemory,  // the program ran out of memory, and graphs hold some
  kCapture,
  kStopped,  // queueing stopped for this process
  kApi,
  kExit,
  kCount
};
const char* name(FlushReason reason) noexcept;

// The same for the launches of one stream, from when the process first queues on. Any thread.
struct StreamCounts {
  std::atomic<std::uint64_t> queued{0};  // without those still pending
  std::atomic<std::uint64_t> replayed{0};
  std::atomic<std::uint64_t> direct{0};
  std::atomic<std::uint64_t> graphs_built{0};
  std::atomic<std::uint64_t> graph_launches{0};
  std::atomic<std::uint64_t> patches{0};
  std::atomic<std::uint64_t> flushes{0};

  void clear() noexcept {
    for (std::atomic<std::uint64_t>* counter :
         {&queued, &replayed, &direct, &graphs_built, &graph_launches, &patches, &flushes}) {
      counter->store(0, std::memory_order_relaxed);
    }
  }
};

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

struct CounterSnapshot {
  std::uint64_t queued;    // DEFER_QUEUED
  std::uint64_t replayed;  // DEFER_REPLAYED
  std::uint64_t direct;    // DEFER_DIRECT: queued ones and those that could not be queued
  std::uint64_t pending;
  std::uint64_t graphs_built;  // DEFER_GRAPHS_BUILT
  std::uint64_t graphs_evicted;
  std::uint64_t graph_launches;  // DEFER_GRAPH_LAUNCHES
  std::uint64_t patches;         // DEFER_PATCHES: nodes patched
  std::uint64_t flushes;         // DEFER_FLUSHES: non-empty flushes
  std::uint64_t graph_bytes;     // held now, estimated
  std::uint64_t flushes_by_entry[kEntryCount];
  std::uint64_t flushes_by_reason[static_cast<std::size_t>(FlushReason::kCount)];
  std::uint64_t direct_by_reason[static_cast<std::size_t>(DirectReason::kCount)];
};

struct Counters {
  std::atomic<std::uint64_t> queued, replayed, graphs_built, graphs_evicted, graph_launches,
      patches, flushes, graph_bytes;
  std::atomic<std::uint64_t> exec_bytes;  // of graph_bytes, those of executable graphs
  std::atomic<std::uint64_t> flushes_by_entry[kEntryCount];
  std::atomic<std::uint64_t> flushes_by_reason[static_cast<std::size_t>(FlushReason::kCount)];
  std::atomic<std::uint64_t> direct_by_reason[static_cast<std::size_t>(DirectReason::kCount)];

  void count_direct(DirectReason reason, std::uint64_t launches) noexcept {
    count(direct_by_reason[static_cast<std::size_t>(reason)], launches);
  }
};

extern constinit Counters g_counters;

// `pending` is what each queue says, one after another.
CounterSnapshot snapshot_counters() noexcept;

}  // namespace runtime
