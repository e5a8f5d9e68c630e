// SPDX-License-Identifier: Apache-2.0
// Reports for tests: made call by call, as processes make them, and as JSON in memory.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tools/cli/report.h"

namespace cli_test {

// One call of an entry from one site, or one launch.
struct Event {
  std::size_t process;
  std::size_t entry;
  std::size_t site;
  std::uint64_t ns;
  bool flushed, failed, not_ready, is_pageable;
  std::uint64_t bytes;
};

std::vector<Event> random_events(std::uint64_t seed, std::size_t count, std::size_t processes);

// What a process reports that made these calls; `process` of npos: one process that made them all.
// Modules lie in another order in each.
cli::Report report_of(const std::vector<Event>& events, std::size_t process);

std::string json_of(const cli::Report& report);

// The file tests/unit/cli/sample_report.json.
std::string sample_json();

}  // namespace cli_test
