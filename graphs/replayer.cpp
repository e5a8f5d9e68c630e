// SPDX-License-Identifier: Apache-2.0
#include "graphs/replayer.h"

#include <new>

#include "graphs/budget.h"
#include "graphs/direct_launch.h"
#include "graphs/graph_plan.h"
#include "graphs/recordings.h"
#include "runtime/driver_scope.h"
#include "runtime/mutants.h"
#include "runtime/stream_queue.h"
#include "runtime/thread_state.h"

namespace graphs {

using runtime::Batch;
using runtime::BatchSink;
using runtime::count;
using runtime::Counters;
using runtime::DirectReason;
using runtime::g_counters;
using runtime::is_mutant;
using runtime::Mutant;
using runtime::StreamQueue;

namespace {

// 2: one launch in a graph costs about what it costs alone (docs/performance.md), so it only adds
// risk and memory; anything longer wins.
constexpr std::uint32_t kMinReplay = 2;
// 3 failures: a single refusal can be passing (memory), a sequence that keeps failing costs a build
// each time.
constexpr std::uint32_t kMaxFailures = 3;

class Replayer final : public BatchSink {
 public:
  void submit_launches(StreamQueue& queue, const Sequence& sequence, std::uint32_t first,
                       std::uint32_t last, DirectReason reason) noexcept override {
    if (first == last) return;
    g_counters.count_direct(reason, last - first);
    count(queue.counts.direct, last - first);
    if (is_mutant(Mutant::kFirstLaunchDoubled)) {
      launch_directly(*queue.context(), queue.stream(), sequence, first, first + 1);
    }
    launch_directly(*queue.context(), queue.stream(), sequence, first, last);
  }

  void submit_batch(StreamQueue& queue, const Batch& batch) noexcept override;
  Sequence* recording_for(StreamQueue& queue, runtime::LaunchKey first) noexcept override {
    return queue.recordings == nullptr ? nullptr : predict(*queue.recordings, first);
  }
  void purge(StreamQueue& queue, Purge what) noexcept override;

