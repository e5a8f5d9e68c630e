// SPDX-License-Identifier: Apache-2.0
// What the path of an output leads to. A plain file may be replaced or truncated; a descriptor, a
// device, a pipe or a socket is somebody else's, and is written to as it is. System calls only: any
// thread, also in a signal handler.
#pragma once

#include <sys/stat.h>

#include <cstddef>

namespace profiler {

struct OutputPlace {
  enum class Kind {
    kNone,        // nothing there yet
    kPlain,       // a regular file
    kDescriptor,  // one of this process: /dev/stdout, /dev/fd/N, or a file that it has as 1 or 2
    kSpecial,     // anything else that has a name
  };
  Kind kind = Kind::kNone;
  int descriptor = -1;
  struct stat status {};  // of what is there
};

// False with errno: it cannot be written.
[[nodiscard]] bool look_at_output(const char* path, OutputPlace* place) noexcept;

// Opens what is kDescriptor or kSpecial: a descriptor by another number, for writing. Without
// `waits`, a pipe that nobody reads is ENXIO. -1 with errno.
int open_in_place(const char* path, const OutputPlace& place, bool waits) noexcept;

// Replaces the last part of `path` for as long as that is a symbolic link. False with errno.
[[nodiscard]] bool follow_links(char* path, std::size_t capacity) noexcept;

// The descriptor of this process that a path like /dev/fd/3 names; -1: none.
int named_descriptor(const char* path) noexcept;

}  // namespace profiler
