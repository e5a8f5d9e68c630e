// SPDX-License-Identifier: Apache-2.0
// Who this process is, for reports and traces. System calls only: also in a signal handler.
#pragma once

namespace profiler {

struct ProcessFacts {
  char command[256];    // arguments with blanks between them, cut; no control characters
  char executable[64];  // last part of argument 0
  char host[65];        // "?" when it has no name
};
void read_process_facts(ProcessFacts* facts) noexcept;

// Control characters become blanks.
void blank_controls(char* text) noexcept;

}  // namespace profiler
