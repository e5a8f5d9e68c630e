// SPDX-License-Identifier: Apache-2.0
// What recordings may hold, for the whole process: estimated driver memory of graphs plus our own
// bytes. Room is made by dropping the least recently used of the same stream, then graphs of
// streams that are idle. Called with the lock of `queue` held; other queues are only tried, never
// waited for.
#pragma once

#include "graphs/graph_plan.h"
#include "graphs/recordings.h"
#include "runtime/stream_queue.h"

namespace graphs {

void set_budget(std::uint64_t bytes) noexcept;

// Makes room for `bytes` more, keeping `sequence`. False: there is none.
bool reserve(runtime::StreamQueue& queue, const Sequence& sequence, std::size_t bytes) noexcept;
// recordings.h add(), within the budget and the limit of recordings a stream. Null: no room.
Sequence* add_within_budget(runtime::StreamQueue& queue, Sequence& batch, std::uint32_t launches,
                            bool is_scratch) noexcept;
void account_plan(const GraphPlan& plan) noexcept;
// Destroys the sequence's graph, if it has one, and gives its bytes back.
void release_plan(Sequence& sequence) noexcept;
// Drops the recording and its graph, and gives their bytes back.
void forget(Recordings& recordings, Sequence& sequence) noexcept;

}  // namespace graphs
