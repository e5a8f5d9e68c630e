// SPDX-License-Identifier: Apache-2.0
// The commands' options. One function per command; each keeps its options in the struct that the
// command takes.
#include "tools/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "profiler/json_report.h"
#include "tools/cli/commands.h"
#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/setting_check.h"

namespace cli {
namespace {

const std::vector<std::pair<std::string, SortBy>> kSorts = {
    {"total", SortBy::kTotal}, {"calls", SortBy::kCalls},     {"mean", SortBy::kMean},
    {"max", SortBy::kMax},     {"flushed", SortBy::kFlushed}, {"name", SortBy::kName}};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", version_text(), "Print the version");
    app_.get_formatter()->column_width(34);
    add_run();
    add_report();
    add_compare();
    add_merge();
    add_check();
    add_doctor();
    add_profile();
    add_export();
    add_env();
    add_version();
    add_completions();
    add_man();
  }

  int parse_and_run(int count, char** arguments) {
    std::vector<std::string> words(arguments + 1, arguments + count);
    move_common_behind_command(&words);
    is_run_ = !words.empty() && words[0] == "run";
    require_known(words);
    if (is_run_) split_program(&words);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app_.parse(words);
    } catch (const CLI::Success& wish) {
      return app_.exit(wish);  // --help, --version
    } catch (const CLI::ParseError& error) {
      throw Failure(line_of(error), code());
    }
    choose_log_level();
    return chosen_();
  }

 private:
  int code() const { return is_run_ ? kLauncherFailed : kBadInput; }

  static std::string version_text() {
    return std::string("cajeta-xpu ") + CAJETA_XPU_VERSION + ", report format " +
           profiler::kSchemaVersion;
  }

  CLI::App* command(const std::string& name, const std::string& purpose) {
    return app_.add_subcommand(name, purpose);
  }
  // Of commands that look for things and read them.
  void add_common(CLI::App* command) {
    command->add_flag("-v,--verbose", verbosity_,
                      "Say what is found, read and set; twice: what was looked at");
    choice(command->add_option("--log-level", log_level_, "What is said on standard error (warn)"),
           log_level_names());
  }
  void choose_log_level() const {
    const auto& names = log_level_names();
    if (!log_level_.empty()) {
      const auto found = std::find(names.begin(), names.end(), log_level_);
      set_log_level(static_cast<LogLevel>(found - names.begin()));
    } else if (verbosity_ > 0) {
      set_log_level(verbosity_ > 1 ? LogLevel::kTrace : LogLevel::kDebug);
    }
  }
  // "cajeta-xpu -v run" is meant as "cajeta-xpu run -v".
  static void move_common_behind_command(std::vector<std::string>* words) {
    std::size_t count = 0;
    while (count < words->size()) {
      const std::string& word = (*words)[count];
      const bool is_level = word.starts_with("--log-level");
      const bool is_verbose = word == "--verbose" || (word.starts_with("-v") &&
                                                      word.find_first_not_of('v', 1) == word.npos);
      if (!is_level && !is_verbose) break;
      count += word == "--log-level" ? 2 : 1;
    }
    if (count >= words->size()) words->clear();
    if (count == 0 || words->empty()) return;
    const auto command = words->begin() + static_cast<std::ptrdiff_t>(count);
    std::rotate(words->begin(), command, command + 1);
  }
  CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& values) {
    option->check(undescribed(CLI::IsMember(values)))->type_name(joined_by(values, "|"));
    values_[option] = values;
    return option;
  }
  // The type name says it already.
  static CLI::Validator undescribed(CLI::Validator validator) {
    validator.description("");
    return validator;
  }
  CLI::Option* file(CLI::Option* option) { return option->type_name("FILE"); }
  // One word each time it is given.
  static CLI::Option* repeated(CLI::Option* option) { return option->allow_extra_args(false); }
  void on_choice(CLI::App* command, std::function<int()> action) {
    command->callback([this, action = std::move(action)] { chosen_ = action; });
  }
  static std::string joined_by(const std::vector<std::string>& words, const char* mark) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : mark) + word;
    return text;
  }

  // An option of `run` that sets a variable.
  CLI::Option* add_setting(CLI::App* run, const char* names, const char* variable, const char* type,
                           const char* purpose) {
    return run
        ->add_option_function<std::string>(
            names, [this, variable](const std::string& value) { set(variable, value); }, purpose)
        ->type_name(type);
  }
  void set(const std::string& name, const std::string& value) {
    run_.settings.emplace_back(name, value);
  }

  void add_run() {
    CLI::App* run = command("run", "Run a program with the library preloaded");
    // What else it may be the library says.
    values_[add_setting(run, "-d,--defer", "CAJETA_XPU_DEFER", "all|0",
                        "Queue kernel launches and replay them as graphs, or never")] = {"all",
                                                                                         "0"};
    run->add_flag_callback(
        "-p,--profile", [this] { set("CAJETA_XPU_DRIVER_PROFILE", "1"); },
        "Time the driver calls that observe the device, report at exit");
    run->add_flag("--sites", sites_, "Keep where calls came from, by kind and least time")
        ->type_name("[=KIND:TIME,...]");
    run->add_flag("--profiler", profiler_,
                  "Sample the host, time each launch on the device; FILE gets the trace")
        ->type_name("[=FILE]");
    run->add_flag("--report", run_.prints_report,
                  "Profile, and print one report of all processes at the end");
    file(run->add_option_function<std::string>(
        "-o,--output",
        [this](const std::string& path) {
          set("CAJETA_XPU_DRIVER_PROFILE", "1");
          set("CAJETA_XPU_REPORT", path);
        },
        "Profile, a report a process: x.%r.%p.json; .json gets JSON"));
    add_setting(run, "--every", "CAJETA_XPU_REPORT_EVERY", "SECONDS",
                "Write the report again and again, for programs that do not end");
    add_setting(run, "--signal", "CAJETA_XPU_REPORT_SIGNAL", "NAME",
                "Write the report on this signal");
    repeated(
        run->add_option("--set", set_, "Any setting of the library, as GRAPH_BYTES=64M; see `env`"))
        ->type_name("NAME=VALUE");
    file(run->add_option("--library", run_.library, "The library, if it is not found by itself"));
    run->add_flag("--exec", run_.replaces_itself,
                  "Become the program; nothing can be said at its end");
    run->add_flag("-q,--quiet", run_.is_quiet, "Do not say why the library was not loaded");
    run->add_option("PROGRAM", program_, "The program and its arguments, best behind --");
    add_common(run);
    on_choice(run, [this] { return begin_run(); });
  }

  int begin_run() {
    if (!sites_.empty()) set("CAJETA_XPU_DRIVER_SITES", sites_ == "true" ? "1" : sites_);
    if (!profiler_.empty()) set("CAJETA_PROFILER", "1");
    if (!profiler_.empty() && profiler_ != "true") set("CAJETA_PROFILER_OUT", profiler_);
    if (run_.prints_report) set("CAJETA_XPU_DRIVER_PROFILE", "1");
    for (const std::string& setting : set_) {
      const std::size_t equals = setting.find('=');
      if (equals == std::string::npos) {
        throw Failure("run: --set: \"" + setting + "\" is not understood; expected NAME=VALUE",
                      kLauncherFailed);
      }
      set(full_setting_name(setting.substr(0, equals)), setting.substr(equals + 1));
    }
    if (run_.program.empty()) {
      throw Failure("run: no program is given; expected cajeta-xpu run [options] -- PROGRAM ...",
                    kLauncherFailed);
    }
    return run_program(run_);
  }

  void add_report() {
    CLI::App* report = command("report", "Show reports");
    report->add_option("FILE", report_.files, "Reports in JSON; - is standard input")
        ->required()
        ->type_name("");
    add_format(report, &report_.format, {"text", "json", "csv", "markdown", "html"});
    std::vector<std::string> names;
    for (const auto& [name, sort] : kSorts) names.push_back(name);
    choice(report->add_option_function<std::string>(
               "--sort",
               [this](const std::string& name) {
                 for (const auto& [known, sort] : kSorts) {
                   if (known == name) report_.view.sort = sort;
                 }
               },
               "Order of entries and places (total)"),
           names);
    add_top(report, &report_.view.top);
    report->add_flag("--stacks", report_.view.has_stacks, "The call stacks of each place");
    add_common(report);
    on_choice(report, [this] { return show_reports(report_); });
  }

  void add_top(CLI::App* command, std::size_t* top) {
    command->add_option("--top", *top, "Rows shown; the rest is one row")
        ->type_name("N")
        ->check(undescribed(CLI::Range(std::size_t{1}, std::size_t{1'000'000})));
  }

  void add_format(CLI::App* command, std::string* format, const std::vector<std::string>& values) {
    choice(command->add_option("-f,--format", *format, "Output format (" + *format + ")"), values);
  }

  void add_compare() {
    CLI::App* compare = command("compare", "Compare two reports; exit 1 if something got worse");
    compare->add_option("BEFORE", compare_.before, "The report to compare with")
        ->required()
        ->type_name("");
    compare->add_option("AFTER", compare_.after, "The report in question")
        ->required()
        ->type_name("");
    Thresholds* thresholds = &compare_.thresholds;
    compare
        ->add_option_function<std::string>(
            "--threshold",
            [thresholds](const std::string& text) {
              thresholds->percent = parse_percent("compare: --threshold", text);
            },
            "Growth from which on something is worse (10%)")
        ->type_name("PERCENT");
    compare
        ->add_option_function<std::string>(
            "--min-time",
            [thresholds](const std::string& text) {
              thresholds->least_ns = parse_time_ns("compare: --min-time", text);
            },
            "Growth of a time below which nothing is worse (1ms)")
        ->type_name("TIME");
    compare
        ->add_option_function<std::string>(
            "--min-calls",
            [thresholds](const std::string& text) {
              thresholds->least_count = parse_count("compare: --min-calls", text);
            },
            "Growth of a count below which nothing is worse (0)")
        ->type_name("N");
    compare
        ->add_option_function<std::string>(
            "--fail-on", [thresholds](const std::string& list) { watch(list, thresholds); },
            "What is judged: blocked,calls,launches,failed (all), or none")
        ->type_name("LIST");
    add_format(compare, &compare_.format, {"text", "json", "markdown"});
    add_common(compare);
    on_choice(compare, [this] { return compare_reports(compare_); });
  }

  static void watch(const std::string& list, Thresholds* thresholds) {
    thresholds->watches_time = thresholds->watches_calls = false;
    thresholds->watches_launches = thresholds->watches_failures = false;
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t end = std::min(list.find(',', start), list.size());
      const std::string word = list.substr(start, end - start);
      if (word == "blocked") {
        thresholds->watches_time = true;
      } else if (word == "calls") {
        thresholds->watches_calls = true;
      } else if (word == "launches") {
        thresholds->watches_launches = true;
      } else if (word == "failed") {
        thresholds->watches_failures = true;
      } else if (word != "none") {
        throw Failure("compare: --fail-on: \"" + word +
                      "\" is not understood; expected a list of blocked, calls, launches, failed,"
                      " or none");
      }
      start = end + 1;
    }
  }

  void add_merge() {
    CLI::App* merge = command("merge", "Add the reports of several processes up to one");
    merge->add_option("FILE", merge_.files, "Reports in JSON")->required()->type_name("");
    file(merge->add_option("-o,--output", merge_.out, "The sum; - is standard output")->required());
    add_common(merge);
    on_choice(merge, [this] { return merge_reports(merge_); });
  }

  void add_check() {
    CLI::App* check = command("check", "Hold reports against limits; exit 1 if one is broken");
    Limits* limits = &check_.limits;
    check->add_option("FILE", check_.files, "Reports in JSON")->required()->type_name("");
    repeated(check->add_option_function<std::vector<std::string>>(
                 "--max-blocked",
                 [limits](const std::vector<std::string>& list) {
                   for (const std::string& text : list) {
                     limits->blocked.push_back(parse_blocked_limit("check: --max-blocked", text));
                   }
                 },
                 "Most time blocked, of all calls or of an entry: 100ms, 20%, cuMemFree:5ms"))
        ->type_name("[ENTRY:]LIMIT");
    repeated(check->add_option_function<std::vector<std::string>>(
                 "--max-calls",
                 [limits](const std::vector<std::string>& list) {
                   for (const std::string& text : list) {
                     limits->calls.push_back(parse_call_limit("check: --max-calls", text));
                   }
                 },
                 "Most calls that observe the device, or calls of an entry"))
        ->type_name("[ENTRY:]N");
    check
        ->add_option_function<std::string>(
            "--max-one-by-one",
            [limits](const std::string& text) {
              limits->one_by_one_percent = parse_percent("check: --max-one-by-one", text);
            },
            "Largest share of launches that are not replayed in graphs")
        ->type_name("PERCENT");
    check
        ->add_option_function<std::string>(
            "--max-failed",
            [limits](const std::string& text) {
              limits->failed = parse_count("check: --max-failed", text);
            },
            "Most calls that return an error")
        ->type_name("N");
    file(check->add_option("--baseline", check_.baseline, "The report to compare sites with"));
    check->add_flag("--no-new-sites", limits->no_new_sites,
                    "No call from a place that is not in the baseline");
    file(check->add_option("--allow", check_.allow_file,
                           "Parts of places that may be new, one a line"));
    check->add_flag("-q,--quiet", check_.is_quiet, "Only say what is broken");
    add_common(check);
    on_choice(check, [this] { return check_reports(check_); });
  }

  void add_doctor() {
    CLI::App* doctor = command("doctor", "Say whether it will work here, and with a program");
    doctor->add_option("PROGRAM", doctor_.program, "A program to look at")->type_name("");
    file(doctor->add_option("--library", doctor_.library, "The library, if it is not found"));
    add_format(doctor, &doctor_.format, {"text", "json"});
    add_common(doctor);
    on_choice(doctor, [this] { return examine(doctor_); });
  }

  void add_profile() {
    CLI::App* profile = command("profile", "Add up a trace of the profiler");
    CLI::Option* action =
        profile->add_option("ACTION", profile_.action, "What to do: summary, its tables");
    choice(action->required(), {"summary"})->type_name("");
    profile->add_option("FILE", profile_.file, "A trace; - is standard input")
        ->required()
        ->type_name("");
    add_format(profile, &profile_.format, {"text", "json", "csv", "markdown"});
    add_top(profile, &profile_.top);
    add_common(profile);
    on_choice(profile, [this] { return show_profile(profile_); });
  }

  void add_export() {
    CLI::App* export_command = command("export", "Write a report or a trace for other tools");
    export_command->add_option("FILE", export_.file, "A report in JSON, or a trace")
        ->required()
        ->type_name("");
    choice(export_command->add_option("-f,--format", export_.format, "Output format")->required(),
           {"folded", "speedscope", "csv"});
    file(export_command->add_option("-o,--output", export_.out, "Standard output without it"));
    export_command
        ->add_option("--limit", export_.limit,
                     "Most stacks (folded) or records of a trace (200000)")
        ->type_name("N")
        ->check(undescribed(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000})));
    add_common(export_command);
    on_choice(export_command, [this] { return export_file(export_); });
  }

  void add_env() {
    CLI::App* env = command("env", "List the environment variables of the library");
    add_format(env, &env_.format, {"text", "json", "markdown", "man"});
    env->add_flag("--preload", env_.is_preload, "Only the LD_PRELOAD to set, for scripts");
    file(env->add_option("--library", env_.library, "The library, if it is not found"));
    add_common(env);
    on_choice(env, [this] { return show_environment(env_); });
  }

  void add_version() {
    on_choice(command("version", "Print the version"), [] {
      print(version_text() + "\n");
      return kOk;
    });
  }

  void add_completions() {
    CLI::App* completions = command("completions", "Print the completions of a shell");
    choice(completions->add_option("SHELL", shell_, "The shell")->required(),
           {"bash", "zsh", "fish"});
    on_choice(completions, [this] { return show_completions(describe(), shell_); });
  }

  // For the build.
  void add_man() {
    CLI::App* man = command("man", "Print the commands as a section of the manual");
    man->group("");
    on_choice(man, [this] { return show_manual(describe()); });
  }

  std::vector<CommandInfo> describe() const {
    std::vector<CommandInfo> commands;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      if (command->get_group().empty()) continue;
      CommandInfo info{command->get_name(), command->get_description(), "[options]", {}};
      for (const CLI::Option* option : command->get_options()) {
        info.options.push_back(describe(*option));
        if (option->get_positional()) info.usage += " " + option->get_name();
      }
      if (info.name == "run") info.usage = "[options] -- PROGRAM [ARGUMENTS]";
      commands.push_back(std::move(info));
    }
    return commands;
  }
  OptionInfo describe(const CLI::Option& option) const {
    OptionInfo info;
    for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
    info.purpose = option.get_description();
    const bool is_positional = option.get_positional();
    info.argument = is_positional ? option.get_name() : option.get_type_name();
    if (&option == app_.get_help_ptr() || option.check_lname("help")) info.argument = "";
    info.takes_files = option.get_type_name() == "FILE" || is_positional;
    if (const auto known = values_.find(&option); known != values_.end()) {
      info.values = known->second;
    }
    return info;
  }

  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const CommandInfo& command : describe()) names.push_back(command.name);
    return names;
  }

  void require_known(const std::vector<std::string>& words) const {
    if (words.empty()) {
      throw Failure("no command is given; expected one of " + joined(command_names()) +
                    "; see --help");
    }
    const auto has_name = [&](const CLI::App* command) { return command->get_name() == words[0]; };
    if (words[0].starts_with('-') || !app_.get_subcommands(has_name).empty()) return;
    throw Failure("there is no command \"" + words[0] + "\"; expected one of " +
                  joined(command_names()));
  }

  // Cuts the program and its arguments off: CLI11 must not look at them.
  void split_program(std::vector<std::string>* words) {
    const CLI::App* run = app_.get_subcommand("run");
    std::size_t at = 1;
    for (; at < words->size(); ++at) {
      const std::string& word = (*words)[at];
      if (word == "--" || word.empty() || word[0] != '-') break;
      const CLI::Option* option = run->get_option_no_throw(word);
      if (option != nullptr && option->get_items_expected_min() > 0) ++at;
    }
    at = std::min(at, words->size());
    const std::size_t first = at < words->size() && (*words)[at] == "--" ? at + 1 : at;
    run_.program.assign(words->begin() + static_cast<std::ptrdiff_t>(first), words->end());
    words->resize(at);
  }

  std::string line_of(const CLI::ParseError& error) const {
    std::string where;
    const auto parsed = app_.get_subcommands();
    if (!parsed.empty()) where = parsed[0]->get_name() + ": ";
    std::string line = where + error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return line;
    std::vector<std::string> names;
    if (!parsed.empty()) {
      for (const CLI::Option* option : parsed[0]->get_options()) {
        if (!option->get_positional()) names.push_back(option->get_name());
      }
    }
    return line + "; expected options are " + joined(names);
  }

  CLI::App app_{"Runs CUDA programs with libcajeta_xpu.so, reads its reports and traces.",
                "cajeta-xpu"};
  std::function<int()> chosen_;
  std::map<const CLI::Option*, std::vector<std::string>> values_;
  bool is_run_ = false;
  RunOptions run_;
  std::string sites_;
  std::string profiler_;
  std::vector<std::string> set_;
  std::vector<std::string> program_;
  ReportOptions report_;
  CompareOptions compare_;
  MergeOptions merge_;
  CheckOptions check_;
  DoctorOptions doctor_;
  ProfileOptions profile_;
  ExportOptions export_;
  EnvOptions env_;
  std::string shell_;
  std::string log_level_;
  int verbosity_ = 0;
};

}  // namespace

int run_command_line(int count, char** arguments) {
  bool is_run = false;
  try {
    CommandLine line;
    is_run = count > 1 && std::string_view(arguments[1]) == "run";
    return line.parse_and_run(count, arguments);
  } catch (const Failure& failure) {
    log(LogLevel::kError, failure.what());
    return failure.code();
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("internal failure: ") + error.what());
    return is_run ? kLauncherFailed : kBadInput;
  }
}

}  // namespace cli
