// SPDX-License-Identifier: Apache-2.0
// While one is held, writing cannot kill the program: SIGPIPE (a pipe without a reader) and SIGXFSZ
// (a file at its limit) stay away from the calling thread, and are gone afterwards if the thread
// had none of its own waiting. write(2) then fails with EPIPE or EFBIG. Around every write of ours
// to a descriptor that is not ours alone. Async-signal-safe; keeps errno; the thread's own.
#pragma once

#include <signal.h>

#include <cstddef>

namespace runtime {

class WriteShield {
 public:
  WriteShield() noexcept;
  ~WriteShield();
  WriteShield(const WriteShield&) = delete;
  WriteShield& operator=(const WriteShield&) = delete;

 private:
  sigset_t before_;       // the thread's mask
  sigset_t was_pending_;  // of the two signals
};

// Writes all of it under a shield, across interruptions. 0, or the error that ended it (EAGAIN
// where the descriptor does not block and is full).
[[nodiscard]] int write_shielded(int file, const char* bytes, std::size_t size) noexcept;

}  // namespace runtime
