// SPDX-License-Identifier: Apache-2.0
// softgpu-compare: compares the traces of a bare and a shimmed run. Exit status 0: equal, 1: the
// preload library changed something, 2: bad arguments or an unreadable trace.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tools/softgpu/compare/compare.h"

namespace {

using namespace softgpu::compare;

constexpr char kUsage[] =
    "usage: softgpu-compare [--threads-race] [--added] [--races] [--accesses] BARE SHIMMED\n"
    "Compares two traces (CAJETA_SOFTGPU_TRACE) of one program, without and with the preload "
    "library.\n"
    "  --threads-race  threads submit at the same time: a wait has seen what its own thread "
    "submitted\n"
    "  --added         print order that the shimmed run has and the bare run has not\n"
    "  --races         print conflicting operations that the program does not order\n"
    "  --accesses      print operations that touched other memory\n";

struct Arguments {
  bool is_printed[kFindings] = {true, true, true, true, true, false, false, false};
  std::vector<std::string> paths;
  Options options;
};

bool set_option(const char* name, Arguments* arguments) {
  const auto print = [arguments](Finding finding) {
    arguments->is_printed[static_cast<std::size_t>(finding)] = true;
    return true;
  };
  if (std::strcmp(name, "--threads-race") == 0) return arguments->options.threads_race = true;
  if (std::strcmp(name, "--added") == 0) return print(Finding::kAddedOrder);
  if (std::strcmp(name, "--races") == 0) return print(Finding::kRace);
  if (std::strcmp(name, "--accesses") == 0) return print(Finding::kAccesses);
  return false;
}

bool read(const std::string& path, Trace* trace) {
  std::string error;
  if (read_trace(path, trace, &error)) return true;
  std::fprintf(stderr, "softgpu-compare: %s: %s\n", path.c_str(), error.c_str());
  return false;
}

void print(const Report& report, const Arguments& arguments) {
  static constexpr const char* kNames[kFindings] = {
      "missing",          "extra",       "changed", "lost order",
      "lost observation", "added order", "race",    "other accesses"};
  for (std::size_t kind = 0; kind < kFindings; ++kind) {
    if (!arguments.is_printed[kind]) continue;
    for (const std::string& line : report.lines[kind]) {
      std::printf("%s: %s\n", kNames[kind], line.c_str());
    }
    if (report.counts[kind] > report.lines[kind].size()) {
      std::printf("%s: %llu more\n", kNames[kind],
                  static_cast<unsigned long long>(report.counts[kind] - report.lines[kind].size()));
    }
  }
  std::printf("%s\n", report.summary().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (argv[i][0] != '-') {
      arguments.paths.emplace_back(argv[i]);
    } else if (!set_option(argv[i], &arguments)) {
      std::fprintf(stderr,
                   "softgpu-compare: unknown option %s: use --threads-race, --added, --races or "
                   "--accesses\n",
                   argv[i]);
      return 2;
    }
  }
  if (arguments.paths.size() != 2) {
    std::fprintf(stderr, "softgpu-compare: two traces are needed, BARE and SHIMMED, not %zu\n",
                 arguments.paths.size());
    return 2;
  }
  Trace bare, shimmed;
  if (!read(arguments.paths[0], &bare) || !read(arguments.paths[1], &shimmed)) return 2;
  const Report report = compare(bare, shimmed, arguments.options);
  print(report, arguments);
  return report.has_bugs() ? 1 : 0;
}
