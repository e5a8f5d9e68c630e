// SPDX-License-Identifier: Apache-2.0
// `report`: reports as text, JSON, CSV, Markdown or HTML. Each format is a file of its own with one
// function; a further one is a branch here and a name in arguments.cpp.
#include <unistd.h>

#include "tools/cli/commands.h"
#include "tools/cli/csv_output.h"
#include "tools/cli/failure.h"
#include "tools/cli/html_output.h"
#include "tools/cli/json_output.h"
#include "tools/cli/output.h"
#include "tools/cli/report_file.h"
#include "tools/cli/report_json.h"
#include "tools/cli/table.h"

namespace cli {
namespace {

// One object, or an array of them when several files were asked for.
void print_json(const std::vector<Report>& reports, bool is_list) {
  write_json("-", [&](profiler::JsonWriter* out) {
    if (is_list) out->begin_array();
    for (const Report& report : reports) write_report(report, out);
    if (is_list) out->end_array();
  });
}

void print_csv(const std::vector<Report>& reports) {
  std::string text = csv_head();
  for (const Report& report : reports) text += csv_rows(report);
  print(text);
}

void print_pages(const std::vector<Report>& reports, const ReportOptions& options) {
  const bool has_colour = wants_colour(STDOUT_FILENO);
  bool is_first = true;
  for (const Report& report : reports) {
    if (!is_first) print("\n");
    is_first = false;
    const Page page = page_of(report, options.view);
    print(options.format == "markdown" ? markdown_of(page) : text_of(page, has_colour));
  }
}

}  // namespace

int show_reports(const ReportOptions& options) {
  const ReportFiles files = read_reports(options.files);
  if (files.reports.empty()) return kBadInput;
  if (options.format == "json") {
    print_json(files.reports, options.files.size() > 1);
  } else if (options.format == "csv") {
    print_csv(files.reports);
  } else if (options.format == "html") {
    print(html_of(files.reports, options.view));
  } else {
    print_pages(files.reports, options);
  }
  return files.unreadable > 0 ? kBadInput : kOk;
}

}  // namespace cli
