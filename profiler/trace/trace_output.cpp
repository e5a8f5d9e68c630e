// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "profiler/output_place.h"
#include "profiler/trace/trace_fields.h"
#include "runtime/float_scope.h"
#include "runtime/real_clock.h"

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

// When this process began, on the clock of files; 0: not known. exec() does not change it.
double start_of_process_s() noexcept {
  char text[1024];
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) ::close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  // Behind the name, which may hold anything, field 3 comes; the start is field 22.
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  if (at == nullptr) return 0;
  const timespec now = runtime::read_real_clock(CLOCK_REALTIME);
  const timespec since_boot = runtime::read_real_clock(CLOCK_BOOTTIME);
  const double booted_s = static_cast<double>(now.tv_sec - since_boot.tv_sec) +
                          static_cast<double>(now.tv_nsec - since_boot.tv_nsec) / 1e9;
  return booted_s + static_cast<double>(strtoull(at + 1, nullptr, 10)) /
                        static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The process of the trace at `path`, from its header; 0: there is none.
std::uint64_t pid_of_trace(const char* path) noexcept {
  // Not on the stack: the thread that starts the trace may have a small one. Only that one is here.
  static char bytes[8192];
  const int file = ::open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, bytes, sizeof bytes);
  if (file >= 0) ::close(file);
  if (size <= 0) return 0;
  // The name with its length in front, and the tag of a number behind it.
  constexpr char kName[] = {3, 'p', 'i', 'd', perfetto::annotation::kNumber << 3};
  // By hand: memmem() takes 2 KiB of stack.
  const char* found = std::search(bytes, bytes + size, kName, kName + sizeof kName);
  std::uint64_t pid = 0;
  if (found == bytes + size) return 0;
  const char* at = found + sizeof kName;
  for (int shift = 0; shift < 35 && at < bytes + size; shift += 7, ++at) {
    pid |= static_cast<std::uint64_t>(*at & 0x7f) << shift;
  }
  return pid;
}

// Written by this very process, before it called exec().
bool is_of_our_past(const char* path, const struct stat& status) noexcept {
  if (status.st_size == 0 || pid_of_trace(path) != static_cast<std::uint64_t>(getpid()))
    return false;
  const runtime::DefaultFloats scope;
  const double start_s = start_of_process_s();
  const double written_s = static_cast<double>(status.st_mtim.tv_sec) +
                           static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
  return start_s > 0 && written_s >= start_s;
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
  struct stat status {};
  bool is_taken = flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &status) == 0;
  if (is_taken && is_of_our_past(path_, status)) {
    errno = EWOULDBLOCK;
    is_taken = false;
  }
  if (is_taken && ftruncate(file, 0) == 0) {
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
