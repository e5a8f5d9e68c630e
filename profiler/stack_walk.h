// SPDX-License-Identifier: Apache-2.0
// Return addresses of the calling thread, innermost first. Two ways: libunwind's cached backtrace,
// which reads unwind tables and gets through code without frame pointers; and a walk along frame
// pointers, which always finds the direct caller and further frames only where the program keeps
// frame pointers. Any thread; no lock; keeps errno. libunwind is opened with RTLD_LOCAL and is no
// dependency: linked, it would take over the program's C++ exceptions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

enum class StackWalk : std::uint8_t { kFramePointers, kLibunwind };

// Opens libunwind if `allow_libunwind` and walks once, so that later walks find their first
// allocations made. Call it once, before the first walk. Where the loader is kept busy, libunwind
// may come later.
void start_stack_walk(bool allow_libunwind) noexcept;
// The way that walks go now.
StackWalk stack_walk() noexcept;

// Frames of our own library are left out. `frame` is __builtin_frame_address(0) of a function that
// our wrapper entered by a jump.
std::size_t walk_stack(const void* frame, std::uintptr_t* addresses, std::size_t capacity) noexcept;

}  // namespace profiler
