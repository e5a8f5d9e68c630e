// SPDX-License-Identifier: Apache-2.0
// Alternative stacks for signals that threads have set by libc's sigaltstack(), as far as they are
// so small that a sample might not fit. The kernel tells them to their own threads only. Any
// thread, signal handlers included.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>

namespace profiler {

// sigaltstack(), for the shim, which stands in front of libc's. A thread that is sampled and sets
// one that is too small for samples is not sampled any more before it has it.
int set_signal_stack(const stack_t* next, stack_t* before) noexcept;

// Of the thread; 0: large enough, or none. SIZE_MAX: too many have small ones to know.
// kChangingStack: it is setting one just now.
inline constexpr std::size_t kChangingStack = 1;
std::size_t small_signal_stack_of(pid_t tid) noexcept;

// The most that the kernel puts on a stack for a signal, as it tells.
std::size_t most_frame_bytes() noexcept;

// Bytes that an alternative stack must have for samples: twice what the kernel puts there, as the
// program's own handler may be interrupted on it.
std::size_t least_signal_stack(std::size_t frame_bytes) noexcept;

}  // namespace profiler
