// SPDX-License-Identifier: Apache-2.0
// Where unwind tables end, libunwind asks whether memory can be read by writing a byte of it into a
// pipe, which it opens at its first walk and keeps by number. A program that closes descriptors it
// does not know has files of its own there some day. Guarded, the pipe lies above the numbers that
// programs use, and is looked at before each use.
#pragma once

namespace profiler {

// Right before and behind the first walk, on one thread, before others walk. `library`: as dlopen()
// returned it.
void guard_libunwind_pipe(void* library) noexcept;
void find_libunwind_pipe() noexcept;

// Where it could not be guarded, and the numbers lead elsewhere or nowhere: libunwind must not be
// asked any more. Any thread.
bool is_libunwind_pipe_gone() noexcept;

}  // namespace profiler
