// SPDX-License-Identifier: Apache-2.0
// `merge`: the reports of several processes as one.
#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/json_output.h"
#include "tools/cli/merge.h"
#include "tools/cli/output.h"
#include "tools/cli/report_file.h"
#include "tools/cli/report_json.h"

namespace cli {

int merge_reports(const MergeOptions& options) {
  const ReportFiles files = read_reports(options.files);
  if (files.unreadable > 0) {
    // A sum that lacks a rank would pass for the whole.
    throw Failure("merge: " + options.out + " is not written, as " +
                  std::to_string(files.unreadable) + " of " + std::to_string(options.files.size()) +
                  " files cannot be read");
  }
  const Report sum = merge(files.reports);
  write_json(options.out, [&](profiler::JsonWriter* out) { write_report(sum, out); });
  return kOk;
}

}  // namespace cli
