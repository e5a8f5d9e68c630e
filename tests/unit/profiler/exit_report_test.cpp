// SPDX-License-Identifier: Apache-2.0
// The report as a process writes it at its end. Each case runs in a forked child, because a report
// is written once.
#include "profiler/exit_report.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "profiler/call_stats.h"
#include "runtime/standard_error.h"
#include "tests/unit/catch.h"

using profiler::CallStats;
using runtime::EntryId;

namespace {

struct Directory {
  char path[32] = "/tmp/exit_report_XXXXXX";
  Directory() { REQUIRE(mkdtemp(path) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return std::string(path) + "/" + name; }
};

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs `body` in a child whose stderr is a file; returns what it wrote there, and its pid.
std::string stderr_of(const Directory& directory, const std::function<void()>& body,
                      pid_t* pid = nullptr) {
  const std::string path = directory.file("stderr");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (std::freopen(path.c_str(), "w", stderr) == nullptr) _exit(1);
    runtime::remember_standard_error();
    body();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  if (pid != nullptr) *pid = child;
  const std::string text = contents(path);
  std::remove(path.c_str());
  return text;
}

void record_two_calls() {
  profiler::CallFacts facts;
  facts.flushed = true;
  CallStats::record(profiler::stat_of(EntryId::cuStreamSynchronize), 1000, facts);
  CallStats::record(profiler::stat_of(profiler::LaunchKind::kDirect), 500, {});
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the report goes to stderr, once, with this process in its head") {
  Directory directory;
  pid_t pid = 0;
  const std::string text = stderr_of(
      directory,
      [] {
        setenv("CAJETA_XPU_DEFER", "all", 1);
        profiler::enable_profile(nullptr);
        record_two_calls();
        profiler::write_exit_report();
        profiler::write_exit_report();
      },
      &pid);
  CHECK(count_of(text, "cajeta-xpu ") == 1);
  CHECK(text.find("pid " + std::to_string(pid) + " ") != std::string::npos);
  CHECK(text.find("profiler_test") != std::string::npos);
  CHECK(text.find("DEFER=all") != std::string::npos);
  CHECK(text.find("cuStreamSynchronize\n") != std::string::npos);
}

TEST_CASE("the report goes to the file that was asked for, and stderr stays empty") {
  Directory directory;
  const std::string pattern = directory.file("%e.%p.txt");
  pid_t pid = 0;
  const std::string text = stderr_of(
      directory,
      [&] {
        profiler::enable_profile(pattern.c_str());
        record_two_calls();
        profiler::write_exit_report();
      },
      &pid);
  CHECK(text.empty());
  const std::string path = directory.file("profiler_test." + std::to_string(pid) + ".txt");
  CHECK(contents(path).find("cuStreamSynchronize\n") != std::string::npos);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path), {}) == 1);
}

TEST_CASE("a path that ends in .json gets JSON of the same numbers") {
  Directory directory;
  const std::string path = directory.file("report.json");
  const std::string text = stderr_of(directory, [&] {
    profiler::enable_profile(path.c_str());
    record_two_calls();
    profiler::write_exit_report();
  });
  CHECK(text.empty());
  const nlohmann::json report = nlohmann::json::parse(contents(path));
  CHECK(report["schema"] == "cajeta-xpu.report");
  CHECK(report["written_at"] == "exit");
  // Other tests of this process have called other entries.
  nlohmann::json entry;
  for (const nlohmann::json& each : report["entries"]) {
    if (each["entry"] == "cuStreamSynchronize") entry = each;
  }
  CHECK(entry["kind"] == "sync");
  CHECK(entry["calls"] == 1);
  CHECK(entry["total_ns"] == 1000);
  CHECK(entry["flushed"] == 1);
  CHECK(entry["histogram"] == nlohmann::json::array({{profiler::bucket_of(1000), 1}}));
  CHECK(report["launches"]["direct_calls"]["calls"] == 1);
  CHECK(report["sites"].is_null());
}

TEST_CASE("a file that cannot be written is named, and the report goes to stderr") {
  Directory directory;
  const std::string path = directory.file("missing/report.txt");
  const std::string text = stderr_of(directory, [&] {
    profiler::enable_profile(path.c_str());
    record_two_calls();
    profiler::write_exit_report();
  });
  CHECK(count_of(text, "cannot write \"" + path + "\": No such file or directory") == 1);
  CHECK(text.find("cuStreamSynchronize\n") != std::string::npos);
}

TEST_CASE("nothing is written: report none, profiling off, no calls, or a forked child") {
  Directory directory;
  CHECK(stderr_of(directory, [] {
          profiler::enable_profile("none");
          record_two_calls();
          profiler::write_exit_report();
        }).empty());
  CHECK(stderr_of(directory, [] {
          record_two_calls();
          profiler::write_exit_report();
        }).empty());
  CHECK(stderr_of(directory, [] {
          profiler::enable_profile(nullptr);
          record_two_calls();
          const pid_t child = fork();
          if (child == 0) {
            profiler::write_exit_report();
            _exit(0);
          }
          waitpid(child, nullptr, 0);
        }).empty());
}
