// SPDX-License-Identifier: Apache-2.0
// A file of text that readers see whole or not at all: a plain file is made beside its place and
// put there at the end, with the mode and the owner that the old one had, and has no name until
// then where the file system can do that. What is no plain file is written to (output_place.h). No
// allocation; one thread at a time; works in a signal handler that has 16 KiB of stack.
#pragma once

#include <atomic>
#include <cstddef>

#include "profiler/output_place.h"
#include "runtime/own_file.h"

namespace profiler {

class OutputFile {
 public:
  // False with errno. `patience_ms`: how long readers of a pipe may take, Patience::kForever for as
  // long as they like.
  [[nodiscard]] bool open(const char* path, int patience_ms = runtime::Patience::kMostMs) noexcept;
  // False with errno.
  [[nodiscard]] bool write(const char* bytes, std::size_t size) noexcept;
  // `is_written`: everything arrived, else errno says why not. False with errno, which the caller's
  // own failure sets too: nothing was left or changed where a plain file was to be.
  [[nodiscard]] bool close(bool is_written) noexcept;
  // Removes what has a name already and is not finished. Also beside the thread that writes, which
  // will not go on: the process ends.
  void abandon() noexcept;

 private:
  static constexpr std::size_t kPathBytes = 4096;
  enum class Way { kThrough, kRename, kCopy };

  bool open_through(const char* path, const OutputPlace& place, bool waits) noexcept;
  bool open_beside(const OutputPlace& place) noexcept;
  int make_unnamed() noexcept;
  int make_named() noexcept;
  int open_target() noexcept;
  bool take_over(const OutputPlace& place) noexcept;
  int put_in_place() noexcept;
  int copy_to(int opened) noexcept;
  int give_name() noexcept;

  runtime::OwnFile file_;
  runtime::Patience patience_;
  Way way_ = Way::kThrough;
  std::atomic<bool> has_name_ = false;  // `temporary_` is there
  char target_[kPathBytes] = "";
  char temporary_[kPathBytes] = "";
};

}  // namespace profiler
