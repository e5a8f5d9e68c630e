// SPDX-License-Identifier: Apache-2.0
// The launches of one stream that wait for an observation. The queue is a cursor over the recording
// it expects: a launch that matches updates the recording's values in place and moves on; the first
// that does not turns the batch into a sequence of its own. Appending takes the lock, submitting
// the turn (submit_turn.h), so that no append waits for the driver unless its own stream's
// submission does. Objects are reused for new streams and never freed, so a stale pointer is still
// a lock.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "runtime/batch_sink.h"
#include "runtime/context_state.h"
#include "runtime/lock.h"
#include "runtime/mutants.h"
#include "runtime/sequence.h"
#include "runtime/submit_turn.h"

namespace runtime {

struct Recordings;  // graphs/recordings.h: the sequences known of this stream

// A launch as the program asked for it.
struct Launch {
  CUfunction function;
  LaunchShape shape;
  CUstream stream;
  void** kernel_params;  // one pointer per parameter; may be null when there are none
  LaunchAttributes attributes{};

  LaunchKey key() const noexcept { return launch_key(function, attributes); }
};

// What submitted a batch: a driver entry of the program, or one of our own reasons.
class FlushCause {
 public:
  FlushCause(EntryId entry) noexcept : index_(static_cast<int>(entry)) {}
  FlushCause(FlushReason reason) noexcept : index_(-1 - static_cast<int>(reason)) {}
  void count() const noexcept;

 private:
  friend class StreamQueue;
  explicit FlushCause(int index) noexcept : index_(index) {}
  int index_;
};

enum class StreamKind : std::uint8_t { kLegacy, kBlocking, kNonBlocking };

class StreamQueue {
 public:
  enum class Append {
    kQueued,
    kTurnTaken,      // somebody submits: wait for the turn
    kFull,           // the batch must be closed first
    kGated,          // this stream may not queue at present
    kChanged,        // the function is not what it was when the caller looked
    kOtherSideOpen,  // the other side of the order group must be flushed first
    kNoMemory,
  };

  QueueLock& lock() noexcept { return lock_; }
  TurnWord& turn() noexcept { return turn_; }

  // The launch path. True: the launch was the expected one and is queued.
  template <typename Arguments>
  bool append_expected(const QueueGuard&, LaunchKey key, const LaunchShape& shape,
                       Arguments arguments) noexcept;
  // Any launch that passed the checks of launch.cpp.
  Append append(const QueueGuard&, const Launch& launch, const FunctionInfo& info) noexcept;
  // One that the caller has just submitted itself, so that it counts as part of the sequence seen.
  void append_submitted(const SubmitTurn&, const Launch& launch, const FunctionInfo& info) noexcept;

  // Submits and closes the batch. What fails is entered in the ledger of the context.
  void close(const SubmitTurn&, FlushCause cause) noexcept;
  // Submits what is pending one by one and leaves the batch open: for submissions that the program
  // did not ask for.
  void submit_pending(const SubmitTurn&, FlushCause cause, DirectReason reason) noexcept;

  // Takes the object for a stream. The batch is closed.
  void adopt(const SubmitTurn&, CUstream stream, StreamKind kind, ContextState* context,
             bool is_deferred) noexcept;
  // The stream is gone: recordings die with it. The batch is closed.
  void retire(const SubmitTurn&) noexcept;
  // While a queue has a gate nothing is queued. The batch is closed.
  void gate(const SubmitTurn&, DirectReason reason) noexcept {
    gate_.store(reason, std::memory_order_relaxed);
  }
  bool is_gated() const noexcept { return gate_reason() != DirectReason::kCount; }
  DirectReason gate_reason() const noexcept;  // kCount: no gate
  // Whether the launches of this stream may be queued at all. Written with the turn in hand and the
  // batch closed.
  bool is_deferred() const noexcept { return is_deferred_.load(std::memory_order_relaxed); }
  void set_deferred(bool deferred) noexcept {
    is_deferred_.store(deferred, std::memory_order_relaxed);
  }
  // The other side of the order group must be flushed before this queue opens.
  bool is_other_side_open() const noexcept;
  void purge(const SubmitTurn&, BatchSink::Purge what) noexcept;
  // Of recordings that name a version that is no longer in force; the batch is closed if it does.
  void purge_dead_functions(const SubmitTurn&) noexcept;
  // The holder of the turn purges dead functions before he gives it back. False: nobody has it.
  bool leave_purge_to_holder() noexcept;
  // Whether `claim(info)` holds for a function of the open batch or of the recording it follows.
  template <typename Claim>
  bool any_function(const SubmitTurn&, Claim claim) const noexcept {
    const std::uint32_t launches = sequence_ == nullptr ? 0 : sequence_->count;
    for (std::uint32_t i = 0; i < launches; ++i) {
      if (claim(*sequence_->slots[i].info)) return true;
    }
    return false;
  }

  // For SubmitTurn alone. take_turn() is called with the lock held and unlocks. give_turn_back() is
  // false while a purge has been left to the holder.
  bool take_turn() noexcept;
  [[nodiscard]] bool give_turn_back() noexcept;

