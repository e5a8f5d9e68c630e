// SPDX-License-Identifier: Apache-2.0
// The report: collects what was counted and writes it by write(2), to stderr or to the file that
// CAJETA_XPU_REPORT names. One thread at a time, at the end the one that ends the process; never
// calls the driver.
#pragma once

namespace profiler {

// Starts the clock, then sets g_profile_enabled. `report`: null, "" or "stderr", "none", or a path
// in which %p is the process id, %h the host name, %r the rank (0 without one), %e the name of the
// executable and %% a percent sign; one that ends in .json asks for JSON. The text must live until
// exit. Call it once, before any other thread can record.
void enable_profile(const char* report) noexcept;

// Writes the report, the first time it is called, if profiling was enabled in this very process
// (not in a parent) and any call was recorded or launch counted.
void write_exit_report() noexcept;

// Writes what there is so far and lets the process go on; nothing when a report is being written or
// the last one has been. Any thread.
void write_snapshot() noexcept;

// Writes what can be written inside a signal handler: no symbols, no allocation. The last report.
void write_dying_report() noexcept;

}  // namespace profiler
