// SPDX-License-Identifier: Apache-2.0
#include "runtime/own_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/write_shield.h"

namespace runtime {
namespace {

// Programs close and count up to 1,024 or their limit, select() ends at 1,024. Not higher: the
// kernel's table of a process, which fork() copies, grows to the highest number.
constexpr int kWantedNumber = 8192;
// So far below a limit that is lower.
constexpr int kBelowLimit = 32;
// Those that nobody changes who shares the open file.
constexpr int kKeptFlags = O_ACCMODE | O_PATH;

// `file` itself where no number above is free.
int moved_up(int file) noexcept {
  rlimit limit{};
  int wanted = kWantedNumber;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kWantedNumber + kBelowLimit) {
    wanted = static_cast<int>(limit.rlim_cur) - kBelowLimit;
  }
  for (; wanted > file; wanted -= kBelowLimit) {
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, wanted);
    if (moved < 0) continue;
    ::close(file);
    return moved;
  }
  return file;
}

}  // namespace

void OwnFile::take(int file) noexcept {
  const int saved_errno = errno;
  file_ = moved_up(file);
  struct stat status {};
  fstat(file_, &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  special_ = status.st_rdev;
  type_ = status.st_mode & S_IFMT;
  flags_ = fcntl(file_, F_GETFL) & kKeptFlags;
  errno = saved_errno;
}

bool OwnFile::is_ours() const noexcept {
  const int saved_errno = errno;
  struct stat status {};
  const bool is_same = file_ >= 0 && fstat(file_, &status) == 0 && status.st_dev == device_ &&
                       status.st_ino == inode_ && status.st_rdev == special_ &&
                       (status.st_mode & S_IFMT) == type_ &&
                       (fcntl(file_, F_GETFL) & kKeptFlags) == flags_;
  errno = saved_errno;
  return is_same;
}

bool OwnFile::can_seek() const noexcept {
  return type_ == S_IFREG || type_ == S_IFBLK;
}

int OwnFile::write(const char* bytes, std::size_t size, Patience* patience) noexcept {
  return is_ours() ? write_bounded(file_, bytes, size, patience) : EBADF;
}

int OwnFile::write_at(off_t place, const char* bytes, std::size_t size) noexcept {
  if (!is_ours()) return EBADF;
  const WriteShield shield;
  const int saved_errno = errno;
  int failure = 0;
  while (failure == 0 && size > 0) {
    const ssize_t written = pwrite(file_, bytes, size, place);
    if (written > 0) {
      bytes += written;
      place += written;
      size -= static_cast<std::size_t>(written);
    } else if (written == 0) {
      failure = EIO;
    } else if (errno != EINTR) {
      failure = errno;
    }
  }
  errno = saved_errno;
  return failure;
}

int OwnFile::close() noexcept {
  const int saved_errno = errno;
  int failure = 0;
  if (file_ >= 0) failure = !is_ours() ? EBADF : ::close(file_) != 0 ? errno : 0;
  file_ = -1;
  errno = saved_errno;
  return failure;
}

}  // namespace runtime
