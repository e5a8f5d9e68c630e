// SPDX-License-Identifier: Apache-2.0
// The lock of one stream queue. Uncontended it is one compare-and-swap and one store; a thread that
// has to wait spins briefly, then yields: the holder may be inside the driver building a graph. Not
// recursive, not fair.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>

namespace runtime {

class QueueLock {
 public:
  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() noexcept { return !locked_.exchange(true, std::memory_order_acquire); }
  // For the exit paths: a signal handler may have interrupted the holder, which then never lets go.
  // False: still held after about `milliseconds`.
  bool lock_within(int milliseconds) noexcept {
    for (int attempt = 0; attempt < milliseconds * 10; ++attempt) {
      if (try_lock()) return true;
      timespec pause{0, 100'000};
      nanosleep(&pause, nullptr);
    }
    return false;
  }
  // Release pairs with the acquire of the next try_lock().
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  // Out of line, so that the launch path saves no registers for it.
  [[gnu::noinline, gnu::cold]] void wait() noexcept {
    // 64 spins: about the length of an append (20-50 ns); a flush takes microseconds, so yield soon
    // after.
    for (int spin = 0;; ++spin) {
      if (!locked_.load(std::memory_order_relaxed) && try_lock()) return;
      if (spin < 64) {
        pause();
      } else {
        sched_yield();
      }
    }
  }
  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<bool> locked_{false};
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
