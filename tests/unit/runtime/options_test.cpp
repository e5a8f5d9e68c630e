// SPDX-License-Identifier: Apache-2.0
#include "runtime/options.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/unit/catch.h"

using runtime::DeferMode;

namespace {

struct Variable {
  const char* name;
  Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
};

// The texts of the options live until the next calls.
runtime::Options read() {
  static runtime::Environment environments[8];
  static int turn = 0;
  runtime::Environment& environment = environments[turn++ % 8];
  runtime::read_environment(&environment);
  return runtime::read_options(&environment);
}

runtime::Options with(const char* name, const char* value) {
  Variable variable(name, value);
  return read();
}

}  // namespace

TEST_CASE("deferral by name, alias and case") {
  CHECK(read().defer == DeferMode::kUnset);
  CHECK(with("CAJETA_XPU_DEFER", "all").defer == DeferMode::kAll);
  CHECK(with("CAJETA_XPU_DEFER", "1").defer == DeferMode::kAll);
  CHECK(with("CAJETA_XPU_DEFER", "ALL").defer == DeferMode::kAll);
  for (const char* never : {"0", "off", "none"})
    CHECK(with("CAJETA_XPU_DEFER", never).defer == DeferMode::kNever);
  for (const char* wrong : {"al", "2", "yes please"}) {
    CHECK(with("CAJETA_XPU_DEFER", wrong).defer == DeferMode::kUnset);
  }
}

TEST_CASE("numbers have bounds and suffixes; wrong ones keep the default") {
  CHECK(read().deadline_us == 200);
  CHECK(with("CAJETA_XPU_DEFER_DEADLINE_US", "1000").deadline_us == 1000);
  for (const char* wrong : {"0", "-1", "", "1.5", "200us", "99999999999999999999", "3600000001"}) {
    CHECK(with("CAJETA_XPU_DEFER_DEADLINE_US", wrong).deadline_us == 200);
  }
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "64M").graph_bytes == 64ull << 20);
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "0").graph_bytes == 0);
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "2000G").graph_bytes == 256ull << 20);
}

TEST_CASE("switches take the usual words") {
  for (const char* on : {"1", "on", "YES", "true"}) CHECK(with("CAJETA_XPU_DISABLE", on).disabled);
  for (const char* off : {"0", "off", "", "maybe"})
    CHECK_FALSE(with("CAJETA_XPU_DISABLE", off).disabled);
  CHECK(with("CUDA_LAUNCH_BLOCKING", "1").launch_blocking);
  CHECK_FALSE(with("CUDA_LAUNCH_BLOCKING", "0").launch_blocking);
}

