// SPDX-License-Identifier: Apache-2.0
// Everything about a batch but the expected launch: opening, leaving the expected path, closing.
#include "runtime/stream_queue.h"

#include "runtime/deadline.h"
#include "runtime/driver_scope.h"
#include "runtime/flush.h"
#include "runtime/futex.h"
#include "runtime/mutants.h"

namespace runtime {
namespace {

// 16,384 launches: a graph of that many takes two thirds of the default budget (about 10 KB a
// node), so larger ones would push out all others; a smaller limit cuts long sequences for no
// reason.
constexpr std::uint32_t kMaxLaunches = 16384;
// 16 MiB of arguments: 16,384 launches of 1 KiB; bounds what one stream holds of launches with
// large arguments.
constexpr std::size_t kMaxArgumentBytes = 16u << 20;

// Release pairs with the acquire of sink(): a thread may see that the library is awake before it
// has seen what another one set up.
constinit std::atomic<BatchSink*> g_sink{nullptr};

constinit std::atomic<std::uint64_t> g_waits{0};  // begun so far

BatchSink* sink() noexcept {
  return g_sink.load(std::memory_order_acquire);
}

}  // namespace

constinit std::atomic<std::uint32_t> g_nonempty_queues{0};

void set_sink(BatchSink* sink) noexcept {
  g_sink.store(sink, std::memory_order_release);
}

void FlushCause::count() const noexcept {
  runtime::count(g_counters.flushes, 1);
  if (index_ >= 0) {
    runtime::count(g_counters.flushes_by_entry[index_], 1);
  } else {
    runtime::count(g_counters.flushes_by_reason[-1 - index_], 1);
  }
}

LaunchSlot* StreamQueue::end_marker() noexcept {
  static constinit LaunchSlot marker{};
  return &marker;
}

bool StreamQueue::enter_group() noexcept {
  switch (kind()) {
    case StreamKind::kLegacy:
      return context()->group.try_open_legacy();
    case StreamKind::kBlocking:
      return context()->group.try_open_blocking();
    case StreamKind::kNonBlocking:
      return true;
  }
  return false;
}

bool StreamQueue::is_other_side_open() const noexcept {
  if (is_open() || kind() == StreamKind::kNonBlocking) return false;
  const OrderGroup& group = context()->group;
  return kind() == StreamKind::kLegacy ? group.is_blocking_open() : group.is_legacy_open();
}

DirectReason StreamQueue::gate_reason() const noexcept {
  // A capture gates every queue of its context. It counts itself before it closes the queues, so a
  // launch that comes later sees it here.
  if (context()->captures.load() != 0) return DirectReason::kCapture;
  return is_deferred() ? gate_.load(std::memory_order_relaxed) : DirectReason::kNotDeferred;
}

void StreamQueue::leave_group() noexcept {
  if (kind() == StreamKind::kLegacy) context()->group.close_legacy();
  if (kind() == StreamKind::kBlocking) context()->group.close_blocking();
}

void StreamQueue::start_waiting() noexcept {
  waits_since_.store(g_waits.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  if (++last_ticket_ == 0) ++last_ticket_;
  ticket_.store(last_ticket_);
  Deadline::watch();
}

// Sequentially consistent, as are the two in wait_while_due(): either a waiter sees the end of the
// wait, or it is seen here.
void StreamQueue::end_waiting() noexcept {
  due_.store(kNotDue, std::memory_order_relaxed);
  ticket_.store(0);
  if (ticket_waiters_.load() != 0) futex_wake(ticket_);
}

bool StreamQueue::take_due(FlushCause* cause) noexcept {
  const int index = due_.exchange(kNotDue);
  if (index == kNotDue) return false;
  *cause = FlushCause(index);
  return true;
}

void StreamQueue::wait_while_due(std::uint64_t microseconds) noexcept {
  const std::uint32_t ticket = waiting_ticket();
  if (ticket == 0 || ticket == stuck_ticket_.load(std::memory_order_relaxed)) return;
  const timespec patience = timeout_of_us(microseconds);
  ticket_waiters_.fetch_add(1);
  if (ticket_.load() == ticket) futex_wait(ticket_, ticket, &patience);
  ticket_waiters_.fetch_sub(1);
  if (ticket_.load() == ticket) stuck_ticket_.store(ticket, std::memory_order_relaxed);
}

// Chooses what the batch will follow. The group has been entered.
bool StreamQueue::open_batch(LaunchKey first) noexcept {
  sequence_ = sink()->recording_for(*this, first);
  is_recording_ = sequence_ != nullptr;
  if (!is_recording_) {
    sequence_ = &scratch_;
    if (!scratch_.start()) return false;
  }
  opener_.store(&t_reentry_depth, std::memory_order_relaxed);
  // Relaxed: see flush.h.
  g_nonempty_queues.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool StreamQueue::follow(const Launch& launch) noexcept {
  const std::uint32_t cursor = cursor_.load(std::memory_order_relaxed);
  LaunchSlot& slot = sequence_->slots[cursor];
  if (slot.key != launch.key() && !is_mutant(Mutant::kFunctionNotCompared)) return false;
  bool changed = !(slot.shape == launch.shape) && !is_mutant(Mutant::kShapePatchMissed);
  slot.shape = launch.shape;
  changed |= slot.info->update_arguments(sequence_->arguments_of(slot), launch.kernel_params);
  if (changed) sequence_->mark_dirty(cursor);
  return true;
}

// The batch is not what the recording expected: from here on it is a sequence of its own.
bool StreamQueue::diverge() noexcept {
  if (!scratch_.copy_prefix(*sequence_, cursor_)) return false;
  sequence_ = &scratch_;
  is_recording_ = false;
  return true;
}

bool StreamQueue::append_new(const Launch& launch, const FunctionInfo& info) noexcept {
  LaunchSlot* slot = sequence_->append(&info, launch.shape, launch.attributes);
  if (slot == nullptr) return false;
  info.update_arguments(sequence_->arguments_of(*slot), launch.kernel_params);
  return true;
}

bool StreamQueue::is_full() const noexcept {
  return cursor_ >= kMaxLaunches ||
         (cursor_ != 0 && sequence_->slots[cursor_ - 1].arguments >= kMaxArgumentBytes);
}

StreamQueue::Append StreamQueue::append_here(const Launch& launch,
                                             const FunctionInfo& info) noexcept {
  if (is_gated()) return Append::kGated;
  // Whoever retires a version looks at the queues afterwards: what is appended later is not seen.
  if (!info.alive.load(std::memory_order_acquire) && !is_mutant(Mutant::kOldVersionAppended)) {
    return Append::kChanged;
  }
  if (is_full()) return Append::kFull;
  if (cursor_ == 0) {
    if (!enter_group()) return Append::kOtherSideOpen;
    if (!open_batch(launch.key())) {
      leave_group();
      return Append::kNoMemory;
    }
  }
  const bool was_waiting = pending() != 0;
  if (!is_recording_ || !follow(launch)) {
    if ((is_recording_ && !diverge()) || !append_new(launch, info)) {
      if (cursor_ == 0) reset_batch();
      return Append::kNoMemory;
    }
  }
  ++cursor_;
  if (is_mutant(Mutant::kStaleArguments))
    note_arguments(sequence_, cursor_ - 1, launch.kernel_params);
  if (!was_waiting) start_waiting();
  return Append::kQueued;
}

StreamQueue::Append StreamQueue::append(const QueueGuard&, const Launch& launch,
                                        const FunctionInfo& info) noexcept {
  if (turn_.is_taken()) return Append::kTurnTaken;
  const Append result = append_here(launch, info);
  next_ = expected_next();
  return result;
}

void StreamQueue::append_submitted(const SubmitTurn&, const Launch& launch,
                                   const FunctionInfo& info) noexcept {
  if (append_here(launch, info) == Append::kQueued) note_submitted();
}

// The slot of a launch that needs no closer look. Behind what has been submitted there is none: the
// next launch starts a wait.
LaunchSlot* StreamQueue::expected_next() noexcept {
  if (!is_recording_ || pending() == 0 || is_gated()) return end_marker();
  arguments_ = sequence_->arguments.data();
  dirty_ = sequence_->dirty.data();
  return &sequence_->slots[cursor_];
}

bool StreamQueue::take_turn() noexcept {
  const bool is_taken = turn_.take();
  // What is appended from here on finds the turn taken.
  if (is_taken) next_ = end_marker();
  lock_.unlock();
  return is_taken;
}

bool StreamQueue::give_turn_back() noexcept {
  lock_.lock();
  const bool is_done = !is_purge_left_;
  if (is_done) {
    next_ = expected_next();
    turn_.give_back();
  }
  lock_.unlock();
  return is_done;
}

bool StreamQueue::leave_purge_to_holder() noexcept {
  const QueueGuard guard(lock_);
  is_purge_left_ = turn_.is_taken();
  return is_purge_left_;
}

void StreamQueue::purge_dead_functions(const SubmitTurn& turn) noexcept {
  {
    const QueueGuard guard(lock_);
    is_purge_left_ = false;
  }
  const bool is_named = any_function(
      turn, [](const FunctionInfo& info) { return !info.alive.load(std::memory_order_relaxed); });
  if (is_named) close(turn, FlushReason::kCodeChange);
  DriverScope scope(context(), true);
  purge(turn, BatchSink::Purge::kDeadFunctions);
}

// Everything in the batch has been submitted.
void StreamQueue::note_submitted() noexcept {
  if (!is_mutant(Mutant::kSubmittedTwice)) submitted_ = cursor_.load();
  end_waiting();
}

void StreamQueue::count_flush(FlushCause cause) noexcept {
  cause.count();
  count(g_counters.queued, pending());
  count(counts.flushes, 1);
  count(counts.queued, pending());
}

// Back to an empty queue.
void StreamQueue::reset_batch() noexcept {
  cursor_ = 0;
  submitted_ = 0;
  sequence_ = nullptr;
  is_recording_ = false;
  end_waiting();
  leave_group();
  g_nonempty_queues.fetch_sub(1, std::memory_order_relaxed);
}

void StreamQueue::close(const SubmitTurn&, FlushCause cause) noexcept {
  if (cursor_ == 0) return;
  if (pending() != 0) count_flush(cause);
  if (is_mutant(Mutant::kStaleArguments)) read_arguments_again(sequence_);
  {
    DriverScope scope(context());
    sink()->submit_batch(*this, Batch{sequence_, cursor_, submitted_, is_recording_});
  }
  reset_batch();
}

void StreamQueue::submit_pending(const SubmitTurn&, FlushCause cause,
                                 DirectReason reason) noexcept {
  if (pending() == 0) return;
  count_flush(cause);
  DriverScope scope(context());
  sink()->submit_launches(*this, *sequence_, submitted_, cursor_, reason);
  note_submitted();
}

void StreamQueue::adopt(const SubmitTurn&, CUstream stream, StreamKind kind, ContextState* context,
                        bool is_deferred) noexcept {
  stream_ = stream;
  kind_.store(kind, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  gate_.store(DirectReason::kCount, std::memory_order_relaxed);
  set_deferred(is_deferred);
  counts.clear();
  is_capture_origin.store(false);
  is_in_use_.store(true, std::memory_order_relaxed);
}

void StreamQueue::retire(const SubmitTurn& turn) noexcept {
  purge(turn, BatchSink::Purge::kAll);
  scratch_.release();
  stream_ = nullptr;
  is_in_use_.store(false, std::memory_order_relaxed);
}

void StreamQueue::purge(const SubmitTurn&, BatchSink::Purge what) noexcept {
  if (sink() != nullptr) sink()->purge(*this, what);
}

}  // namespace runtime
