// SPDX-License-Identifier: Apache-2.0
#include "runtime/bounded_write.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/write_shield.h"

namespace runtime {
namespace {

// Patience is counted by waits that were in vain, as no clock is asked. 10 ms: longer ones leave
// more uncounted when a reader takes a little now and then; shorter ones wake up for nothing.
constexpr int kSliceMs = 10;
// A terminal that says it takes bytes takes so many without waiting, a pipe PIPE_BUF.
constexpr std::size_t kTerminalBytes = 256;

// -1 with errno. O_NONBLOCK is not ours to set: all that share the descriptor would have it.
ssize_t write_piece(int file, mode_t type, const char* bytes, std::size_t size) noexcept {
  if (type == S_IFSOCK) return send(file, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (type == S_IFIFO) {
    if (size > PIPE_BUF) size = PIPE_BUF;
    const iovec piece{const_cast<char*>(bytes), size};
    // Another writer may fill the pipe after it was asked.
    const ssize_t written = pwritev2(file, &piece, 1, -1, RWF_NOWAIT);
    if (written >= 0 || errno == EAGAIN || errno == EPIPE || errno == EINTR) return written;
    // An older kernel, or a sandbox that lacks the call.
  } else if (type == S_IFCHR && size > kTerminalBytes) {
    size = kTerminalBytes;
  }
  return write(file, bytes, size);
}

}  // namespace

bool Patience::wait_for(int file) noexcept {
  for (;;) {
    pollfd question{file, POLLOUT, 0};
    const int ready = poll(&question, 1, kSliceMs);
    if (ready > 0) return true;  // an error is the write's to find
    if (ready < 0 && errno != EINTR) return true;
    if (left_ms_ == kForever) continue;
    left_ms_ -= ready == 0 ? kSliceMs : 1;
    if (left_ms_ <= 0) return left_ms_ = 0, false;
  }
}

int write_bounded(int file, const char* bytes, std::size_t size, Patience* patience) noexcept {
  const WriteShield shield;
  const int saved_errno = errno;
  struct stat status {};
  int failure = fstat(file, &status) == 0 ? 0 : errno;
  const mode_t type = status.st_mode & S_IFMT;
  const bool may_wait = type != S_IFREG && type != S_IFBLK;
  while (failure == 0 && size > 0) {
    if (may_wait && !patience->wait_for(file)) {
      failure = ETIMEDOUT;
      break;
    }
    const ssize_t written = write_piece(file, type, bytes, size);
    if (written > 0) {
      bytes += written;
      size -= static_cast<std::size_t>(written);
    } else if (written == 0) {
      failure = EIO;
    } else if (errno != EINTR && !(errno == EAGAIN && may_wait)) {
      failure = errno;
    }
  }
  errno = saved_errno;
  return failure;
}

}  // namespace runtime
