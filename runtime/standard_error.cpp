// SPDX-License-Identifier: Apache-2.0
#include "runtime/standard_error.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "runtime/write_shield.h"

namespace runtime {
namespace {

struct Identity {
  bool is_open;
  dev_t device;
  ino_t inode;
  dev_t special;  // of a device: the same node may lie in two file systems
  mode_t type;

  bool operator==(const Identity&) const = default;
};

Identity look() noexcept {
  struct stat status;
  if (fstat(STDERR_FILENO, &status) != 0) return {};
  return {true, status.st_dev, status.st_ino, status.st_rdev, status.st_mode & S_IFMT};
}

// Written before main(), or by the first message where a constructor of the program came first.
constinit Identity g_at_start{};
// Release pairs with the acquire, both in at_start(): what is known is whole.
constinit std::atomic<bool> g_is_known{false};

const Identity& at_start() noexcept {
  if (!g_is_known.load(std::memory_order_acquire)) {
    g_at_start = look();
    g_is_known.store(true, std::memory_order_release);
  }
  return g_at_start;
}

// Later would be too late: descriptor 2 may be a data file by the first CUDA call.
[[gnu::constructor]] void remember() noexcept {
  const int saved_errno = errno;
  at_start();
  errno = saved_errno;
}

bool takes_now() noexcept {
  pollfd question{STDERR_FILENO, POLLOUT, 0};
  return poll(&question, 1, 0) == 1 && (question.revents & POLLOUT) != 0;
}

// Another writer may fill a pipe after it was asked. Its O_NONBLOCK is not ours to set: all that
// share the pipe would have it.
void write_pipe(const char* bytes, std::size_t size) noexcept {
  const iovec piece{const_cast<char*>(bytes), size};
  if (pwritev2(STDERR_FILENO, &piece, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN) return;
  // An older kernel, a terminal, or a sandbox that lacks the call.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, bytes, size);
}

}  // namespace

void remember_standard_error() noexcept {
  g_is_known.store(false, std::memory_order_relaxed);
  at_start();
}

bool has_standard_error() noexcept {
  const int saved_errno = errno;
  const Identity now = look();
  errno = saved_errno;
  return now.is_open && now == at_start();
}

void write_standard_error(const char* bytes, std::size_t size) noexcept {
  if (!has_standard_error()) return;
  const int saved_errno = errno;
  const WriteShield shield;
  const mode_t type = at_start().type;
  if (type == S_IFSOCK) {
    [[maybe_unused]] const ssize_t sent =
        send(STDERR_FILENO, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  } else if (type == S_IFREG) {
    (void)write_shielded(STDERR_FILENO, bytes, size);  // nobody is left to be told
  } else if (takes_now()) {
    write_pipe(bytes, size);
  }
  errno = saved_errno;
}

}  // namespace runtime
