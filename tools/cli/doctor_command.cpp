// SPDX-License-Identifier: Apache-2.0
// `doctor`: will it work here? Exit 1 when something will not.
#include <unistd.h>

#include "tools/cli/commands.h"
#include "tools/cli/diagnostics.h"
#include "tools/cli/doctor_checks.h"
#include "tools/cli/failure.h"
#include "tools/cli/json_output.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr std::size_t kSubjectWidth = 16;

const char* name_of(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kWarn ? "warn" : "fail";
}

// Breaks at blanks; what is longer than a line, as a path, stays whole so that it can be copied.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    start = end + 1;
  }
  return out;
}

std::string line_of(const Finding& finding, bool has_colour) {
  std::string line = name_of(finding.health);
  line.resize(6, ' ');
  std::string subject = finding.subject;
  subject.resize(std::max(kSubjectWidth, subject.size()), ' ');
  const std::string text = subject + wrapped(finding.text, 6 + kSubjectWidth) + "\n";
  if (!has_colour || finding.health == Health::kOk) return line + text;
  const char* colour = finding.health == Health::kWarn ? "\033[33m" : "\033[31m";
  return colour + line + "\033[0m" + text;
}

std::size_t count_of(const Findings& findings, Health health) {
  std::size_t count = 0;
  for (const Finding& finding : findings) count += finding.health == health ? 1 : 0;
  return count;
}

void print_json(const Findings& findings) {
  write_json("-", [&](profiler::JsonWriter* out) {
    out->begin_array();
    for (const Finding& finding : findings) {
      out->begin_object();
      out->text("health", name_of(finding.health));
      out->text("subject", finding.subject.c_str());
      out->text("text", finding.text.c_str());
      out->end_object();
    }
    out->end_array();
  });
}

void print_text(const Findings& findings) {
  const bool has_colour = wants_colour(STDOUT_FILENO);
  std::string text;
  for (const Finding& finding : findings) text += line_of(finding, has_colour);
  const std::size_t warnings = count_of(findings, Health::kWarn);
  const std::size_t failures = count_of(findings, Health::kFail);
  text += format("%zu ok, %zu warning%s, %zu failure%s\n", count_of(findings, Health::kOk),
                 warnings, warnings == 1 ? "" : "s", failures, failures == 1 ? "" : "s");
  print(text);
}

}  // namespace

int examine(const DoctorOptions& options) {
  Findings findings;
  const std::string library = check_library(options.library, &findings);
  log(LogLevel::kDebug, "asking the driver, in a process of its own");
  check_driver(&findings);
  log(LogLevel::kDebug, "the driver has answered, or has not");
  if (!options.program.empty()) check_program(options.program, library, &findings);
  check_preloads(library, &findings);
  check_settings(&findings);
  check_report_path(&findings);
  check_surroundings(&findings);
  options.format == "json" ? print_json(findings) : print_text(findings);
  return count_of(findings, Health::kFail) > 0 ? kLimitBroken : kOk;
}

}  // namespace cli
