// SPDX-License-Identifier: Apache-2.0
// The lock of one stream queue, for an append or a look: never held across a driver call
// (submit_turn.h). Uncontended it is one compare-and-swap and one store; a thread that has to wait
// spins briefly, yields, then sleeps: the holder may have been put aside. Not recursive, not fair.
// Knows its holder: a signal handler that ends the process may have interrupted it.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>

#include "runtime/reentry.h"

namespace runtime {

// Tells the processor that a loop waits for another one.
inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class QueueLock {
 public:
  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() noexcept {
    const void* nobody = nullptr;
    return holder_.compare_exchange_strong(nobody, this_thread(), std::memory_order_acquire,
                                           std::memory_order_relaxed);
  }
  // For the exit paths. False: still held after about `milliseconds`, or by this very thread, which
  // a signal handler has interrupted for good.
  bool lock_within(int milliseconds) noexcept {
    for (int attempt = 0; attempt < milliseconds * 10; ++attempt) {
      if (try_lock()) return true;
      if (holder_.load(std::memory_order_relaxed) == this_thread()) return false;
      timespec pause{0, 100'000};
      nanosleep(&pause, nullptr);
    }
    return false;
  }
  // Release pairs with the acquire of the next try_lock().
  void unlock() noexcept { holder_.store(nullptr, std::memory_order_release); }

 private:
  // Longer than an append (20-50 ns); a holder that takes longer has been put aside, and spinning
  // keeps it from its core.
  static constexpr int kSpins = 64;
  // Yielding lets nobody of lower priority run: a real-time thread must sleep for a holder that
  // shares its processor.
  static constexpr int kYields = kSpins + 16;

  static const void* this_thread() noexcept { return &t_reentry_depth; }
  // Out of line, so that the launch path saves no registers for it.
  [[gnu::noinline, gnu::cold]] void wait() noexcept {
    for (int spin = 0;; ++spin) {
      if (holder_.load(std::memory_order_relaxed) == nullptr && try_lock()) return;
      if (spin < kSpins) {
        pause_briefly();
      } else if (spin < kYields) {
        sched_yield();
      } else {
        const timespec nap{0, 20'000};
        nanosleep(&nap, nullptr);
      }
    }
  }

  std::atomic<const void*> holder_{nullptr};
};

class QueueGuard {
 public:
  explicit QueueGuard(QueueLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~QueueGuard() { lock_.unlock(); }
  QueueGuard(const QueueGuard&) = delete;
  QueueGuard& operator=(const QueueGuard&) = delete;

 private:
  QueueLock& lock_;
};

}  // namespace runtime
