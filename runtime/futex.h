// SPDX-License-Identifier: Apache-2.0
// Waiting on a word of memory. Time-outs are relative and of the kernel's own monotonic clock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace runtime {

inline timespec timeout_of_us(std::uint64_t us) noexcept {
  return {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
}

// Waits while the word holds `value`, at most `timeout` (null: forever). May wake for no reason.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                       const timespec* timeout = nullptr) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, timeout,
          nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int waiters = INT_MAX) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, waiters, nullptr,
          nullptr, 0);
}

}  // namespace runtime
