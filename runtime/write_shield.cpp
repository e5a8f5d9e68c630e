// SPDX-License-Identifier: Apache-2.0
#include "runtime/write_shield.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace runtime {
namespace {

constexpr int kKillers[] = {SIGPIPE, SIGXFSZ};

sigset_t killers() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kKillers) sigaddset(&set, number);
  return set;
}

}  // namespace

WriteShield::WriteShield() noexcept {
  const int saved_errno = errno;
  const sigset_t shut = killers();
  // Blocked first: what is pending is then known before we write.
  pthread_sigmask(SIG_BLOCK, &shut, &before_);
  sigpending(&was_pending_);
  errno = saved_errno;
}

WriteShield::~WriteShield() {
  const int saved_errno = errno;
  sigset_t ours;
  sigset_t pending;
  sigemptyset(&ours);
  sigpending(&pending);
  bool any = false;
  for (const int number : kKillers) {
    if (sigismember(&was_pending_, number) != 0 || sigismember(&pending, number) == 0) continue;
    sigaddset(&ours, number);
    any = true;
  }
  const timespec at_once{0, 0};
  while (any && sigtimedwait(&ours, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved_errno;
}

int write_shielded(int file, const char* bytes, std::size_t size) noexcept {
  const WriteShield shield;
  while (size > 0) {
    const ssize_t written = write(file, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace runtime
