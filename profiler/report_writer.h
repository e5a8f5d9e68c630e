// SPDX-License-Identifier: Apache-2.0
// The text of the exit report from plain numbers. Pure: no clock, no environment, no allocation, so
// that a test can compare every byte. Lines hold at most 100 columns, and every total is the sum of
// the rows above it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/text_buffer.h"
#include "runtime/counters.h"
#include "runtime/entry.h"
#include "runtime/unknown_entries.h"

namespace profiler {

inline constexpr std::size_t kReportWidth = 100;
// Rows shown; the rest is one line, so that the totals still add up.
inline constexpr std::size_t kMostEntriesShown = 30;

struct EntryLine {
  runtime::EntryId entry;
  std::uint64_t calls;
  std::uint64_t flushed;
  double total_ns;
  double median_ns;
  double max_ns;
};

struct ReportInput {
  const char* version;
  int pid;
  const char* host;
  const char* command;
  const char* settings;  // CAJETA_XPU_... variables that are set
  double wall_ns;        // since profiling began; 0 when not known
  std::uint64_t
      launch_calls;  // calls of launch entries and the host time in them, submissions included
  double launch_ns;
  std::uint64_t lost_calls;  // not in any row, for want of memory
  EntryLine* entries;        // called entries that observe the device; sorted in place
  std::size_t entry_count;
  const runtime::UnknownEntry* unknown;  // driver entries without a row in the table
  std::size_t unknown_count;
  const runtime::CounterSnapshot* counters;
};

// Whether calls of this entry belong to the table of calls that observe the device.
bool observes_device(const runtime::EntryRow& row) noexcept;
bool launches_kernel(const runtime::EntryRow& row) noexcept;

void write_report(const ReportInput& input, TextBuffer* out) noexcept;

}  // namespace profiler