 private:
  Sequence* learn(StreamQueue& queue, const Batch& batch) noexcept;
  // What to do with a whole batch: kCount means replay it.
  DirectReason judge(StreamQueue& queue, const Batch& batch, Sequence* sequence) noexcept;
  bool ensure_plan(StreamQueue& queue, Sequence& sequence) noexcept;
  void replay(StreamQueue& queue, Sequence& sequence) noexcept;
};

// Nothing to construct or destroy: the object outlives every thread that may still launch at exit.
constinit Replayer g_replayer;

void fail(Sequence& sequence) noexcept {
  ++sequence.failures;
  release_plan(sequence);
}

// The recording of the batch, with the batch's values in it. Null when out of memory.
Sequence* Replayer::learn(StreamQueue& queue, const Batch& batch) noexcept {
  if (queue.recordings == nullptr) queue.recordings = new (std::nothrow) Recordings;
  if (queue.recordings == nullptr) return nullptr;
  Recordings& recordings = *queue.recordings;
  bool is_whole = batch.is_recording && batch.count == batch.sequence->count;
  Sequence* sequence = is_whole ? batch.sequence : find(recordings, *batch.sequence, batch.count);
  if (sequence == nullptr) {
    sequence = add_within_budget(queue, *batch.sequence, batch.count, !batch.is_recording);
    if (sequence == nullptr) return nullptr;
  } else if (sequence != batch.sequence) {
    sequence->take_values(*batch.sequence, batch.count);
  }
  ++sequence->sightings;
  touch(recordings, *sequence);
  if (recordings.last != nullptr) recordings.last->successor = sequence;
  recordings.last = sequence;
  return sequence;
}

bool Replayer::ensure_plan(StreamQueue& queue, Sequence& sequence) noexcept {
  if (sequence.plan != nullptr) return true;
  if (!reserve(queue, sequence, estimate_bytes(sequence.count))) return false;
  runtime::DriverScope scope(queue.context(), true);
  sequence.plan = build_plan(sequence);
  if (sequence.plan == nullptr) {
    ++sequence.failures;
    return false;
  }
  account_plan(*sequence.plan);
  for (std::uint64_t& word : sequence.dirty) word = 0;
  count(g_counters.graphs_built, 1);
  count(queue.counts.graphs_built, 1);
  return true;
}

DirectReason Replayer::judge(StreamQueue& queue, const Batch& batch, Sequence* sequence) noexcept {
  if (sequence == nullptr) return DirectReason::kNoMemory;
  if (batch.submitted != 0) {
    return sequence->sightings == 1 ? DirectReason::kFirstSight : DirectReason::kDeadline;
  }
  if (batch.count < kMinReplay) return DirectReason::kTooShort;
  if (sequence->sightings == 1) return DirectReason::kFirstSight;
  if (sequence->failures >= kMaxFailures) return DirectReason::kPatchFailed;
  std::uint32_t failures = sequence->failures;
  if (ensure_plan(queue, *sequence)) return DirectReason::kCount;
  return sequence->failures == failures ? DirectReason::kNoMemory : DirectReason::kPatchFailed;
}

void Replayer::replay(StreamQueue& queue, Sequence& sequence) noexcept {
  std::uint64_t patched = 0;
  bool is_patched =
      patch_plan(*sequence.plan, sequence, &patched) || is_mutant(Mutant::kLaunchedUnpatched);
  count(g_counters.patches, patched);
  count(queue.counts.patches, patched);
  // A refused graph launch has submitted nothing (cuGraphLaunch returns before it enqueues), so
  // going directly runs every launch once.
  CUstream stream = is_mutant(Mutant::kReplayedOnLegacy) ? nullptr : queue.stream();
  if (!is_patched || launch_plan(*sequence.plan, stream) != CUDA_SUCCESS) {
    if (is_mutant(Mutant::kGraphLaunchRetried)) launch_plan(*sequence.plan, stream);
    fail(sequence);
    return submit_launches(queue, sequence, 0, sequence.count, DirectReason::kPatchFailed);
  }
  if (is_mutant(Mutant::kGraphAndDirect)) {
    launch_directly(*queue.context(), stream, sequence, 0, sequence.count);
  }
  count(g_counters.graph_launches, 1);
  ++runtime::t_thread.graph_launches;
  count(g_counters.replayed, sequence.count);
  count(queue.counts.graph_launches, 1);
  count(queue.counts.replayed, sequence.count);
}

void Replayer::submit_batch(StreamQueue& queue, const Batch& batch) noexcept {
  Sequence* sequence = learn(queue, batch);
  DirectReason reason = judge(queue, batch, sequence);
  if (reason == DirectReason::kCount) return replay(queue, *sequence);
  const Sequence& values = sequence != nullptr ? *sequence : *batch.sequence;
  return submit_launches(queue, values, batch.submitted, batch.count, reason);
}

bool names_dead_function(const Sequence& sequence) noexcept {
  for (std::uint32_t i = 0; i < sequence.count; ++i) {
    const runtime::FunctionInfo& info = *sequence.slots[i].info;
    if (!info.alive.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void Replayer::purge(StreamQueue& queue, Purge what) noexcept {
  if (queue.recordings == nullptr) return;
  Recordings& recordings = *queue.recordings;
  for (Sequence* sequence = recordings.newest; sequence != nullptr;) {
    Sequence* next = sequence->older;
    if (what == Purge::kAll || names_dead_function(*sequence)) forget(recordings, *sequence);
    sequence = next;
  }
  if (what != Purge::kAll) return;
  delete queue.recordings;
  queue.recordings = nullptr;
}

}  // namespace

BatchSink* start_replayer(std::uint64_t budget_bytes) noexcept {
  set_budget(budget_bytes);
  return &g_replayer;
}

}  // namespace graphs
