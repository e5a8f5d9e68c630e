// SPDX-License-Identifier: Apache-2.0
// `profile summary`: what a trace of the profiler adds up to, as text, JSON, CSV or Markdown.
#include <unistd.h>

#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_file.h"
#include "tools/cli/json_output.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_file.h"
#include "tools/cli/trace_json.h"
#include "tools/cli/trace_summary.h"

namespace cli {

int show_profile(const ProfileOptions& options) {
  const Trace trace = parse_trace(read_input(options.file), input_name(options.file));
  const TraceSummary summary = summary_of(trace);
  if (options.format == "json") {
    write_json("-", [&](profiler::JsonWriter* out) { write_summary(trace, summary, out); });
  } else if (options.format == "csv") {
    for (const std::string& remark : trace.remarks) say(trace.file + ": " + remark);
    print(csv_of(trace, summary));
  } else if (options.format == "markdown") {
    print(markdown_of(page_of(trace, summary, options.top)));
  } else {
    print(text_of(page_of(trace, summary, options.top), wants_colour(STDOUT_FILENO)));
  }
  return kOk;
}

}  // namespace cli
