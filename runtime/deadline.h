// SPDX-License-Identifier: Apache-2.0
// The thread that bounds how long a launch may wait: programs poll mapped memory without any CUDA
// call and must not hang. It looks at all queues every half deadline and sends on what it has
// already seen waiting the time before, so a launch waits at most one deadline (plus scheduling).
// It sleeps when nothing has waited for a while.
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
  // thread is made when the first one would. System calls only where the thread is not awake, and
  // in a process that may have real-time threads.
  [[nodiscard]] static DirectReason refusal() noexcept {
    // Relaxed: the thread that this answer is for has yet to be told (watch()).
    if (state_.load(std::memory_order_relaxed) == kAwake &&
        !asks_policy_.load(std::memory_order_relaxed)) [[likely]]
      return DirectReason::kCount;
    return refusal_by_asking();
  }
  // A queue has begun to wait (its ticket is set). A system call only when the thread sleeps.
  static void watch() noexcept {
    // Sequentially consistent, as are the ticket's store and the store of kAsleep in the thread:
    // either it sees the ticket or we see the sleep.
    if (is_mutant(Mutant::kDeadlineOff)) return;
    if (state_.load() != kAwake) [[unlikely]]
      wake();
  }
  // Tells the thread to end and waits for it: before the library lets go of the driver (exit), and
  // in tests.
  static void stop() noexcept;
  // Around a lock of this process for a checkpoint (cuCheckpointProcessLock): driver calls would
  // block, with the lock of a queue in hand. Nothing is sent on from the first until the lock was
  // refused or the driver says that the process runs again, whoever unlocked it.
  static void process_is_being_locked() noexcept { hold_.store(kLocking); }
  static void process_was_locked(bool is_locked) noexcept {
    hold_.store(is_locked ? kLocked : kNoHold);
  }
  // In a forked child there is no thread.
  static void forget() noexcept;

 private:
  enum State : std::uint32_t { kNoThread, kStarting, kAsleep, kAwake, kStopped };
  static DirectReason refusal_by_asking() noexcept;
  static bool start() noexcept;
  static void wake() noexcept;
  static void* run(void*) noexcept;
  static bool scan() noexcept;
  static void sleep_until_woken() noexcept;
  enum Hold : std::uint32_t { kNoHold, kLocking, kLocked };
  static bool is_held() noexcept;
  static constinit std::atomic<std::uint32_t> state_;
  static constinit std::atomic<std::uint32_t> hold_;
  // Whether threads of the process can turn real-time: then each queue that opens asks.
  static constinit std::atomic<bool> asks_policy_;
};

}  // namespace runtime
