// SPDX-License-Identifier: Apache-2.0
// A descriptor of ours in a process whose program may close any number and open files of its own
// under it: it lies above the numbers that programs use, and is looked at before each use. What is
// not the file any more is lost, and neither written to nor closed. System calls only; one thread
// at a time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

#include "runtime/bounded_write.h"

namespace runtime {

class OwnFile {
 public:
  // Takes over an open descriptor, under another number.
  void take(int file) noexcept;
  bool is_open() const noexcept { return file_ >= 0; }
  // The number still is the file that was taken.
  bool is_ours() const noexcept;
  int number() const noexcept { return file_; }
  // It has a length and any place of it can be written.
  bool can_seek() const noexcept;
  // What it is, as when it was taken.
  dev_t device() const noexcept { return device_; }
  ino_t inode() const noexcept { return inode_; }

  // 0 or an error; EBADF: lost.
  [[nodiscard]] int write(const char* bytes, std::size_t size, Patience* patience) noexcept;
  [[nodiscard]] int write_at(off_t place, const char* bytes, std::size_t size) noexcept;
  // 0 or an error. Nothing when it is not open.
  int close() noexcept;

 private:
  int file_ = -1;
  int flags_ = 0;
  dev_t device_ = 0, special_ = 0;
  ino_t inode_ = 0;
  mode_t type_ = 0;
};

}  // namespace runtime
