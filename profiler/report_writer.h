// SPDX-License-Identifier: Apache-2.0
// The text of the exit report from plain numbers. Pure: no clock, no environment, no allocation, so
// that a test can compare every byte. One thread. Lines hold at most 100 columns, and every total
// is the sum of the rows above it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/call_stats.h"
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
  const CallTotals* totals;
};

inline constexpr std::size_t kPlaceBytes = 256;
inline constexpr std::size_t kMostSitesShown = 20;

// Calls of one entry from one place.
struct SiteLine {
  runtime::EntryId entry;
  std::uint64_t calls;
  std::uint64_t total_ns;
  std::uint64_t max_ns;
  std::uint64_t bytes;
  std::uint64_t pageable_calls;
  char place[kPlaceBytes];  // source line and function, or the best that is known
  char through[64];         // the CUDA library between it and the driver; "" when none
};

struct ReportInput {
  const char* version;
  int pid;
  const char* host;
  const char* executable;
  const char* command;
  const char* rank;
  const char* rank_source;          // the variable that gave it, or "none"
  const char* moment;               // "exit", "snapshot" or "signal"
  const char* const* setting_list;  // NAME=value, the prefix CAJETA_XPU_ left out
  std::size_t setting_count;
  const char* settings;  // CAJETA_XPU_... variables that are set
  double wall_ns;        // since profiling began; 0 when not known
  EntryLine* entries;    // called entries that observe the device; sorted in place
  std::size_t entry_count;
  const CallTotals* launches;  // one per LaunchKind
  SiteLine* sites;             // sorted in place; null: call sites were not asked for
  std::size_t site_count;
  bool reads_symbols;           // files may be read for names
  const char* walk;             // how stacks were walked
  const char* python_version;   // of the interpreter whose frames were not read; null: none such
  const char* python_unread;    // why not
  std::uint64_t dropped_sites;  // calls whose site found no room
  const CallTotals* own_cost;   // of sampled calls, the readings of the clock left out
  std::uint64_t clock_pair_ns;
  std::uint64_t lost_calls;              // not in any row, for want of memory
  const runtime::UnknownEntry* unknown;  // driver entries without a row in the table
  std::size_t unknown_count;
  const runtime::CounterSnapshot* counters;
};

// What the profile cost the program, estimated: the median of the sampled calls and two readings of
// the clock, for every timed call.
double estimate_own_ns(const ReportInput& input) noexcept;

// What queueing saved the host, estimated: replayed launches at the price of launches that went to
// the driver one by one in this very run, less what queueing and submitting them took.
struct Saving {
  bool has_price;
  double price_ns;  // median of a launch sent one by one
  double saved_ns;  // may be negative
};
Saving estimate_saving(const ReportInput& input) noexcept;

// Whether calls of this entry belong to the table of calls that observe the device.
constexpr bool observes_device(const runtime::EntryRow& row) noexcept {
  switch (row.entry_class) {
    case runtime::EntryClass::kStreamOrdered:
    case runtime::EntryClass::kObserveAll:
    case runtime::EntryClass::kNullStreamSync:
    case runtime::EntryClass::kEventObserve:
      return true;
    default:
      return false;
  }
}

void write_report(const ReportInput& input, TextBuffer* out) noexcept;

}  // namespace profiler