  // Without the lock: does the queue hold an open batch?
  bool is_open() const noexcept { return cursor_.load(std::memory_order_relaxed) != 0; }
  // Without the lock: changes whenever launches start to wait; 0 while none waits. For the
  // deadline.
  std::uint32_t waiting_ticket() const noexcept { return ticket_.load(); }
  // Without the lock: when the oldest launch that waits was queued, in process order.
  std::uint64_t waits_since() const noexcept {
    return waits_since_.load(std::memory_order_relaxed);
  }
  // Without the lock: whether the thread that opened the batch is the calling one.
  bool is_own_batch() const noexcept {
    return opener_.load(std::memory_order_relaxed) == &t_reentry_depth;
  }
  // Without the lock: launches that wait; of another thread's queue, as of a moment ago.
  std::uint32_t pending() const noexcept {
    const std::uint32_t submitted = submitted_.load(std::memory_order_relaxed);
    const std::uint32_t queued = cursor_.load(std::memory_order_relaxed);
    return queued > submitted ? queued - submitted : 0;
  }
  CUstream stream() const noexcept { return stream_; }
  StreamKind kind() const noexcept { return kind_.load(std::memory_order_relaxed); }
  ContextState* context() const noexcept { return context_.load(std::memory_order_relaxed); }
  bool is_in_use() const noexcept { return is_in_use_.load(std::memory_order_relaxed); }
  StreamQueue* next_queue() const noexcept { return next_queue_; }
  void set_next_queue(StreamQueue* queue) noexcept { next_queue_ = queue; }
  // Without the lock: a flush wants the batch submitted by our own threads, and when it is, the
  // cause to count it under. At most once for each wait.
  void make_due(FlushCause cause) noexcept { due_.store(cause.index_); }
  bool is_due() const noexcept { return due_.load() != kNotDue; }
  bool take_due(FlushCause* cause) noexcept;
  // Until what waits now has been submitted, at most about `microseconds`; not at all where that
  // was in vain before.
  void wait_while_due(std::uint64_t microseconds) noexcept;

  std::atomic<std::uint32_t> seen_ticket{0};  // at the deadline's last look
  // Launches of this stream that look at functions and hold no lock; see FunctionReading.
  std::atomic<std::uint32_t> function_readers{0};
  std::uint64_t functions_unread = 0;          // stream_map.cpp, free_old_functions() only
  StreamQueue* next_in_chain = nullptr;        // stream_map.cpp only
  std::atomic<bool> is_capture_origin{false};  // a capture began on this stream and has not ended

  Recordings* recordings = nullptr;  // owned by the sink; with the turn in hand
  StreamCounts counts;

 private:
  static LaunchSlot* end_marker() noexcept;
  void count_flush(FlushCause cause) noexcept;
  bool open_batch(LaunchKey first) noexcept;
  bool enter_group() noexcept;
  void leave_group() noexcept;
  void start_waiting() noexcept;
  void end_waiting() noexcept;
  void reset_batch() noexcept;
  bool follow(const Launch& launch) noexcept;
  bool diverge() noexcept;
  bool is_full() const noexcept;
  bool append_new(const Launch& launch, const FunctionInfo& info) noexcept;
  Append append_here(const Launch& launch, const FunctionInfo& info) noexcept;
  void note_submitted() noexcept;
  LaunchSlot* expected_next() noexcept;

  // Launch path first. Everything below that is not atomic is guarded by lock_ while the turn is
  // free, and belongs to the holder of the turn while it is taken; next_ always needs lock_.
  QueueLock lock_;
  bool is_recording_ = false;   // sequence_ is a recording we follow
  bool is_purge_left_ = false;  // to the holder of the turn; always needs lock_
  std::atomic<DirectReason> gate_{DirectReason::kCount};
  // Like context_: a flush that looks for queues reads it without the lock.
  std::atomic<StreamKind> kind_{StreamKind::kNonBlocking};
  LaunchSlot* next_ = end_marker();  // the slot the next launch is expected to match
  std::byte* arguments_ = nullptr;   // of sequence_
  std::uint64_t* dirty_ = nullptr;   // of sequence_
  // Atomic for those who look from outside; changed like the rest.
  std::atomic<std::uint32_t> cursor_{0};  // launches in the batch
  std::atomic<std::uint32_t> submitted_{0};
  TurnWord turn_;
  Sequence* sequence_ = nullptr;
  Sequence scratch_;
  CUstream stream_ = nullptr;
  std::atomic<ContextState*> context_{nullptr};
  std::atomic<bool> is_in_use_{false};
  std::atomic<bool> is_deferred_{false};
  static constexpr int kNotDue = INT_MIN;
  std::atomic<std::uint32_t> ticket_{0};
  std::atomic<std::uint32_t> ticket_waiters_{0};
  std::atomic<std::uint32_t> stuck_ticket_{0};  // that somebody has waited for in vain
  std::atomic<int> due_{kNotDue};               // index of a FlushCause
  std::atomic<std::uint64_t> waits_since_{0};
  std::atomic<const void*> opener_{nullptr};  // a thread, as QueueLock names it
  std::uint32_t last_ticket_ = 0;
  StreamQueue* next_queue_ = nullptr;  // written before the object is published
};

template <typename Arguments>
inline bool StreamQueue::append_expected(const QueueGuard&, LaunchKey key, const LaunchShape& shape,
                                         Arguments arguments) noexcept {
  LaunchSlot* slot = next_;
  if (slot->key != key || !(slot->shape == shape) || !slot->info->takes(arguments)) [[unlikely]]
    return false;
  const std::uint32_t cursor = cursor_.load(std::memory_order_relaxed);
  if (slot->info->update_arguments(arguments_ + slot->arguments, arguments) &&
      !is_mutant(Mutant::kArgumentPatchMissed)) {
    dirty_[cursor / 64] |= 1ull << (cursor % 64);
  }
  cursor_.store(cursor + 1, std::memory_order_relaxed);
  next_ = slot + 1;
  return true;
}

// The sink of the process. Set before the first queue exists.
void set_sink(BatchSink* sink) noexcept;

}  // namespace runtime
