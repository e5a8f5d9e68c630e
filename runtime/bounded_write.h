// SPDX-License-Identifier: Apache-2.0
// Writes that neither kill the program nor hold it up: to a descriptor that it shares with us or
// that leads to somebody who may not read. Async-signal-safe; keep errno; any thread.
#pragma once

#include <cstddef>

namespace runtime {

// How long all the writes of one text may wait for readers, together.
class Patience {
 public:
  // 2 s: a reader that does nothing for so long reads nothing more, and the program wants to end.
  static constexpr int kMostMs = 2000;
  static constexpr int kForever = -1;

  explicit constexpr Patience(int ms = kMostMs) noexcept : left_ms_(ms) {}
  // Waits until `file` takes bytes. False: no patience is left.
  [[nodiscard]] bool wait_for(int file) noexcept;

 private:
  int left_ms_;
};

// All of it. 0, or the error that ended it; ETIMEDOUT: nobody read.
[[nodiscard]] int write_bounded(int file, const char* bytes, std::size_t size,
                                Patience* patience) noexcept;

}  // namespace runtime
