// SPDX-License-Identifier: Apache-2.0
// `compare`: two reports side by side; exit 1 when something got worse.
#include <unistd.h>

#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/json_output.h"
#include "tools/cli/output.h"
#include "tools/cli/report_file.h"

namespace cli {
namespace {

const char* name_of(Metric metric) {
  switch (metric) {
    case Metric::kTime:
      return "blocked_ns";
    case Metric::kCalls:
      return "calls";
    case Metric::kLaunches:
      return "one_by_one_launches";
    default:
      return "failed_calls";
  }
}

void print_json(const CompareOptions& options, const Comparison& comparison) {
  write_json("-", [&](profiler::JsonWriter* out) {
    out->begin_object();
    out->text("before", options.before.c_str());
    out->text("after", options.after.c_str());
    out->begin_array("worse");
    for (const Regression& regression : comparison.regressions) {
      out->begin_object();
      out->text("subject", regression.subject.c_str());
      out->text("metric", name_of(regression.metric));
      out->number("before", regression.before);
      out->number("after", regression.after);
      out->end_object();
    }
    out->end_array();
    out->end_object();
  });
}

}  // namespace

int compare_reports(const CompareOptions& options) {
  const ReportFiles files = read_reports({options.before, options.after});
  if (files.unreadable > 0) return kBadInput;
  const Comparison comparison = compare(files.reports[0], files.reports[1], options.thresholds);
  if (options.format == "json") {
    print_json(options, comparison);
  } else if (options.format == "markdown") {
    print(markdown_of(comparison.page));
  } else {
    print(text_of(comparison.page, wants_colour(STDOUT_FILENO)));
  }
  return comparison.regressions.empty() ? kOk : kLimitBroken;
}

}  // namespace cli
