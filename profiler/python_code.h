// SPDX-License-Identifier: Apache-2.0
// What CPython's code objects hold, from bytes that were copied out of them: the line of an
// instruction, text, and whether a file belongs to a package that wraps CUDA. Pure: no memory but
// what is given, no allocation. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profiler {

// The line of the instruction at byte `offset` of the code whose first line is `first_line`, from
// the location table as CPython 3.11 to 3.13 write it (co_linetable). 0: the table does not say.
int line_of_instruction(const std::uint8_t* table, std::size_t bytes, int first_line,
                        std::size_t offset) noexcept;

// Text of 1, 2 or 4 bytes a character (as CPython keeps it) as UTF-8, ended by a zero byte and cut
// between characters where `capacity` ends. Control characters become blanks.
void write_utf8(const void* characters, std::size_t count, unsigned bytes_each, char* text,
                std::size_t capacity) noexcept;

// Whether a file of this path is part of a package that wraps CUDA or of ctypes: a call site is
// looked for behind it. Packages count where they are installed (site-packages, dist-packages), so
// that a program's own folder may have any name.
bool is_wrapper_path(std::string_view path) noexcept;

// Whether native code of this file only carries a Python program's call to the driver.
bool is_python_bridge(std::string_view path) noexcept;

}  // namespace profiler
