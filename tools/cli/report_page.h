// SPDX-License-Identifier: Apache-2.0
// A report as a page of tables: the sections of the report at exit, of which tests hold the text
// against profiler/report_writer. Pure.
#pragma once

#include "tools/cli/report.h"
#include "tools/cli/table.h"

namespace cli {

enum class SortBy { kTotal, kCalls, kMean, kMax, kFlushed, kName };

struct View {
  SortBy sort = SortBy::kTotal;
  // Rows shown, the rest is one row; 0: as at exit.
  std::size_t top = 0;
  bool has_stacks = false;
};

// Tables that a format adds to.
inline constexpr const char* kLaunchesTitle = "LAUNCHES";
inline constexpr const char* kEntriesTitle = "CALLS THAT OBSERVE THE DEVICE";

Page page_of(const Report& report, const View& view);

// Stacks of one entry that end at the same place, added up.
struct PlaceSum {
  const Site* example;  // its longest stack
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t flushed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pageable_calls = 0;
  std::vector<const Site*> stacks;
};
std::vector<PlaceSum> places_of(const Sites& sites);

}  // namespace cli
