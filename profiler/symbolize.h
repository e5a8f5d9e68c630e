// SPDX-License-Identifier: Apache-2.0
// From an address in a file to function, source file and line, inlined calls included: from DWARF,
// in the file or in its separate debug file, else from the symbol table. Reads whole files, so it
// runs only when a report is written, on one thread; it neither locks nor calls malloc. By GCC's
// libbacktrace, linked in and kept to the one file that is asked for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

struct SourceFrame {
  const char* function;  // demangled; null when not known. Valid during the call
  const char* file;      // null when not known
  int line;
  bool is_inlined;  // into the next frame
};

// Calls `take` for each frame at the file address, innermost first; at least once if anything is
// known. `path` must live on: it is the key of what was read.
void symbolize(const char* path, std::uintptr_t file_address,
               void (*take)(void* context, const SourceFrame& frame), void* context) noexcept;

// The name in C++, cut to `capacity`. False when it is none of C++, or too long to be decoded. Any
// thread, no malloc.
[[nodiscard]] bool demangle(const char* name, char* text, std::size_t capacity) noexcept;

}  // namespace profiler
