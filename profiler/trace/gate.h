// SPDX-License-Identifier: Apache-2.0
// Opens once; whoever waits for that waits for a length of time, by the kernel's own count: clocks
// that the program sees may be set, stand still or be faked.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace profiler {

class Gate {
 public:
  // Also in a signal handler.
  void open() noexcept {
    is_open_.store(1, std::memory_order_release);
    syscall(SYS_futex, &is_open_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  }
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire) != 0; }

  // False when it is not open after that time; signals make the time somewhat longer or shorter.
  bool wait(long ns) noexcept {
    while (!is_open() && ns > 0) {
      const long slice = ns < kSliceNs ? ns : kSliceNs;
      const timespec time{0, slice};
      const bool is_interrupted =
          syscall(SYS_futex, &is_open_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0) != 0 &&
          errno == EINTR;
      ns -= is_interrupted ? slice / kInterruptions : slice;
    }
    return is_open();
  }

 private:
  // What an interruption hides of the time that has passed is a part of one slice.
  static constexpr long kSliceNs = 50'000'000;
  static constexpr long kInterruptions = 10;
  std::atomic<std::uint32_t> is_open_{0};
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4);
};

}  // namespace profiler
