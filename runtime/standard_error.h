// SPDX-License-Identifier: Apache-2.0
// Descriptor 2 as it was when the library was loaded. A program that closes it and opens a file of
// its own has that file there, and nothing of ours may get into it. Any thread; async-signal-safe;
// keeps errno.
#pragma once

#include <cstddef>

namespace runtime {

// It was open when the library was loaded, and is the same file, pipe, socket or device still.
[[nodiscard]] bool has_standard_error() noexcept;

// Takes what descriptor 2 is now for it: for tests.
void remember_standard_error() noexcept;

// Writes a message, if it has a standard error that takes it now: a full pipe, a slow reader or a
// stopped terminal never makes the program wait, and no signal reaches it. At most PIPE_BUF bytes,
// so that a pipe takes all or nothing.
void write_standard_error(const char* bytes, std::size_t size) noexcept;

}  // namespace runtime
