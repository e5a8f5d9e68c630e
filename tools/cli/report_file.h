// SPDX-License-Identifier: Apache-2.0
// Reads reports. What is wrong with a file is one line (Failure): the file, the byte or the key,
// what is expected. Keys that this version does not know are ignored. The only user of
// nlohmann_json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/report.h"

namespace cli {

// `name` stands in messages.
Report parse_report(std::string_view text, const std::string& name);

// "-" is standard input.
Report read_report(const std::string& path);

// Those that can be read; the others are told of on standard error and counted.
struct ReportFiles {
  std::vector<Report> reports;
  int unreadable = 0;
};
ReportFiles read_reports(const std::vector<std::string>& paths);

}  // namespace cli
