// SPDX-License-Identifier: Apache-2.0
// Patterns of report file names.
#include "profiler/report_path.h"

#include <stdlib.h>

#include <string>

#include "tests/unit/catch.h"

using profiler::expand_path;
using profiler::PathValues;

namespace {
constexpr PathValues kValues{417, "gpu07", "3", "heat2d"};

std::string expand(const char* pattern) {
  char path[64];
  return expand_path(pattern, kValues, path, sizeof path) ? path : "(too long)";
}
// Its texts live until the next call.
profiler::Rank rank() {
  static runtime::Environment environment;
  runtime::read_environment(&environment);
  return profiler::rank_in(environment);
}
}  // namespace

TEST_CASE("patterns name process, host, rank and executable") {
  CHECK(expand("/tmp/%e.%h.%r.%p.txt") == "/tmp/heat2d.gpu07.3.417.txt");
  CHECK(expand("plain") == "plain");
  CHECK(expand("100%%") == "100%");
  CHECK(expand("a%xb%") == "a%xb%");
}

TEST_CASE("a name that does not fit, or is empty, is refused") {
  CHECK(expand(std::string(63, 'x').c_str()) == std::string(63, 'x'));
  CHECK(expand(std::string(64, 'x').c_str()) == "(too long)");
  CHECK(expand(std::string(60, 'x').append("%e").c_str()) == "(too long)");
  CHECK(expand("") == "(too long)");
}

TEST_CASE("the rank comes from the launcher and must be a number") {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"}) {
    unsetenv(name);
  }
  CHECK(std::string(rank().number) == "0");
  setenv("RANK", "7", 1);
  CHECK(std::string(rank().number) == "7");
  setenv("SLURM_PROCID", "../x", 1);
  CHECK(std::string(rank().number) == "7");
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  CHECK(std::string(rank().number) == "2");
  CHECK(std::string(rank().source) == "OMPI_COMM_WORLD_RANK");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"}) unsetenv(name);
  CHECK(std::string(rank().source) == "none");
}

TEST_CASE("a pattern that ends in .json asks for JSON") {
  CHECK(profiler::wants_json("report.%p.json"));
  CHECK_FALSE(profiler::wants_json("report.json.txt"));
  CHECK_FALSE(profiler::wants_json("json"));
}
