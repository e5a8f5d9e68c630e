// SPDX-License-Identifier: Apache-2.0
// Who this process is, for reports and traces: as it was when it was started, whatever it calls
// itself later. Also in a signal handler.
#pragma once

namespace profiler {

struct ProcessFacts {
  char command[256];    // arguments with blanks between them, cut; no control characters
  char executable[64];  // last part of argument 0
  char host[65];        // "?" when it has no name
};
// Once, at the first call of the driver; before that read_process_facts() asks anew.
void take_process_facts() noexcept;
void read_process_facts(ProcessFacts* facts) noexcept;

// Control characters become blanks.
void blank_controls(char* text) noexcept;

}  // namespace profiler
