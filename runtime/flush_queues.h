// SPDX-License-Identifier: Apache-2.0
// The inner submission points, for this folder: by queue, by side of an order group, by context.
// The first failure is returned. No queue lock may be held by the caller.
#pragma once

#include "runtime/stream_map.h"

namespace runtime {

struct FirstError {
  CUresult value = CUDA_SUCCESS;
  void note(CUresult result) noexcept {
    if (value == CUDA_SUCCESS) value = result;
  }
};

CUresult flush_queue(StreamQueue& queue, FlushCause cause) noexcept;
CUresult flush_legacy_side(ContextState& context, FlushCause cause) noexcept;
CUresult flush_blocking_side(ContextState& context, FlushCause cause) noexcept;
// What work on the target must run behind.
CUresult flush_target(const StreamTarget& target, FlushCause cause) noexcept;
// Every queue of the context (null: of all contexts), oldest batch first. Failures of other
// contexts than `reporter` are left to them.
CUresult flush_queues(const ContextState* context, const ContextState* reporter,
                      FlushCause cause) noexcept;
// Every queue, with bounded waiting: the process ends whatever a lock's holder was doing.
CUresult flush_for_exit() noexcept;
// A failure with no call of the program to report it: kept for the next submission point of the
// context.
void leave_deferred_error(ContextState& context, CUresult error) noexcept;
void drop_deferred_error(ContextState& context) noexcept;
// A failure of one queue's work: kept as the first error of a call about `context`, or left for the
// context it belongs to.
void note_for(const ContextState* context, StreamQueue& queue, CUresult result,
              FirstError* error) noexcept;

}  // namespace runtime
