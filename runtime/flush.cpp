// SPDX-License-Identifier: Apache-2.0
// Which queues a submission point closes, and in which order.
#include "runtime/flush.h"

#include "runtime/deadline.h"
#include "runtime/flush_queues.h"
#include "runtime/mutants.h"
#include "runtime/thread_state.h"

namespace runtime {

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

void launch_failed(ContextState& context, CUresult failure) noexcept {
  if (failure == CUDA_ERROR_DEINITIALIZED) return;  // the process ends, and every call says so
  if (!is_mutant(Mutant::kFlushErrorLost)) context.errors.enter(failure);
  note_failure(failure);
}

namespace {

CUresult tell(ContextState* context, CUresult called) noexcept {
  if (context == nullptr || is_mutant(Mutant::kDeferredErrorLost)) return called;
  return context->errors.tell(called);
}

}  // namespace

CUresult tell_of_stream(CUstream stream, bool per_thread_default, CUresult called) noexcept {
  return tell(find_stream(stream, per_thread_default).context, called);
}

CUresult tell_of_context(CUcontext context, CUresult called) noexcept {
  return tell(context != nullptr ? context_state(context) : current_context(), called);
}

void flush_queue(StreamQueue& queue, FlushCause cause) noexcept {
  if (!queue.is_open()) return;
  const SubmitTurn turn(queue);
  queue.close(turn, cause);
}

void flush_for_exit() noexcept {
  if (is_mutant(Mutant::kExitFlushDropped)) return;
  // 2 s: longer than any graph build; a holder that a signal handler interrupted never returns.
  constexpr int kPatienceMs = 2000;
  OldestFirst open(nullptr);
  for (StreamQueue* queue : open) {
    const SubmitTurn turn = SubmitTurn::within(*queue, kPatienceMs);
    if (turn) queue->close(turn, FlushReason::kExit);
  }
  if (open.is_cut()) flush_for_exit();
}

OldestFirst::OldestFirst(const ContextState* context) noexcept {
  for_each_queue(context, [&](StreamQueue& queue) {
    if (!queue.is_open()) return;
    if (count_ == kRoom) {
      is_cut_ = true;
      return;
    }
    std::size_t place = count_++;
    for (; place > 0 && queues_[place - 1]->waits_since() > queue.waits_since(); --place) {
      queues_[place] = queues_[place - 1];
    }
    queues_[place] = &queue;
  });
}

void flush_legacy_side(ContextState& context, FlushCause cause) noexcept {
  if (!context.group.is_legacy_open()) return;
  StreamQueue* legacy = context.legacy_queue.load(std::memory_order_acquire);
  if (legacy != nullptr) flush_queue(*legacy, cause);
}

void flush_blocking_side(ContextState& context, FlushCause cause) noexcept {
  for_each_queue(&context, [&](StreamQueue& queue) {
    if (queue.kind() == StreamKind::kBlocking) flush_queue(queue, cause);
  });
}

namespace {

// The sides of an order group that a target may be on; streams beside it are on neither.
bool is_legacy_side(const StreamTarget& target) noexcept {
  return !target.is_per_thread &&
         (target.queue == nullptr || target.queue->kind() == StreamKind::kLegacy);
}

bool is_blocking_side(const StreamTarget& target) noexcept {
  return target.is_per_thread ||
         (target.queue != nullptr && target.queue->kind() == StreamKind::kBlocking);
}

}  // namespace

void flush_target(const StreamTarget& target, FlushCause cause) noexcept {
  if (target.is_unknown) return flush_queues(nullptr, cause);
  if (target.context == nullptr) return;
  StreamQueue* queue = target.queue;
  const bool is_legacy = is_legacy_side(target), is_blocking = is_blocking_side(target);
  if (is_legacy || (is_blocking && !is_mutant(Mutant::kBlockingOvertakesLegacy))) {
    flush_legacy_side(*target.context, cause);
  }
  if (is_legacy && !is_mutant(Mutant::kLegacyOvertakesBlocking)) {
    flush_blocking_side(*target.context, cause);
  }
  if (!is_legacy && queue != nullptr) flush_queue(*queue, cause);
}

void flush_queues(const ContextState* context, FlushCause cause) noexcept {
  OldestFirst open(context);
  for (StreamQueue* queue : open) flush_queue(*queue, cause);
  if (!open.is_cut()) return;
  // More than have room (no order is owed between them).
  for_each_queue(context, [&](StreamQueue& queue) { flush_queue(queue, cause); });
}

namespace {

// Older than `queue`, or any, and of another thread's making: in a bare run this thread would not
// have waited for its submission. Handed to our own threads; waited for a moment, so that as a rule
// the order of submission is that of the launches.
void hand_over(StreamQueue& queue, FlushCause cause) noexcept {
  queue.make_due(cause);
  Deadline::hurry();
  queue.wait_while_due(Deadline::patience_us());
}

// Whether CUDA's order lets work on the target wait for that queue.
bool is_ahead_of(const StreamQueue& queue, const StreamTarget& target) noexcept {
  if (target.is_unknown) return true;
  if (&queue == target.queue) return true;
  if (queue.context() != target.context || queue.kind() == StreamKind::kNonBlocking) return false;
  if (is_legacy_side(target)) return true;
  return is_blocking_side(target) && queue.kind() == StreamKind::kLegacy;
}

template <typename IsAwaited>
void flush_what_lives(FlushCause cause, IsAwaited is_awaited) noexcept {
  OldestFirst open(nullptr);
  for (StreamQueue* queue : open) {
    if (is_awaited(*queue) || (queue->is_own_batch() && !queue->turn().is_taken())) {
      flush_queue(*queue, cause);
    } else if (queue->waiting_ticket() != 0) {
      hand_over(*queue, cause);
    }
  }
  if (open.is_cut()) flush_queues(nullptr, cause);
}

}  // namespace

void flush_for_stream_wait(CUstream stream, bool per_thread_default, EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kAllFlushDropped)) return;
  const StreamTarget target = find_stream(stream, per_thread_default);
  flush_what_lives(why, [&](StreamQueue& queue) { return is_ahead_of(queue, target); });
}

void flush_for_default_streams(EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kAllFlushDropped)) return;
  flush_what_lives(why,
                   [](StreamQueue& queue) { return queue.kind() != StreamKind::kNonBlocking; });
}

void flush_for_liveness(EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kAllFlushDropped)) return;
  flush_what_lives(why, [](StreamQueue&) { return false; });
}

void flush_stream(CUstream stream, bool per_thread_default, EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kStreamFlushDropped)) return;
  flush_target(find_stream(stream, per_thread_default), why);
}

void flush_legacy(EntryId why) noexcept {
  if (is_mutant(Mutant::kLegacyFlushDropped)) return;
  flush_stream(nullptr, row(why).per_thread_default(), why);
}

void flush_context(CUcontext context, EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kContextFlushDropped)) return;
  // No context, or the driver cannot say which: everything, as nothing is known.
  flush_queues(context != nullptr ? context_state(context) : current_context(), why);
}

CUresult submit_stream(CUstream stream) noexcept {
  if (!anything_queued() && !anything_untold()) return CUDA_SUCCESS;
  StreamTarget target = find_stream(stream, false);
  if (target.queue != nullptr) flush_queue(*target.queue, FlushReason::kApi);
  return tell(target.context, CUDA_SUCCESS);
}

void flush_all(EntryId why) noexcept {
  if (!anything_queued() || is_mutant(Mutant::kAllFlushDropped)) return;
  flush_queues(nullptr, why);
}

}  // namespace runtime
