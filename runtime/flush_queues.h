// SPDX-License-Identifier: Apache-2.0
// The inner submission points, for this folder: by queue, by side of an order group, by context.
// They return when what they name is in the driver. The caller has no lock and no turn.
#pragma once

#include "runtime/stream_map.h"

namespace runtime {

void flush_queue(StreamQueue& queue, FlushCause cause) noexcept;
void flush_legacy_side(ContextState& context, FlushCause cause) noexcept;
void flush_blocking_side(ContextState& context, FlushCause cause) noexcept;
// What work on the target must run behind.
void flush_target(const StreamTarget& target, FlushCause cause) noexcept;
// Every queue of the context (null: of all contexts), oldest first.
void flush_queues(const ContextState* context, FlushCause cause) noexcept;
// Every queue, with bounded waiting: the process ends whatever a turn's holder was doing.
void flush_for_exit() noexcept;

// Open queues of a context (null: of all), by how long they have waited: a consumer that fills the
// device must not precede its producer. Fixed memory; queues beyond its room are in list order.
class OldestFirst {
 public:
  explicit OldestFirst(const ContextState* context) noexcept;
  StreamQueue** begin() noexcept { return queues_; }
  StreamQueue** end() noexcept { return queues_ + count_; }
  // There were more: look again when these are done.
  bool is_cut() const noexcept { return is_cut_; }

 private:
  static constexpr std::size_t kRoom = 64;
  StreamQueue* queues_[kRoom];
  std::size_t count_ = 0;
  bool is_cut_ = false;
};

}  // namespace runtime
