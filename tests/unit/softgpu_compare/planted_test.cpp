// SPDX-License-Identifier: Apache-2.0
// Real traces of real runs: a program with a planted fault against the same program without it, by
// way of the softgpu-compare program.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/catch.h"

namespace {

struct Result {
  int status = 0;
  std::string output;
};

Result run(const std::string& command) {
  Result result;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    result.output.append(buffer, count);
  }
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  result.status = WEXITSTATUS(status);
  return result;
}

// The trace of one run of the probe; the file goes with it.
class Recorded {
 public:
  Recorded(const std::string& fault, const std::string& order) {
    char name[] = "/tmp/softgpu_planted_XXXXXX";
    const int file = mkstemp(name);
    REQUIRE(file >= 0);
    close(file);
    path_ = name;
    const Result result = run("CAJETA_SOFTGPU_TRACE=" + path_ + " CAJETA_SOFTGPU_ORDER=" + order +
                              " " SOFTGPU_ORDER_PROBE " " + fault);
    INFO(result.output);
    REQUIRE(result.status == 0);
  }
  ~Recorded() { unlink(path_.c_str()); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result compare(const std::string& bare, const std::string& shimmed) {
  return run(SOFTGPU_COMPARE " " + bare + " " + shimmed);
}

constexpr const char* kOrders[] = {"early", "late", "random:1", "random:2"};

}  // namespace

TEST_CASE("the same program is equal under every order") {
  const Recorded bare("whole", "early");
  for (const char* order : kOrders) {
    const Recorded again("whole", order);
    const Result result = compare(bare.path(), again.path());
    INFO(order << ": " << result.output);
    CHECK(result.status == 0);
    CHECK(result.output.find("5 operations, ") == 0);
    CHECK(result.output.find("equal; 0 added orders, 0 races") != std::string::npos);
  }
}

TEST_CASE("every planted fault is caught under every order") {
  const struct {
    const char* fault;
    const char* finding;
  } planted[] = {
      {"legacy", "lost order: 1.1#0 [kernel store"},
      {"early-wait", "lost order: 1.1#1 [kernel store"},
      {"early-wait", "lost observation: thread 0 cuStreamSynchronize call 1 came before 1.1#1"},
      {"no-wait", "lost observation: thread 0 cuStreamSynchronize call 1: 1 calls bare, 0 shimmed"},
      {"no-wait", "lost order: 1.1#1 [kernel store"},
      {"early-query", "lost observation: thread 0 cuStreamQuery s1.2 call 1 came before 1.2#1"},
      {"argument", "changed: 1.1#0 [kernel store"},
      {"twice", "extra: 1.1#2 [kernel store"},
      {"dropped", "missing: 1.2#1 [kernel store"},
  };
  for (const char* order : kOrders) {
    const Recorded bare("whole", order);
    for (const auto& [fault, finding] : planted) {
      const Recorded faulty(fault, order);
      const Result result = compare(bare.path(), faulty.path());
      INFO(order << ", " << fault << ": " << result.output);
      CHECK(result.status == 1);
      CHECK(result.output.find(finding) != std::string::npos);
    }
  }
}

TEST_CASE("bad arguments and traces cost one line and status 2") {
  const Recorded good("whole", "early");
  const struct {
    std::string arguments, output;
  } bad[] = {
      {good.path(), "two traces are needed, BARE and SHIMMED, not 1"},
      {"--all " + good.path() + " " + good.path(),
       "unknown option --all: use --threads-race, --added, --races or --accesses"},
      {good.path() + " /nonexistent", "/nonexistent: No such file or directory"},
      {"/dev/null " + good.path(), "/dev/null: is empty"},
      {SOFTGPU_COMPARE " " + good.path(),
       SOFTGPU_COMPARE ": is not a trace: it does not start with 'softgpu-trace 1'"},
  };
  for (const auto& [arguments, output] : bad) {
    const Result result = run(SOFTGPU_COMPARE " " + arguments);
    CHECK(result.status == 2);
    CHECK(result.output == "softgpu-compare: " + output + "\n");
  }
  const std::string cut = good.path() + ".cut";
  REQUIRE(run("head -c -3 " + good.path() + " > " + cut).status == 0);
  const Result result = compare(good.path(), cut);
  unlink(cut.c_str());
  CHECK(result.status == 2);
  CHECK(result.output ==
        "softgpu-compare: " + cut + ": is truncated: its last line is not whole\n");
}
