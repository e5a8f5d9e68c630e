// SPDX-License-Identifier: Apache-2.0
// Which queues a submission point closes, in which order, and how failures come back.
#include "runtime/flush.h"

#include "runtime/flush_queues.h"

namespace runtime {
namespace {

// An error left by the deadline thread goes to the next submission point of its context.
CUresult take_deferred_error(ContextState* context) noexcept {
  if (context == nullptr ||
      context->deferred_error.load(std::memory_order_relaxed) == CUDA_SUCCESS) {
    return CUDA_SUCCESS;
  }
  CUresult error = context->deferred_error.exchange(CUDA_SUCCESS);
  if (error != CUDA_SUCCESS) g_nonempty_queues.fetch_sub(1);
  return error;
}

CUresult with_deferred_error(CUresult result, ContextState* context) noexcept {
  CUresult deferred = take_deferred_error(context);
  return deferred != CUDA_SUCCESS ? deferred : result;
}

}  // namespace

CUresult flush_queue(StreamQueue& queue, FlushCause cause) noexcept {
  if (!queue.is_open()) return CUDA_SUCCESS;
  QueueGuard guard(queue.lock());
  return queue.close(cause);
}

CUresult flush_for_exit() noexcept {
  // 2 s: longer than any graph build; a holder that a signal handler interrupted never returns.
  constexpr int kPatienceMs = 2000;
  FirstError error;
  for_each_queue(nullptr, [&](StreamQueue& queue) {
    if (!queue.is_open() || !queue.lock().lock_within(kPatienceMs)) return;
    error.note(queue.close(FlushReason::kExit));
    queue.lock().unlock();
  });
  return error.value;
}

void leave_deferred_error(ContextState& context, CUresult error) noexcept {
  CUresult none = CUDA_SUCCESS;
  // Counted as a non-empty queue, so that the one-load test of the submission points notices it.
  if (context.deferred_error.compare_exchange_strong(none, error)) g_nonempty_queues.fetch_add(1);
}

CUresult flush_legacy_side(ContextState& context, FlushCause cause) noexcept {
  if (!context.group.is_legacy_open()) return CUDA_SUCCESS;
  StreamQueue* legacy = context.legacy_queue.load(std::memory_order_acquire);
  return legacy == nullptr ? CUDA_SUCCESS : flush_queue(*legacy, cause);
}

CUresult flush_blocking_side(ContextState& context, FlushCause cause) noexcept {
  FirstError error;
  for_each_queue(&context, [&](StreamQueue& queue) {
    if (queue.kind() == StreamKind::kBlocking) error.note(flush_queue(queue, cause));
  });
  return error.value;
}

CUresult flush_target(const StreamTarget& target, FlushCause cause) noexcept {
  FirstError error;
  if (target.is_unknown) {
    for_each_queue(nullptr, [&](StreamQueue& queue) { error.note(flush_queue(queue, cause)); });
    return error.value;
  }
  if (target.context == nullptr) return CUDA_SUCCESS;
  StreamQueue* queue = target.queue;
  bool is_legacy =
      !target.is_per_thread && (queue == nullptr || queue->kind() == StreamKind::kLegacy);
  bool is_blocking =
      target.is_per_thread || (queue != nullptr && queue->kind() == StreamKind::kBlocking);
  if (is_legacy || is_blocking) error.note(flush_legacy_side(*target.context, cause));
  if (is_legacy) error.note(flush_blocking_side(*target.context, cause));
  if (is_blocking && queue != nullptr) error.note(flush_queue(*queue, cause));
  if (!is_legacy && !is_blocking) error.note(flush_queue(*queue, cause));
  return error.value;
}

CUresult flush_queues(const ContextState* context, FlushCause cause) noexcept {
  // Oldest first up to this many open queues; more are taken in list order (no order is owed
  // between them).
  constexpr std::size_t kSorted = 64;
  StreamQueue* open[kSorted];
  std::size_t count = 0;
  FirstError error;
  for_each_queue(context, [&](StreamQueue& queue) {
    if (!queue.is_open()) return;
    if (count == kSorted) {
      error.note(flush_queue(queue, cause));
      return;
    }
    std::size_t place = count++;
    for (; place > 0 && open[place - 1]->opened_at() > queue.opened_at(); --place) {
      open[place] = open[place - 1];
    }
    open[place] = &queue;
  });
  for (std::size_t i = 0; i < count; ++i) error.note(flush_queue(*open[i], cause));
  return error.value;
}

CUresult flush_stream(CUstream stream, bool per_thread_default, EntryId why) noexcept {
  if (!anything_queued()) return CUDA_SUCCESS;
  StreamTarget target = find_stream(stream, per_thread_default);
  return with_deferred_error(flush_target(target, why), target.context);
}

CUresult flush_legacy(EntryId why) noexcept {
  return flush_stream(nullptr, row(why).per_thread_default(), why);
}

CUresult flush_context(CUcontext context, EntryId why) noexcept {
  if (!anything_queued()) return CUDA_SUCCESS;
  ContextState* state = context != nullptr ? context_state(context) : current_context();
  if (state == nullptr) return CUDA_SUCCESS;
  return with_deferred_error(flush_queues(state, why), state);
}

CUresult flush_all(EntryId why) noexcept {
  if (!anything_queued()) return CUDA_SUCCESS;
  return with_deferred_error(flush_queues(nullptr, why), current_context());
}

}  // namespace runtime
