// SPDX-License-Identifier: Apache-2.0
// Reports as comma-separated values (RFC 4180, but lines end in \n): nanoseconds and bytes, one
// rectangle, so that no reader has to know where a table ends. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/report.h"

namespace cli {

class CsvLine {
 public:
  CsvLine& add(const std::string& text);
  CsvLine& add(std::uint64_t number) { return add(std::to_string(number)); }
  std::string end() const { return text_ + "\n"; }

 private:
  std::string text_;
  bool is_first_ = true;
};

// Launches, entries and places; the first column names the file.
std::string csv_head();
std::string csv_rows(const Report& report);

// Every call site with its stack.
std::string sites_csv(const Report& report);

}  // namespace cli
