// SPDX-License-Identifier: Apache-2.0
// Who this process is, for reports and traces. To be read at the start: later a program may have
// written over its arguments and its environment, or its first thread may be gone.
#pragma once

namespace profiler {

struct ProcessFacts {
  char command[256];    // arguments with blanks between them, cut; no control characters
  char executable[64];  // file name of the program
  char host[65];        // "?" when it has no name
};
void read_process_facts(ProcessFacts* facts) noexcept;

// Control characters become blanks.
void blank_controls(char* text) noexcept;

}  // namespace profiler
