// SPDX-License-Identifier: Apache-2.0
// What the process was started with, copied when the library is loaded: a program may write over
// its environment and its arguments (a title for ps) and move to another folder before its first
// CUDA call. Read by any thread. Empty where the loader ran code of the program
// ahead of ours, or the library was loaded without its constructor.
#pragma once

#include <cstddef>

namespace runtime {

// Copies of what the library reads of an environment: "NAME=value" texts in their order.
struct Environment {
  static constexpr std::size_t kMostEntries = 64;
  std::size_t count = 0;
  bool is_cut = false;  // something did not fit
  const char* entries[kMostEntries] = {};

  // Null: not set.
  const char* value(const char* name) const noexcept;
  // A copy that lives as long as this; null: no room.
  const char* keep(const char* text, std::size_t length) noexcept;

  std::size_t used = 0;
  // Three paths of the greatest length and as much again for all else.
  char text[24 * 1024] = {};
};

struct ProcessStart {
  char command[256] = {};  // arguments with zero bytes between them, cut
  std::size_t command_size = 0;
  char program[64] = {};   // last part of argument 0
  char folder[4096] = {};  // asked for only where a setting is there
};
const ProcessStart& process_start() noexcept;

// Reads the environment as it is now. Another thread may be changing it: nothing is read but what
// is memory, and what is torn is left out. Entries that were there at the start, and have been
// written over where they lie, count as they were.
void read_environment(Environment* into) noexcept;

}  // namespace runtime
