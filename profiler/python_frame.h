// SPDX-License-Identifier: Apache-2.0
// Which line of a Python program made the call that this thread is in. Reads the interpreter's own
// structures by the layouts of the versions that it knows, without the GIL (ctypes and
// cuda-bindings release it, and taking it could wait for ever): a thread that is inside a call does
// not run Python, so its frames and what they refer to stay as they are. The exception is an
// interpreter that ends while other threads are inside calls: their memory is read by
// process_vm_readv, which fails where a load would fault. Any thread; no lock, no allocation; errno
// kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

// The frame of the nearest code that is not a wrapper's (python_code.h).
struct PythonCall {
  std::uintptr_t code = 0;      // its code object; 0: no Python called, or it cannot be read
  std::uint64_t identity = 0;   // of the content, against code objects that follow at one address
  std::size_t instruction = 0;  // bytes from the first

  bool operator==(const PythonCall&) const = default;
};

struct PythonPlace {
  const char* file;
  const char* function;  // qualified
  int line;              // 0: the code does not say
  std::uint32_t number;  // its own, from 1
};

// A place that was just read; long names lose their far ends.
struct PythonText {
  static constexpr std::size_t kBytes = 400 * 3 + 1;  // of 400 characters
  char file[kBytes];
  char function[kBytes];
  int line;
};

struct PythonStatus {
  char version[16];        // "" while no interpreter was found
  const char* why_unread;  // null: its frames are read
};

// Looks for an interpreter in the process. Once, before calls are looked at.
void start_python_frames() noexcept;
// Where stacks are first seen: an interpreter may have been loaded since.
void look_for_late_python() noexcept;

PythonCall find_python_call() noexcept;

// What the report says of the call, which must be the one that this thread is in. False: not to be
// read. python_places.h keeps it.
bool read_python_text(const PythonCall& call, PythonText* text) noexcept;

PythonStatus python_status() noexcept;

}  // namespace profiler
