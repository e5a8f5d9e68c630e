// SPDX-License-Identifier: Apache-2.0
#include "profiler/output_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace profiler {
namespace {

constexpr int kMostTries = 100;

// Processes may have the same number in two namespaces, and threads the same clock.
std::uint64_t any_number() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto here = reinterpret_cast<std::uintptr_t>(&now);
  std::uint64_t number = 0;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(now.tv_nsec), static_cast<std::uint64_t>(now.tv_sec),
        static_cast<std::uint64_t>(syscall(SYS_gettid)), static_cast<std::uint64_t>(here)}) {
    number = (number ^ part) * 0x9e3779b97f4a7c15U;
    number ^= number >> 29;
  }
  return number;
}

// The length of the folder in `path`, with its slash; 0 where it has none.
int folder_length(const char* path) noexcept {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? static_cast<int>(slash + 1 - path) : 0;
}

// A name that nobody uses, in the folder of `path`, of a length that any file system takes.
bool name_beside(const char* path, char* name, std::size_t capacity) noexcept {
  const int length = snprintf(name, capacity, "%.*s.cajeta-%016llx.tmp", folder_length(path), path,
                              static_cast<unsigned long long>(any_number()));
  if (length < static_cast<int>(capacity)) return true;
  return errno = ENAMETOOLONG, false;
}

// By these a folder says that it takes no new file, while one that is there may be written.
bool is_about_folder(int failure) noexcept {
  return failure == EACCES || failure == EPERM || failure == ENAMETOOLONG;
}

}  // namespace

bool OutputFile::open(const char* path, int patience_ms) noexcept {
  const bool waits = patience_ms == runtime::Patience::kForever;
  patience_ = runtime::Patience(patience_ms);
  has_name_ = false;
  OutputPlace place;
  if (!look_at_output(path, &place)) return false;
  const bool is_there = place.kind == OutputPlace::Kind::kPlain;
  if (!is_there && place.kind != OutputPlace::Kind::kNone) return open_through(path, place, waits);
  // A file that its owner has made unwritable stays as it is.
  if (is_there && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return false;
  if (snprintf(target_, sizeof target_, "%s", path) >= static_cast<int>(sizeof target_)) {
    return errno = ENAMETOOLONG, false;
  }
  if (!follow_links(target_, sizeof target_)) return false;
  if (open_beside(place)) return true;
  if (!is_there || !is_about_folder(errno)) return false;
  const int file = open_target();
  if (file < 0) return false;
  file_.take(file);
  way_ = Way::kThrough;
  return true;
}

bool OutputFile::open_through(const char* path, const OutputPlace& place, bool waits) noexcept {
  const int file = open_in_place(path, place, waits);
  if (file < 0) return false;
  file_.take(file);
  way_ = Way::kThrough;
  return true;
}

// Only where it can be given a name afterwards.
int OutputFile::make_unnamed() noexcept {
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  const int length = folder_length(target_);
  if (length == 0) return ::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  snprintf(temporary_, sizeof temporary_, "%.*s", length, target_);
  return ::open(temporary_, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

int OutputFile::open_target() noexcept {
  return ::open(target_, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

// Beside the target. -1 with errno.
int OutputFile::make_named() noexcept {
  for (int i = 0; i < kMostTries; ++i) {
    if (!name_beside(target_, temporary_, sizeof temporary_)) return -1;
    has_name_ = true;  // before it is: a signal may end us here
    const int file = ::open(temporary_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file >= 0) return file;
    has_name_ = false;
    if (errno != EEXIST) break;
  }
  return -1;
}

bool OutputFile::open_beside(const OutputPlace& place) noexcept {
  way_ = Way::kRename;
  int file = make_unnamed();
  if (file < 0) file = make_named();
  if (file < 0) return false;
  file_.take(file);
  return take_over(place);
}

// Mode and owner of the file that will be replaced. One that would not stay what it is, or has
// other names, is written over instead.
bool OutputFile::take_over(const OutputPlace& place) noexcept {
  if (place.kind != OutputPlace::Kind::kPlain) return true;
  struct stat own {};
  struct stat target {};
  const struct stat& old = place.status;
  const int file = file_.number();
  if (fstat(file, &own) != 0) return false;
  const bool is_owner_kept = (own.st_uid == old.st_uid && own.st_gid == old.st_gid) ||
                             fchown(file, old.st_uid, old.st_gid) == 0;
  const bool is_mode_kept = fchmod(file, old.st_mode & 07777) == 0;
  // The kernel follows some links of /proc to files that their text does not name.
  const bool is_found =
      stat(target_, &target) == 0 && target.st_dev == old.st_dev && target.st_ino == old.st_ino;
  if (!is_owner_kept || !is_mode_kept || !is_found || old.st_nlink != 1) way_ = Way::kCopy;
  return true;
}

bool OutputFile::write(const char* bytes, std::size_t size) noexcept {
  const int failure = file_.write(bytes, size, &patience_);
  if (failure != 0) errno = failure;
  return failure == 0;
}

int OutputFile::give_name() noexcept {
  char source[40];
  snprintf(source, sizeof source, "/proc/self/fd/%d", file_.number());
  for (int i = 0; i < kMostTries; ++i) {
    if (!name_beside(target_, temporary_, sizeof temporary_)) return errno;
    has_name_ = true;
    if (linkat(AT_FDCWD, source, AT_FDCWD, temporary_, AT_SYMLINK_FOLLOW) == 0) return 0;
    has_name_ = false;
    if (errno != EEXIST) break;
  }
  return errno;
}

// 0 or an error. `opened` < 0: errno says which.
int OutputFile::copy_to(int opened) noexcept {
  if (opened < 0) return errno;
  runtime::OwnFile to;
  to.take(opened);
  char bytes[4096];
  int failure = 0;
  for (off_t place = 0; failure == 0;) {
    if (!file_.is_ours()) return EBADF;
    const ssize_t size = pread(file_.number(), bytes, sizeof bytes, place);
    if (size == 0) break;
    if (size < 0 && errno == EINTR) continue;
    failure = size < 0 ? errno : to.write(bytes, static_cast<std::size_t>(size), &patience_);
    place += size;
  }
  const int closing = to.close();
  return failure != 0 ? failure : closing;
}

int OutputFile::put_in_place() noexcept {
  if (!file_.is_ours()) return EBADF;
  if (way_ == Way::kCopy) return copy_to(open_target());
  if (!has_name_ && give_name() != 0) {
    // A file system that makes files without a name and then cannot name them.
    const int failure = copy_to(make_named());
    if (failure != 0) return failure;
  }
  if (rename(temporary_, target_) == 0) {
    has_name_ = false;
    return 0;
  }
  const int failure = errno;
  // A mount point, or a folder with the sticky bit.
  const bool can_copy = failure == EBUSY || failure == EPERM || failure == EACCES;
  return can_copy && access(target_, F_OK) == 0 ? copy_to(open_target()) : failure;
}

bool OutputFile::close(bool is_written) noexcept {
  int failure = is_written ? 0 : errno;
  if (failure == 0 && way_ != Way::kThrough) failure = put_in_place();
  const int closing = file_.close();
  if (failure == 0) failure = closing;
  abandon();
  if (failure != 0) errno = failure;
  return failure == 0;
}

void OutputFile::abandon() noexcept {
  if (has_name_) unlink(temporary_);
  has_name_ = false;
}

}  // namespace profiler
