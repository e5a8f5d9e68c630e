// SPDX-License-Identifier: Apache-2.0
// `run`: the program with the library preloaded, and what can be said afterwards. Exit codes as
// env(1); everything of ours goes to standard error.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/cli/child.h"
#include "tools/cli/commands.h"
#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"
#include "tools/cli/library_file.h"
#include "tools/cli/load_watch.h"
#include "tools/cli/merge.h"
#include "tools/cli/output.h"
#include "tools/cli/program_file.h"
#include "tools/cli/report_file.h"
#include "tools/cli/sanitizers.h"
#include "tools/cli/setting_check.h"

extern "C" char** environ;

namespace cli {
namespace {

// A folder of our own that goes with this object. The reports of a run that is printed.
class ReportFolder {
 public:
  ReportFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/cajeta-xpu-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throw Failure(path_ + ": cannot make a folder for the reports", kLauncherFailed);
    }
  }
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;
  ~ReportFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  // The path may hold a '%'.
  std::string pattern() const {
    std::string text;
    for (const char byte : path_) text += byte == '%' ? "%%" : std::string(1, byte);
    return text + "/%r.%p.json";
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
      if (entry.path().extension() == ".json") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_;
};

void print_report(const ReportFolder& folder) {
  const std::vector<std::string> paths = folder.files();
  if (paths.empty()) {
    say("no report: neither the program nor what it started made a CUDA call with the library");
    return;
  }
  const ReportFiles files = read_reports(paths);
  if (files.reports.empty()) return;
  Report sum = merge(files.reports);
  // Our own folder, which is gone by now.
  std::erase_if(sum.process.settings,
                [](const auto& setting) { return setting.first == "REPORT"; });
  const Page page = page_of(sum, {});
  print_error(text_of(page, wants_colour(STDERR_FILENO)));
}

void require_legal(const RunOptions& options) {
  for (const auto& [name, value] : options.settings) {
    const std::string fault = fault_of_setting(name, value);
    if (!fault.empty()) throw Failure("run: " + fault, kLauncherFailed);
  }
  const bool has_output =
      std::any_of(options.settings.begin(), options.settings.end(),
                  [](const auto& setting) { return setting.first == "CAJETA_XPU_REPORT"; });
  if (options.prints_report && has_output) {
    throw Failure(
        "run: --report prints the report and --output writes it to a file; expected one"
        " of them",
        kLauncherFailed);
  }
  if (options.prints_report && options.replaces_itself) {
    throw Failure(
        "run: with --exec nobody is left to print the report; expected --report or"
        " --exec",
        kLauncherFailed);
  }
}

bool has_any_setting() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("CAJETA_XPU_") || text.starts_with("CAJETA_PROFILER")) return true;
  }
  return false;
}

void tell_beforehand(const RunOptions& options, const Environment& changes) {
  for (const auto& [name, value] : changes) log(LogLevel::kInfo, "set " + name + "=" + value);
  std::string words;
  for (const std::string& word : options.program) words += " " + word;
  log(LogLevel::kInfo, "start" + words);
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return " was ended by signal " + std::to_string(WTERMSIG(status));
  return " ended with status " + std::to_string(WEXITSTATUS(status));
}

// True when we said that the library does not get into the program.
bool warn_beforehand(const RunOptions& options, const std::string& library) {
  const std::string path = find_program(options.program[0]);
  try {
    const ProgramFile program = program_behind(look_at(path));
    log(LogLevel::kInfo, options.program[0] + " is " + path +
                             (program.path == path ? "" : ", which " + program.path + " runs"));
    const std::string reason = reason_against(program, look_at(library));
    if (reason.empty()) return false;
    if (!options.is_quiet) say("the library is not loaded: " + program.path + " is " + reason);
    return true;
  } catch (const Failure&) {
    return false;  // a program may be executable and not readable
  }
}

}  // namespace

int run_program(const RunOptions& options) {
  require_legal(options);
  const std::string library = find_library(options.library);
  Environment changes(options.settings.begin(), options.settings.end());
  changes.emplace_back("LD_PRELOAD", appended_preload(library));
  for (const auto& change : sanitizer_environment()) changes.push_back(change);
  const bool was_warned = warn_beforehand(options, library);
  const bool asks_nothing =
      options.settings.empty() && !options.prints_report && !has_any_setting();
  if (asks_nothing && !options.is_quiet) {
    say("run: the library is asked for nothing; see --defer, --profile, --sites, --report, "
        "--profiler");
  }
  if (options.replaces_itself) {
    tell_beforehand(options, changes);
    replace_process(options.program, changes);
  }

  std::optional<ReportFolder> folder;
  if (options.prints_report) {
    folder.emplace();
    changes.emplace_back("CAJETA_XPU_REPORT", folder->pattern());
  }
  tell_beforehand(options, changes);
  int status = 0;
  {
    const LoadWatch watch(library);
    status = run_child(options.program, changes);
    log(LogLevel::kInfo, options.program[0] + end_text(status));
    const bool was_ignored = watch.was_ignored();
    log(LogLevel::kDebug, was_ignored ? "nothing opened the library meanwhile"
                                      : "the library was opened meanwhile, as far as can be seen");
    if (was_ignored && !was_warned && !options.is_quiet) {
      say("the library was loaded neither into " + options.program[0] +
          " nor into anything it started; try: cajeta-xpu doctor " + options.program[0]);
    }
  }
  if (folder) {
    try {
      print_report(*folder);
    } catch (const Failure& failure) {
      log(LogLevel::kError, failure.what());  // the exit code is the program's
    }
    folder.reset();
  }
  end_like(status);
}

}  // namespace cli
