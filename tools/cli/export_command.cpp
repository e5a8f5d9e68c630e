// SPDX-License-Identifier: Apache-2.0
// `export`: reports and traces for other tools. Folded stacks (flamegraph.pl, speedscope, inferno),
// speedscope's own JSON, CSV. Of a report the call stacks by blocked time, which are as many as the
// site table of the library holds at most; a trace is bounded by an option.
#include <algorithm>
#include <map>

#include "tools/cli/commands.h"
#include "tools/cli/csv_output.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_file.h"
#include "tools/cli/json_output.h"
#include "tools/cli/output.h"
#include "tools/cli/report_file.h"
#include "tools/cli/trace_export.h"
#include "tools/cli/trace_file.h"

namespace cli {
namespace {

// Outermost first, the driver entry last.
std::vector<std::string> stack_of(const Sites& sites, const Site& site) {
  std::vector<std::string> stack;
  for (const Frame& frame : site.frames) stack.push_back(printable(frame_name(sites, frame)));
  std::reverse(stack.begin(), stack.end());
  stack.push_back(printable(site.entry));
  return stack;
}

std::string folded(const Sites& sites) {
  std::map<std::string, std::uint64_t> sums;
  for (const Site& site : sites.list) {
    std::string key;
    for (std::string& frame : stack_of(sites, site)) {
      std::replace(frame.begin(), frame.end(), ';', ',');
      key += (key.empty() ? "" : ";") + frame;
    }
    sums[key] += site.total_ns;
  }
  std::string out;
  for (const auto& [key, ns] : sums) out += key + " " + std::to_string(ns) + "\n";
  return out;
}

// https://www.speedscope.app/file-format-schema.json, a "sampled" profile: a sample per site, its
// weight the time.
void write_speedscope(const Report& report, const Sites& sites, profiler::JsonWriter* out) {
  std::map<std::string, std::uint64_t> numbers;
  std::vector<std::string> names;
  std::vector<std::vector<std::uint64_t>> samples;
  std::uint64_t total_ns = 0;
  for (const Site& site : sites.list) {
    samples.emplace_back();
    total_ns += site.total_ns;
    for (const std::string& frame : stack_of(sites, site)) {
      const auto [at, is_new] = numbers.try_emplace(frame, names.size());
      if (is_new) names.push_back(frame);
      samples.back().push_back(at->second);
    }
  }
  out->begin_object();
  out->text("$schema", "https://www.speedscope.app/file-format-schema.json");
  out->text("exporter", "cajeta-xpu");
  out->text("name", report.process.command.c_str());
  out->begin_object("shared");
  out->begin_array("frames");
  for (const std::string& name : names) {
    out->begin_object();
    out->text("name", name.c_str());
    out->end_object();
  }
  out->end_array();
  out->end_object();
  out->begin_array("profiles");
  out->begin_object();
  out->text("type", "sampled");
  out->text("name", "host time in calls that observe the device");
  out->text("unit", "nanoseconds");
  out->number("startValue", 0);
  out->number("endValue", total_ns);
  out->begin_array("samples");
  for (const auto& sample : samples) {
    out->begin_array();
    for (const std::uint64_t frame : sample) out->number(nullptr, frame);
    out->end_array();
  }
  out->end_array();
  out->begin_array("weights");
  for (const Site& site : sites.list) out->number(nullptr, site.total_ns);
  out->end_array();
  out->end_object();
  out->end_array();
  out->end_object();
}

void export_report(const Report& report, const ExportOptions& options) {
  if (!report.sites) {
    throw Failure(report.file +
                  ": sites is null, so there are no stacks; run with CAJETA_XPU_DRIVER_SITES=1 (run"
                  " --sites)");
  }
  if (options.format == "speedscope") {
    write_json(options.out,
               [&](profiler::JsonWriter* out) { write_speedscope(report, *report.sites, out); });
  } else if (options.format == "csv") {
    write_text(options.out, sites_csv(report));
  } else {
    write_text(options.out, folded(*report.sites));
  }
}

void export_trace(const Trace& trace, const ExportOptions& options) {
  for (const std::string& remark : trace.remarks) say(trace.file + ": " + remark);
  Exported exported;
  if (options.format == "speedscope") {
    write_json(options.out, [&](profiler::JsonWriter* out) {
      exported.left_out = write_speedscope(trace, options.limit, out);
    });
  } else {
    exported = options.format == "csv" ? records_csv(trace, options.limit)
                                       : folded_of(trace, options.limit);
    write_text(options.out, exported.text);
  }
  if (!exported.left_out.empty()) say("export: " + exported.left_out);
}

}  // namespace

int export_file(const ExportOptions& options) {
  const std::string bytes = read_input(options.file);
  const std::string name = input_name(options.file);
  if (is_trace(bytes)) {
    export_trace(parse_trace(bytes, name), options);
  } else {
    export_report(parse_report(bytes, name), options);
  }
  return kOk;
}

}  // namespace cli
