// SPDX-License-Identifier: Apache-2.0
// Two reports side by side, and what got worse. Counts are compared as they are; a time counts as
// worse only when it grew by the threshold, by a least amount, and by more than the spread of its
// own calls explains. Pure: the same reports give the same answer.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/report.h"
#include "tools/cli/table.h"

namespace cli {

struct Thresholds {
  double percent = 10;
  std::uint64_t least_ns = 1'000'000;  // a smaller growth of a time is never worse
  std::uint64_t least_count = 0;       // likewise of a count
  bool watches_time = true;
  bool watches_calls = true;
  bool watches_launches = true;  // launches sent one by one
  bool watches_failures = true;
};

enum class Metric { kTime, kCalls, kLaunches, kFailures };

struct Regression {
  std::string subject;  // "total", an entry, "entry at place"
  Metric metric;
  std::uint64_t before;
  std::uint64_t after;
};

struct Comparison {
  std::vector<Regression> regressions;  // worst first within a metric
  Page page;
};

Comparison compare(const Report& before, const Report& after, const Thresholds& thresholds);

// "blocked time 10.000 ms -> 20.000 ms (+100.0 %): cuStreamSynchronize"
std::string line_of(const Regression& regression);

// What the calls of a histogram vary by when they are added up: one standard deviation, ns.
double spread_ns(const CallTotals& totals);

}  // namespace cli
