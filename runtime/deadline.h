// SPDX-License-Identifier: Apache-2.0
// The threads that bound how long a launch may wait: programs poll mapped memory without any CUDA
// call and must not hang. One leads: it looks at all queues every half deadline, oldest first, and
// sends on what it has already seen waiting the time before, so a launch waits at most one deadline
// (plus scheduling), and what flushes have handed over. One follows: when the leader has been in
// the driver for a whole deadline (a full launch queue), the follower leads, so that one stuck
// stream holds up no other. They sleep when nothing has waited for a while.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/counters.h"
#include "runtime/mutants.h"

namespace runtime {

class Deadline {
 public:
  // Before the first queue opens, and again only after stop().
  static void configure(std::uint64_t deadline_us) noexcept;
  // Asked before a queue begins to wait: kCount, or why a launch of this thread must not wait. The
  // threads are made when the first one would. System calls only where the leader is not awake, and
  // in a process that may have real-time threads.
  [[nodiscard]] static DirectReason refusal() noexcept {
    // Acquire pairs with the exchange in start(), behind which asks_policy_ is known. The thread
    // itself has yet to be told (watch()).
    if (state_.load(std::memory_order_acquire) == kAwake &&
        !asks_policy_.load(std::memory_order_relaxed)) [[likely]]
      return DirectReason::kCount;
    return refusal_by_asking();
  }
  // A queue has begun to wait (its ticket is set). A system call only when the leader sleeps.
  static void watch() noexcept {
    // Sequentially consistent, as are the ticket's store and the store of kAsleep in the thread:
    // either it sees the ticket or we see the sleep.
    if (is_mutant(Mutant::kDeadlineOff)) return;
    if (state_.load() != kAwake) [[unlikely]]
      wake();
  }
  // A queue is due (StreamQueue::make_due): it is not to wait for the next look.
  static void hurry() noexcept;
  // How long it is worth waiting for what was handed over.
  static std::uint64_t patience_us() noexcept;
  // Tells the threads to end and waits for them: before the library lets go of the driver (exit),
  // and in tests.
  static void stop() noexcept;
  // Around a lock of this process for a checkpoint (cuCheckpointProcessLock): driver calls would
  // block. Nothing is sent on from the first until the lock was refused or the driver says that the
  // process runs again, whoever unlocked it.
  static void process_is_being_locked() noexcept { hold_.store(kLocking); }
  static void process_was_locked(bool is_locked) noexcept {
    hold_.store(is_locked ? kLocked : kNoHold);
  }
  // In a forked child there is no thread.
  static void forget() noexcept;

 private:
  enum State : std::uint32_t { kNoThread, kStarting, kAsleep, kAwake, kStopped };
  enum Hold : std::uint32_t { kNoHold, kLocking, kLocked };

  static DirectReason refusal_by_asking() noexcept;
  static bool start() noexcept;
  static void wake() noexcept;
  static int start_thread(void* (*run)(void*)) noexcept;
  static void* run_leader(void*) noexcept;
  static void* run_follower(void*) noexcept;
  static void serve(std::uint32_t epoch) noexcept;
  static void lead(std::uint32_t epoch) noexcept;
  static std::uint32_t follow() noexcept;
  static bool leads(std::uint32_t epoch) noexcept;
  static bool scan(std::uint32_t epoch) noexcept;
  static void sleep_until_woken() noexcept;
  static bool is_held() noexcept;

  static constinit std::atomic<std::uint32_t> state_;
  static constinit std::atomic<std::uint32_t> hold_;
  // Whether threads of the process can turn real-time: then each queue that opens asks.
  static constinit std::atomic<bool> asks_policy_;
  static constinit std::atomic<std::uint32_t> epoch_;    // counts leaders
  static constinit std::atomic<std::uint32_t> busy_;     // odd while the leader submits
  static constinit std::atomic<std::uint32_t> hurries_;  // counts hurry()
  static constinit std::atomic<std::uint32_t> threads_;
  static constinit std::atomic<std::uint32_t> followers_;
};

}  // namespace runtime
