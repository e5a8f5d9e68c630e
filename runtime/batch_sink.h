// SPDX-License-Identifier: Apache-2.0
// The way from a queue to the driver. runtime/ decides when launches are submitted; the sink
// (graphs/replayer.h) decides how: one by one, or as a recorded graph. One sink for the process,
// set once at start.
#pragma once

#include <cstdint>

#include "runtime/counters.h"
#include "runtime/driver.h"
#include "runtime/launch_attributes.h"

namespace runtime {

class StreamQueue;
struct FunctionInfo;
struct Sequence;

// What a queue has collected between two observations.
struct Batch {
  Sequence* sequence;       // holds the launches
  std::uint32_t count;      // launches of this batch, from the start of the sequence
  std::uint32_t submitted;  // of these, already sent one by one (deadline, code load)
  bool is_recording;        // `sequence` belongs to the sink; else it is the queue's scratch
};

// All functions but recording_for() are called with the turn of the queue in hand, the queue's
// context current and the reentry guard taken. What fails is told by launch_failed() (flush.h).
class BatchSink {
 public:
  // Submits launches [first, last) one by one. Behind one that fails the others are still
  // submitted, as the program would have done.
  virtual void submit_launches(StreamQueue& queue, const Sequence& sequence, std::uint32_t first,
                               std::uint32_t last, DirectReason reason) noexcept = 0;
  // Submits the rest of the batch and learns from the whole of it. May take the contents of a
  // scratch sequence.
  virtual void submit_batch(StreamQueue& queue, const Batch& batch) noexcept = 0;
  // The recording to follow when a batch starts with this launch: the predicted one first. Null:
  // none known. Called with the queue's lock held and its turn free.
  virtual Sequence* recording_for(StreamQueue& queue, LaunchKey first) noexcept = 0;
  // Drops recordings that name a dead function, or every recording of the queue.
  enum class Purge { kDeadFunctions, kAll };
  virtual void purge(StreamQueue& queue, Purge what) noexcept = 0;

 protected:
  ~BatchSink() = default;
};

}  // namespace runtime
