// SPDX-License-Identifier: Apache-2.0
// Which queues a submission point closes, in which order, and how failures come back.
#include "runtime/flush.h"

#include "runtime/flush_queues.h"
#include "runtime/mutants.h"
#include "runtime/thread_state.h"

namespace runtime {
namespace {

// An error left by the deadline thread goes to the next submission point of its context.
CUresult take_deferred_error(ContextState* context) noexcept {
  if (is_mutant(Mutant::kDeferredErrorLost)) return CUDA_SUCCESS;
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

// The codes that a context keeps (cuda.h: "the process must be terminated", "the context cannot be
// used"), and those that may be such.
bool is_fault(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

void note_failure(CUresult result) noexcept {
  if (!is_fault(result)) return;
  // Whose fault it is cannot be told from the call; a healthy context loses one queued launch.
  ContextState* context = g_contexts.load(std::memory_order_acquire);
  for (; context != nullptr; context = context->next) context->is_suspect.store(true);
  forget_remembered_queues();
}

void launched_after_fault(CUresult result) noexcept {
  ContextState* context = current_context();
  if (result == CUDA_SUCCESS && context != nullptr) context->is_suspect.store(false);
}

CUresult flush_queue(StreamQueue& queue, FlushCause cause) noexcept {
  if (!queue.is_open()) return CUDA_SUCCESS;
  QueueGuard guard(queue.lock());
  return queue.close(cause);
}

CUresult flush_for_exit() noexcept {
  if (is_mutant(Mutant::kExitFlushDropped)) return CUDA_SUCCESS;
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

void drop_deferred_error(ContextState& context) noexcept {
  take_deferred_error(&context);
}

void note_for(const ContextState* context, StreamQueue& queue, CUresult result,
              FirstError* error) noexcept {
  if (result == CUDA_SUCCESS) return;
  if (queue.context() == context) return error->note(result);
  leave_deferred_error(*queue.context(), result);
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
    for_each_queue(nullptr, [&](StreamQueue& queue) {
      note_for(target.context, queue, flush_queue(queue, cause), &error);
    });
    return error.value;
  }
  if (target.context == nullptr) return CUDA_SUCCESS;
  StreamQueue* queue = target.queue;
  bool is_legacy =
      !target.is_per_thread && (queue == nullptr || queue->kind() == StreamKind::kLegacy);
  bool is_blocking =
      target.is_per_thread || (queue != nullptr && queue->kind() == StreamKind::kBlocking);
  if (is_legacy || (is_blocking && !is_mutant(Mutant::kBlockingOvertakesLegacy))) {
    error.note(flush_legacy_side(*target.context, cause));
  }
  if (is_legacy && !is_mutant(Mutant::kLegacyOvertakesBlocking)) {
    error.note(flush_blocking_side(*target.context, cause));
  }
  if (is_blocking && queue != nullptr) error.note(flush_queue(*queue, cause));
  if (!is_legacy && !is_blocking) error.note(flush_queue(*queue, cause));
  return error.value;
}

CUresult flush_queues(const ContextState* context, const ContextState* reporter,
                      FlushCause cause) noexcept {
  // Oldest first up to this many open queues; more are taken in list order (no order is owed
  // between them).
  constexpr std::size_t kSorted = 64;
  StreamQueue* open[kSorted];
  std::size_t count = 0;
  FirstError error;
  for_each_queue(context, [&](StreamQueue& queue) {
    if (!queue.is_open()) return;
    if (count == kSorted) {
      note_for(reporter, queue, flush_queue(queue, cause), &error);
      return;
    }
    std::size_t place = count++;
    for (; place > 0 && open[place - 1]->opened_at() > queue.opened_at(); --place) {
      open[place] = open[place - 1];
    }
    open[place] = &queue;
  });
  for (std::size_t i = 0; i < count; ++i) {
    note_for(reporter, *open[i], flush_queue(*open[i], cause), &error);
  }
  return error.value;
}

CUresult flush_stream(CUstream stream, bool per_thread_default, EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kStreamFlushDropped)) return CUDA_SUCCESS;
  StreamTarget target = find_stream(stream, per_thread_default);
  return with_deferred_error(flush_target(target, why), target.context);
}

CUresult flush_legacy(EntryId why) noexcept {
  if (is_mutant(Mutant::kLegacyFlushDropped)) return CUDA_SUCCESS;
  return flush_stream(nullptr, row(why).per_thread_default(), why);
}

CUresult flush_context(CUcontext context, EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kContextFlushDropped)) return CUDA_SUCCESS;
  ContextState* state = context != nullptr ? context_state(context) : current_context();
  // No context, or the driver cannot say which: everything, as nothing is known.
  if (state == nullptr) return flush_queues(nullptr, nullptr, why);
  return with_deferred_error(flush_queues(state, state, why), state);
}

CUresult submit_stream(CUstream stream) noexcept {
  if (!anything_queued()) return CUDA_SUCCESS;
  StreamTarget target = find_stream(stream, false);
  CUresult result = CUDA_SUCCESS;
  if (target.queue != nullptr) result = flush_queue(*target.queue, FlushReason::kApi);
  return with_deferred_error(result, target.context);
}

CUresult flush_all(EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kAllFlushDropped)) return CUDA_SUCCESS;
  ContextState* current = current_context();
  return with_deferred_error(flush_queues(nullptr, current, why), current);
}

}  // namespace runtime
