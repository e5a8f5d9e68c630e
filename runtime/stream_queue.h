// SPDX-License-Identifier: Apache-2.0
// The launches of one stream that wait for an observation. The queue is a cursor over the recording
// it expects: a launch that matches updates the recording's values in place and moves on; the first
// that does not turns the batch into a sequence of its own. Objects are reused for new streams and
// never freed, so a stale pointer is still a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/batch_sink.h"
#include "runtime/context_state.h"
#include "runtime/lock.h"
#include "runtime/mutants.h"
#include "runtime/sequence.h"

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
  int index_;
};

enum class StreamKind : std::uint8_t { kLegacy, kBlocking, kNonBlocking };

class StreamQueue {
 public:
  enum class Append {
    kQueued,
    kFull,           // the batch must be closed first
    kGated,          // this stream may not queue at present
    kChanged,        // the function is not what it was when the caller looked
    kOtherSideOpen,  // the other side of the order group must be flushed first
    kNoMemory,
  };

  QueueLock& lock() noexcept { return lock_; }

  // The launch path. True: the launch was the expected one and is queued. Lock held.
  bool append_expected(LaunchKey key, const LaunchShape& shape, void** kernel_params) noexcept;
  // Any launch that passed the checks of launch.cpp. Lock held.
  Append append(const Launch& launch, const FunctionInfo& info) noexcept;
  // Everything in the batch has been submitted; the next launch starts a wait and must pass through
  // append(). Lock held.
  void note_submitted() noexcept {
    if (!is_mutant(Mutant::kSubmittedTwice)) submitted_ = cursor_;
    next_ = end_marker();
    ticket_.store(0, std::memory_order_relaxed);
  }

  // Submits and closes the batch. Lock held.
  CUresult close(FlushCause cause) noexcept;
  // Submits what is pending one by one and leaves the batch open: for submissions that the program
  // did not ask for. Lock held.
  CUresult submit_pending(FlushCause cause, DirectReason reason) noexcept;

  // Takes the object for a stream. Lock held; the batch is closed.
  void adopt(CUstream stream, StreamKind kind, ContextState* context, bool is_deferred) noexcept;
  // The stream is gone: recordings die with it. Lock held; the batch is closed.
  void retire() noexcept;
  // Lock held. While a queue has a gate nothing is queued.
  void gate(DirectReason reason) noexcept { gate_ = reason, next_ = end_marker(); }
  bool is_gated() const noexcept { return gate_reason() != DirectReason::kCount; }
  DirectReason gate_reason() const noexcept;  // kCount: no gate
  // Whether the launches of this stream may be queued at all. Written with the lock held and the
  // batch closed.
  bool is_deferred() const noexcept { return is_deferred_.load(std::memory_order_relaxed); }
  void set_deferred(bool deferred) noexcept {
    is_deferred_.store(deferred, std::memory_order_relaxed);
  }
  // The other side of the order group must be flushed before this queue opens.
  bool is_other_side_open() const noexcept;
  void purge(BatchSink::Purge what) noexcept;
  // Whether `claim(info)` holds for a function of the open batch or of the recording it follows.
  // Lock held.
  template <typename Claim>
  bool any_function(Claim claim) const noexcept {
    const std::uint32_t launches = sequence_ == nullptr ? 0 : sequence_->count;
    for (std::uint32_t i = 0; i < launches; ++i) {
      if (claim(*sequence_->slots[i].info)) return true;
    }
    return false;
  }

  // Without the lock: does the queue hold an open batch?
  bool is_open() const noexcept { return is_open_.load(std::memory_order_relaxed); }
  // Without the lock: changes whenever launches start to wait; 0 while none waits. For the
  // deadline.
  std::uint32_t waiting_ticket() const noexcept { return ticket_.load(); }
  // Without the lock: when the open batch was opened, in process order.
  std::uint64_t opened_at() const noexcept { return opened_at_.load(std::memory_order_relaxed); }
  std::uint32_t pending() const noexcept { return cursor_ - submitted_; }
  CUstream stream() const noexcept { return stream_; }
  StreamKind kind() const noexcept { return kind_.load(std::memory_order_relaxed); }
  ContextState* context() const noexcept { return context_.load(std::memory_order_relaxed); }
  bool is_in_use() const noexcept { return is_in_use_.load(std::memory_order_relaxed); }
  StreamQueue* next_queue() const noexcept { return next_queue_; }
  void set_next_queue(StreamQueue* queue) noexcept { next_queue_ = queue; }
  std::uint32_t seen_ticket = 0;  // deadline thread only
  // Launches of this stream that look at functions and hold no lock; see FunctionReading.
  std::atomic<std::uint32_t> function_readers{0};
  std::uint64_t functions_unread = 0;          // stream_map.cpp, free_old_functions() only
  std::atomic<bool> is_capture_origin{false};  // a capture began on this stream and has not ended

  Recordings* recordings = nullptr;  // owned by the sink; lock held
  StreamCounts counts{};             // lock held

 private:
  static LaunchSlot* end_marker() noexcept;
  void count_flush(FlushCause cause) noexcept;
  bool open_batch(LaunchKey first) noexcept;
  bool enter_group() noexcept;
  void leave_group() noexcept;
  void start_waiting() noexcept;
  void reset_batch() noexcept;
  bool follow(const Launch& launch) noexcept;
  bool diverge() noexcept;
  bool is_full() const noexcept;
  bool append_new(const Launch& launch, const FunctionInfo& info) noexcept;

  // Launch path first. Everything below is guarded by lock_ unless it is atomic.
  QueueLock lock_;
  bool is_recording_ = false;  // sequence_ is a recording we follow
  DirectReason gate_ = DirectReason::kCount;
  // Like context_: a flush that looks for queues reads it without the lock.
  std::atomic<StreamKind> kind_{StreamKind::kNonBlocking};
  LaunchSlot* next_ = end_marker();  // the slot the next launch is expected to match
  std::byte* arguments_ = nullptr;   // of sequence_
  std::uint64_t* dirty_ = nullptr;   // of sequence_
  std::uint32_t cursor_ = 0;         // launches in the batch
  std::uint32_t submitted_ = 0;
  Sequence* sequence_ = nullptr;
  Sequence scratch_;
  CUstream stream_ = nullptr;
  std::atomic<ContextState*> context_{nullptr};
  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_in_use_{false};
  std::atomic<bool> is_deferred_{false};
  std::atomic<std::uint32_t> ticket_{0};
  std::atomic<std::uint64_t> opened_at_{0};
  std::uint32_t last_ticket_ = 0;
  StreamQueue* next_queue_ = nullptr;  // written before the object is published
};

inline bool StreamQueue::append_expected(LaunchKey key, const LaunchShape& shape,
                                         void** kernel_params) noexcept {
  LaunchSlot* slot = next_;
  if (slot->key != key || !(slot->shape == shape)) [[unlikely]]
    return false;
  if (slot->info->update_arguments(arguments_ + slot->arguments, kernel_params) &&
      !is_mutant(Mutant::kArgumentPatchMissed)) {
    dirty_[cursor_ / 64] |= 1ull << (cursor_ % 64);
  }
  ++cursor_;
  next_ = slot + 1;
  return true;
}

// The sink of the process. Set before the first queue exists.
void set_sink(BatchSink* sink) noexcept;

}  // namespace runtime
