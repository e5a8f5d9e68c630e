// SPDX-License-Identifier: Apache-2.0
// Where a trace is written. A plain file is locked while this process lives, so that what another
// one writes is not overwritten, nor what this one wrote before it called exec(); when the program
// has closed the descriptor, it is opened again if it still is the same file. Anything else (a
// pipe, a device, /dev/stdout) takes bytes in their order only. One thread at a time.
#pragma once

#include <cstddef>

#include "profiler/report_path.h"
#include "runtime/own_file.h"

namespace profiler {

class TraceOutput {
 public:
  // False with errno; path() is what was tried.
  [[nodiscard]] bool open(const char* pattern, const PathValues& values) noexcept;
  // Takes over an open file instead, which is empty if it can seek.
  void take(int file) noexcept;
  const char* path() const noexcept { return path_; }

  // 0 or an error; EBADF: the file is gone.
  [[nodiscard]] int append(const char* bytes, std::size_t size) noexcept;
  bool can_rewrite() const noexcept { return can_rewrite_; }
  // Over the beginning.
  [[nodiscard]] int rewrite(const char* bytes, std::size_t size) noexcept;
  void close() noexcept { file_.close(); }

 private:
  static constexpr std::size_t kPathBytes = 4096;

  bool open_path() noexcept;
  bool open_plain() noexcept;
  bool reopen() noexcept;

  runtime::OwnFile file_;
  bool can_rewrite_ = false;
  off_t size_ = 0;
  char path_[kPathBytes] = "";
};

}  // namespace profiler
