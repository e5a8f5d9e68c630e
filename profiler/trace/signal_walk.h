// SPDX-License-Identifier: Apache-2.0
// The stack that a signal interrupted, for its handler: by unwind tables where there are any, else
// along frame pointers. The thread's own stack and its alternative one are read as they are, others
// (of coroutines) through the kernel, a window at a time, so that whatever registers hold, nothing
// faults. No lock, no allocation, bounded work; errno may change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/trace/thread_stack.h"
#include "profiler/trace/unwind_rules.h"

namespace profiler {

// What the handler of one thread works with: what it has read of unwind tables before, and its copy
// of the stack, which would not fit on the small stacks that handlers may run on. Zeroed memory is
// valid. `table`: low bits of where the unwind table lies, as another object may be loaded at the
// same place later.
struct WalkMemory {
  struct KnownRule {
    std::uintptr_t address;
    std::uint32_t table;
    UnwindRule rule;
  };
  // Found by blocks of code, as interrupted instructions are seldom the same.
  struct KnownFunction {
    std::uintptr_t block;
    std::uint32_t table;
    UnwindFunction function;
  };
  // 32 and 24 KiB: a program's hot stacks fit, and threads are many.
  static constexpr std::size_t kRules = 1024;
  static constexpr std::size_t kFunctions = 256;
  // Most frames are near; a copy costs by the page.
  static constexpr std::size_t kWindowBytes = 8192;

  KnownRule rules[kRules];
  KnownFunction functions[kFunctions];
  std::uint8_t window[kWindowBytes];
};

// Return addresses behind the interrupted instruction, innermost first. Frames of our own library
// are left out, unless all are. `context`: the handler's third argument. `own`: the stack of the
// calling thread, which the interrupted code need not be on.
std::size_t walk_interrupted(const void* context, const ThreadStack& own, WalkMemory& memory,
                             std::uintptr_t* addresses, std::size_t capacity) noexcept;

// The stack pointer of what was interrupted.
std::uintptr_t interrupted_stack(const void* context) noexcept;

}  // namespace profiler
