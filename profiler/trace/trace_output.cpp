// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "profiler/output_place.h"

namespace profiler {
namespace {

constexpr std::size_t kRoomForNumbers = 32;
// Processes that have one number in as many namespaces, and one name for their traces.
constexpr int kMostNames = 100;

// "cajeta.pftrace" -> "cajeta.4711.pftrace", then "cajeta.4711.2.pftrace".
void add_numbers(char* path, std::size_t capacity, int pid, int count) noexcept {
  char* name = strrchr(path, '/');
  char* dot = strrchr(name != nullptr ? name : path, '.');
  char ending[64] = "";
  if (dot != nullptr && strlen(dot) < sizeof ending) {
    strcpy(ending, dot);
    *dot = '\0';
  }
  const std::size_t length = strlen(path);
  if (count == 1) {
    snprintf(path + length, capacity - length, ".%d%s", pid, ending);
  } else {
    snprintf(path + length, capacity - length, ".%d.%d%s", pid, count, ending);
  }
}

}  // namespace

bool TraceOutput::open(const char* pattern, const PathValues& values) noexcept {
  if (!expand_path(pattern, values, path_, sizeof path_ - kRoomForNumbers)) {
    snprintf(path_, sizeof path_, "%s", pattern);
    errno = ENAMETOOLONG;
    return false;
  }
  if (open_path()) return true;
  char wanted[kPathBytes];
  strcpy(wanted, path_);
  for (int i = 1; i <= kMostNames && errno == EWOULDBLOCK; ++i) {
    strcpy(path_, wanted);
    add_numbers(path_, sizeof path_, values.pid, i);
    if (open_path()) return true;
  }
  return false;
}

bool TraceOutput::open_path() noexcept {
  OutputPlace place;
  if (!look_at_output(path_, &place)) return false;
  if (place.kind == OutputPlace::Kind::kNone || place.kind == OutputPlace::Kind::kPlain) {
    return open_plain();
  }
  const int file = open_in_place(path_, place, false);
  if (file < 0) return false;
  file_.take(file);
  can_rewrite_ = false;
  return true;
}

// Without O_TRUNC, because of the lock.
bool TraceOutput::open_plain() noexcept {
  const int file = ::open(path_, O_WRONLY | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0666);
  if (file < 0) return false;
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && ftruncate(file, 0) == 0) {
    take(file);
    return true;
  }
  const int failure = errno;
  ::close(file);
  errno = failure;
  return false;
}

void TraceOutput::take(int file) noexcept {
  file_.take(file);
  can_rewrite_ = file_.can_seek();
  size_ = 0;
}

// What was lost with the descriptor is its number and the lock.
bool TraceOutput::reopen() noexcept {
  if (!can_rewrite_ || path_[0] == '\0') return false;
  const int file = ::open(path_, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status {};
  if (fstat(file, &status) != 0 || status.st_dev != file_.device() ||
      status.st_ino != file_.inode() || flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    return false;
  }
  file_.take(file);
  return true;
}

int TraceOutput::append(const char* bytes, std::size_t size) noexcept {
  if (!file_.is_ours() && !reopen()) return EBADF;
  if (!can_rewrite_) {
    runtime::Patience patience;
    return file_.write(bytes, size, &patience);
  }
  const int failure = file_.write_at(size_, bytes, size);
  if (failure == 0) size_ += static_cast<off_t>(size);
  return failure;
}

int TraceOutput::rewrite(const char* bytes, std::size_t size) noexcept {
  if (!file_.is_ours() && !reopen()) return EBADF;
  return file_.write_at(0, bytes, size);
}

}  // namespace profiler
