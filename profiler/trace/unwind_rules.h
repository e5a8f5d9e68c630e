// SPDX-License-Identifier: Apache-2.0
// How to get from a frame to its caller, read from the unwind tables (.eh_frame) of the object that
// holds the instruction. For signal handlers, where libunwind cannot be used: it asks the loader
// under a lock that the interrupted thread may hold. The loader's own index needs no lock (glibc
// 2.35 and later). Tables are read where they lie: code that is on the stack is not unloaded, and a
// copy through the kernel is a call that a sandbox may punish. Any thread; no lock, no allocation;
// errno may change. x86-64; elsewhere nothing is known.
#pragma once

#include <cstdint>

namespace profiler {

// Registers: the stack pointer, or the frame pointer. The caller's stack pointer is the frame's
// address, and its return address lies in the word below.
struct UnwindRule {
  enum class Frame : std::uint8_t {
    kUnknown,
    kRegister,  // register + offset
    kLoaded,    // what lies at register + offset, + addend
    kSignal,    // the kernel's record of what a signal interrupted, at the stack pointer
    kOutermost,
  };
  enum class FramePointer : std::uint8_t { kKept, kAtFrame, kAtFramePointer };

  Frame frame = Frame::kUnknown;
  FramePointer frame_pointer = FramePointer::kKept;
  bool is_from_frame_pointer = false;
  std::int32_t offset = 0;
  std::int32_t addend = 0;
  std::int32_t frame_pointer_offset = 0;
};

struct UnwindTable {
  std::uintptr_t header;      // .eh_frame_hdr; 0: no object holds the address, or it has no table
  std::uintptr_t end, start;  // of the object
};

// One row of the table that a function's unwind program makes.
struct UnwindState {
  UnwindRule rule;
  bool is_known = false;  // the frame is one of UnwindRule's
  bool returns = true;    // the return address lies below the frame
};

// Where the unwind program of a function is, and what it starts from.
struct UnwindFunction {
  std::uintptr_t start, end;
  std::uintptr_t program, program_end;
  std::uint32_t code_unit;
  std::int32_t data_unit;
  bool is_signal_frame;
  UnwindState initial;
};

// Looks for the loader's index. False: find_unwind_table() never finds one.
bool start_unwind_rules() noexcept;
UnwindTable find_unwind_table(std::uintptr_t address) noexcept;
// Searches the table.
bool find_unwind_function(const UnwindTable& table, std::uintptr_t address,
                          UnwindFunction* function) noexcept;
// `address` lies in the function.
UnwindRule read_unwind_rule(const UnwindFunction& function, std::uintptr_t address) noexcept;

}  // namespace profiler
