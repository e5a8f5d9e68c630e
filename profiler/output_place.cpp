// SPDX-License-Identifier: Apache-2.0
#include "profiler/output_place.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <iterator>

namespace profiler {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

bool is_same_file(int descriptor, const struct stat& status) noexcept {
  struct stat open {};
  return fstat(descriptor, &open) == 0 && open.st_dev == status.st_dev &&
         open.st_ino == status.st_ino;
}

// Digits to the end; -1 otherwise.
int number_of(const char* text) noexcept {
  int number = 0;
  if (*text == '\0') return -1;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || number > 100'000'000) return -1;
    number = number * 10 + (*text - '0');
  }
  return number;
}

int open_socket(const char* path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  strcpy(address.sun_path, path);
  int failure = 0;
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
    const int file = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return file;
    }
    failure = errno;
    close(file);
    if (failure != EPROTOTYPE) break;
  }
  errno = failure;
  return -1;
}

}  // namespace

int named_descriptor(const char* path) noexcept {
  if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  char own[32];
  snprintf(own, sizeof own, "/proc/%d/fd/", getpid());
  for (const char* folder :
       {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", static_cast<const char*>(own)}) {
    const size_t length = strlen(folder);
    if (strncmp(path, folder, length) == 0) return number_of(path + length);
  }
  return -1;
}

bool look_at_output(const char* path, OutputPlace* place) noexcept {
  place->descriptor = named_descriptor(path);
  if (place->descriptor >= 0) {
    place->kind = OutputPlace::Kind::kDescriptor;
    return fstat(place->descriptor, &place->status) == 0;
  }
  if (stat(path, &place->status) != 0) {
    place->kind = OutputPlace::Kind::kNone;
    return errno == ENOENT;
  }
  // What the program writes to: replaced or cut off, its own output would be lost.
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!is_same_file(standard, place->status)) continue;
    place->kind = OutputPlace::Kind::kDescriptor;
    place->descriptor = standard;
    return true;
  }
  const bool is_plain = S_ISREG(place->status.st_mode);
  place->kind = is_plain ? OutputPlace::Kind::kPlain : OutputPlace::Kind::kSpecial;
  return true;
}

int open_in_place(const char* path, const OutputPlace& place, bool waits) noexcept {
  if (place.kind == OutputPlace::Kind::kDescriptor) {
    return fcntl(place.descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  }
  if (S_ISSOCK(place.status.st_mode)) return open_socket(path);
  return open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
}

bool follow_links(char* path, std::size_t capacity) noexcept {
  char link[PATH_MAX];
  for (int i = 0; i < kMostLinks; ++i) {
    const ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0) return errno == EINVAL || errno == ENOENT;
    link[length] = '\0';
    char* slash = link[0] == '/' ? nullptr : strrchr(path, '/');
    char* name = slash != nullptr ? slash + 1 : path;
    const auto kept = static_cast<std::size_t>(name - path);
    if (kept + static_cast<std::size_t>(length) + 1 > capacity) return errno = ENAMETOOLONG, false;
    memcpy(name, link, static_cast<std::size_t>(length) + 1);
  }
  return errno = ELOOP, false;
}

}  // namespace profiler
