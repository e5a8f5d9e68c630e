// SPDX-License-Identifier: Apache-2.0
// The commands: what arguments.cpp reads into, and the function that does it. Each returns an exit
// code (failure.h) or throws a Failure. A new command is a struct, a function in a file of its own
// and its options in arguments.cpp; help, completions and the manual follow from those.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/comparison.h"
#include "tools/cli/report_limits.h"
#include "tools/cli/report_page.h"

namespace cli {

struct RunOptions {
  // Variables for the program, checked against the library's own table.
  std::vector<std::pair<std::string, std::string>> settings;
  bool prints_report = false;
  bool replaces_itself = false;
  bool is_quiet = false;
  std::string library;  // empty: find it
  std::vector<std::string> program;
};
int run_program(const RunOptions& options);

struct ReportOptions {
  std::vector<std::string> files;
  std::string format = "text";
  View view;
};
int show_reports(const ReportOptions& options);

struct CompareOptions {
  std::string before;
  std::string after;
  std::string format = "text";
  Thresholds thresholds;
};
int compare_reports(const CompareOptions& options);

struct MergeOptions {
  std::vector<std::string> files;
  std::string out;
};
int merge_reports(const MergeOptions& options);

struct CheckOptions {
  std::vector<std::string> files;
  std::string baseline;
  std::string allow_file;
  bool is_quiet = false;
  Limits limits;
};
int check_reports(const CheckOptions& options);

struct DoctorOptions {
  std::string program;  // empty: none
  std::string library;
  std::string format = "text";
};
int examine(const DoctorOptions& options);

struct ExportOptions {
  std::string file;
  std::string format;
  std::string out = "-";
  std::size_t limit = 200'000;  // of a trace: stacks, or records
};
int export_file(const ExportOptions& options);

struct ProfileOptions {
  std::string action;  // "summary", the only one
  std::string file;
  std::string format = "text";
  std::size_t top = 0;  // 0: as in a report
};
int show_profile(const ProfileOptions& options);

struct EnvOptions {
  std::string format = "text";
  bool is_preload = false;
  std::string library;
};
int show_environment(const EnvOptions& options);

// What the commands take, for completions and the manual.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; empty: a positional argument
  std::string argument;            // "FILE"; empty: a switch
  std::string purpose;
  std::vector<std::string> values;  // legal ones, where there are few
  bool takes_files = false;
};
struct CommandInfo {
  std::string name;
  std::string purpose;
  std::string usage;
  std::vector<OptionInfo> options;
};
int show_completions(const std::vector<CommandInfo>& commands, const std::string& shell);
int show_manual(const std::vector<CommandInfo>& commands);

}  // namespace cli
