// SPDX-License-Identifier: Apache-2.0
// `check`: exit 0 when reports keep their limits, 1 with a line per broken one, 2 when that cannot
// be told.
#include <fstream>

#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/report_file.h"

namespace cli {
namespace {

// One part of a place per line; '#' starts a comment.
std::vector<std::string> read_allowed(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Failure(path + ": cannot open the list of allowed sites");
  std::vector<std::string> allowed;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    allowed.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  return allowed;
}

}  // namespace

int check_reports(const CheckOptions& options) {
  Limits limits = options.limits;
  if (limits.no_new_sites && options.baseline.empty()) {
    throw Failure("check: --no-new-sites needs --baseline FILE, the report to compare with");
  }
  if (limits.count() == 0) {
    throw Failure(
        "check: no limit is given; expected one or more of --max-blocked, --max-calls,"
        " --max-one-by-one, --max-failed, --no-new-sites");
  }
  if (!options.allow_file.empty()) limits.allowed = read_allowed(options.allow_file);
  std::optional<Report> baseline;
  if (!options.baseline.empty()) baseline = read_report(options.baseline);
  const ReportFiles files = read_reports(options.files);
  bool is_broken = false;
  for (const Report& report : files.reports) {
    const std::vector<std::string> broken =
        broken_limits(report, limits, baseline ? &*baseline : nullptr);
    for (const std::string& line : broken) print(report.file + ": " + printable(line) + "\n");
    is_broken |= !broken.empty();
    if (broken.empty() && !options.is_quiet) {
      print(report.file + ": ok, " + std::to_string(limits.count()) +
            (limits.count() == 1 ? " limit holds\n" : " limits hold\n"));
    }
  }
  if (files.unreadable > 0) return kBadInput;
  return is_broken ? kLimitBroken : kOk;
}

}  // namespace cli
