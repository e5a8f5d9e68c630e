// SPDX-License-Identifier: Apache-2.0
// From stream handles to queues. Streams announce themselves when they are created; one that did
// not is asked about at its first launch. Queue objects live in one append-only list and are
// reused.
#pragma once

#include "runtime/stream_queue.h"

namespace runtime {

// Where a stream handle leads, in the calling thread's current context.
struct StreamTarget {
  StreamQueue* queue = nullptr;     // null: not known or not queueable
  ContextState* context = nullptr;  // whose order group counts: of the queue, else the current one
  bool is_per_thread = false;
  bool is_unknown = false;  // a real handle that has no queue
};

// Finds without making anything. Takes the map's mutex for created streams.
StreamTarget find_stream(CUstream stream, bool per_thread_default) noexcept;
// As find_stream(), but makes the queue of a stream seen for the first time; asks the driver about
// it.
StreamTarget find_or_make_stream(CUstream stream, bool per_thread_default) noexcept;

// A stream was created (after the driver's call) or is about to be destroyed (after its flush).
void stream_created(CUstream stream, ContextState* context, unsigned int flags) noexcept;
void stream_destroyed(CUstream stream) noexcept;
// Every queue of the context dies: it is about to be destroyed, or has been destroyed or reset.
// What comes back if the driver refuses to destroy it: its captures, and whether it is green. Its
// streams and functions are asked about again.
struct LivingContext {
  int captures;
  bool has_joined_capture;
  bool direct_only;
};
LivingContext context_gone(ContextState& context) noexcept;
void context_lives_on(ContextState& context, const LivingContext& living) noexcept;

// Whether a stream queues without having asked for it. Set before the first launch.
bool defers_by_default() noexcept;
void set_default_deferral(bool deferred) noexcept;

// Frees versions of functions that were replaced and that nobody reads or names any more.
void free_old_functions() noexcept;

// All queue objects ever made, newest first; also the retired ones.
StreamQueue* first_queue() noexcept;

// Calls `visit(queue)` for each queue in use, of one context (null: of all).
template <typename Visit>
void for_each_queue(const ContextState* context, Visit visit) noexcept {
  for (StreamQueue* queue = first_queue(); queue != nullptr; queue = queue->next_queue()) {
    if (queue->is_in_use() && (context == nullptr || queue->context() == context)) visit(*queue);
  }
}

}  // namespace runtime