TEST_CASE("call sites: a switch, or a threshold by kind; wrong ones keep the default") {
  using runtime::CallKind;
  constexpr std::uint64_t kNever = runtime::Options::kNoSites;
  const auto threshold = [](const runtime::Options& options, CallKind kind) {
    return options.site_thresholds_ns[static_cast<std::size_t>(kind)];
  };
  constexpr const char* kName = "CAJETA_XPU_DRIVER_SITES";
  const runtime::Options all = with(kName, "1");
  CHECK(all.keeps_sites);
  CHECK(all.driver_profile);
  CHECK(threshold(all, CallKind::kOther) == 0);
  const runtime::Options some = with(kName, "sync:50us,copy:10ms,query");
  CHECK(threshold(some, CallKind::kSync) == 50'000);
  CHECK(threshold(some, CallKind::kCopy) == 10'000'000);
  CHECK(threshold(some, CallKind::kQuery) == 0);
  CHECK(threshold(some, CallKind::kAlloc) == kNever);
  const runtime::Options most = with(kName, "all:1s,sync:0,copy:7ns");
  CHECK(threshold(most, CallKind::kAlloc) == 1'000'000'000);
  CHECK(threshold(most, CallKind::kSync) == 0);
  CHECK(threshold(most, CallKind::kCopy) == 7);
  for (const char* off : {"0", "", "off"}) CHECK_FALSE(with(kName, off).keeps_sites);
  for (const char* wrong : {"2", "sync:50", "sync:", "sync:us", "sync:5us,", ",", "sink:5us",
                            "sync:1234567890us", "sync:-1us", "sync:5us:6us"}) {
    CAPTURE(wrong);
    const runtime::Options options = with(kName, wrong);
    CHECK_FALSE(options.keeps_sites);
    CHECK_FALSE(options.driver_profile);
    CHECK(threshold(options, CallKind::kSync) == kNever);
  }
}

TEST_CASE("reports on a timer and on a signal") {
  CHECK(with("CAJETA_XPU_REPORT_EVERY", "60").report_every_s == 60);
  CHECK(with("CAJETA_XPU_REPORT_EVERY", "86401").report_every_s == 0);
  CHECK(with("CAJETA_XPU_REPORT_SIGNAL", "USR2").report_signal == SIGUSR2);
  CHECK(with("CAJETA_XPU_REPORT_SIGNAL", "sigusr1").report_signal == SIGUSR1);
  for (const char* wrong : {"KILL", "12", "SIG", "USR3"}) {
    CHECK(with("CAJETA_XPU_REPORT_SIGNAL", wrong).report_signal == 0);
  }
}

TEST_CASE("the profiler: armed by any value but a no") {
  for (const char* on : {"1", "yes", "all", "device"}) {
    CHECK(with("CAJETA_PROFILER", on).is_timing_launches());
  }
  for (const char* off : {"0", "off", "NO", "false", ""}) {
    CHECK_FALSE(with("CAJETA_PROFILER", off).profiler);
  }
  CHECK_FALSE(with("CAJETA_PROFILER_GPU", "0").is_timing_launches());
  Variable armed("CAJETA_PROFILER", "1");
  const runtime::Options host_only = with("CAJETA_PROFILER_GPU", "0");
  CHECK(host_only.profiler);
  CHECK_FALSE(host_only.is_timing_launches());
}

TEST_CASE("the profiler's rates, rings and file") {
  CHECK(with("CAJETA_PROFILER_HZ", "97").sample_hz == 97);
  CHECK(with("CAJETA_PROFILER_HZ", "0").sample_hz == 0);
  CHECK(with("CAJETA_PROFILER_HZ", "10001").sample_hz == 1000);
  CHECK(with("CAJETA_PROFILER_RING", "64K").sample_ring == 65536);
  CHECK(with("CAJETA_PROFILER_RING", "15").sample_ring == 4096);
  CHECK(with("CAJETA_PROFILER_GPU_RING", "16").launch_ring == 16);
  CHECK(with("CAJETA_PROFILER_GPU_RING", "2M").launch_ring == 8192);
  CHECK(with("CAJETA_PROFILER_BYTES", "1G").trace_bytes == 1ull << 30);
  CHECK(with("CAJETA_PROFILER_BYTES", "1K").trace_bytes == 512ull << 20);
}

TEST_CASE("names of files are copied, and absolute") {
  const std::string folder = std::filesystem::current_path().string() + "/";
  Variable armed("CAJETA_PROFILER", "1");
  CHECK(read().trace_file == folder + "cajeta.pftrace");
  CHECK(with("CAJETA_PROFILER_OUT", "x.pftrace").trace_file == folder + "x.pftrace");
  CHECK(with("CAJETA_PROFILER_OUT", "/x").trace_file == std::string("/x"));
  CHECK(with("CAJETA_XPU_REPORT", "a/%p.json").report == folder + "a/%p.json");
  CHECK(with("CAJETA_XPU_REPORT", "/dev/null").report == std::string("/dev/null"));
  CHECK(with("CAJETA_XPU_REPORT", "none").report == std::string("none"));
  CHECK(with("CAJETA_XPU_REPORT", "stderr").report == nullptr);
  CHECK(with("CAJETA_XPU_LOG_LOOKUPS", "stderr").log_lookups == std::string("stderr"));
  CHECK(with("CAJETA_XPU_LOG_LOOKUPS", "x").log_lookups == folder + "x");
  const std::string long_name(4094, 'x');
  CHECK(with("CAJETA_XPU_REPORT", long_name.c_str()).report == long_name);
}

TEST_CASE("a folder's percent signs are no pattern's") {
  const auto before = std::filesystem::current_path();
  const auto folder = std::filesystem::temp_directory_path() / ("a%p." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  const runtime::Options report = with("CAJETA_XPU_REPORT", "x");
  const runtime::Options log = with("CAJETA_XPU_LOG_LOOKUPS", "x");
  std::filesystem::remove(folder);
  const runtime::Options nowhere = with("CAJETA_XPU_REPORT", "x");
  std::filesystem::current_path(before);
  CHECK(std::string(report.report).ends_with("/a%%p." + std::to_string(getpid()) + "/x"));
  CHECK(std::string(log.log_lookups).ends_with("/a%p." + std::to_string(getpid()) + "/x"));
  CHECK(nowhere.report == std::string("x"));
}

TEST_CASE("wrong values are noted by row") {
  CHECK(read().refused == 0);
  CHECK(with("CAJETA_XPU_DEFER", "al").refused == 1);
  CHECK(with("CAJETA_XPU_DEFER_DEADLINE_US", "0").refused == 2);
}

TEST_CASE("what the environment holds that is ours, and nothing else") {
  static runtime::Environment environment;
  const Variable own("CAJETA_XPU_NO_SUCH", "a=b"), rank("RANK", "7"), other("RANKING", "7");
  const Variable lengthy("CAJETA_XPU_LENGTHY", std::string(30'000, 'x').c_str());
  runtime::read_environment(&environment);
  CHECK(environment.value("CAJETA_XPU_NO_SUCH") == std::string("a=b"));
  CHECK(environment.value("RANK") == std::string("7"));
  CHECK(environment.value("RANKING") == nullptr);
  CHECK(environment.value("PATH") == nullptr);
  CHECK(environment.value("CAJETA_XPU_NO") == nullptr);
  CHECK(environment.value("CAJETA_XPU_LENGTHY") == nullptr);
  CHECK(environment.is_cut);
}

TEST_CASE("an environment that is no memory is empty") {
  static runtime::Environment environment;
  char** const before = environ;
  char* entries[] = {nullptr, nullptr, nullptr};
  entries[0] = reinterpret_cast<char*>(16);
  char own[] = "CAJETA_XPU_DEFER=all";
  entries[1] = own;
  environ = entries;
  runtime::read_environment(&environment);
  environ = reinterpret_cast<char**>(4096);
  static runtime::Environment nothing;
  runtime::read_environment(&nothing);
  environ = before;
  CHECK(environment.value("CAJETA_XPU_DEFER") == std::string("all"));
  CHECK(nothing.count == 0);
}
