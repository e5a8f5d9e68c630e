// SPDX-License-Identifier: Apache-2.0
// Merging is exact: the reports of several processes add up to the report of one process that made
// all their calls.
#include "tools/cli/merge.h"

#include <algorithm>
#include <map>

#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"
#include "tools/cli/failure.h"

namespace {

using cli_test::json_of;
using cli_test::random_events;
using cli_test::report_of;

// Lists in an order of their own, without what says which processes there were. Modules stand in
// the order of their paths.
cli::Report normal(cli::Report report) {
  report.parts.clear();
  report.process = {};
  std::sort(report.entries.begin(), report.entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  cli::Sites& sites = *report.sites;
  std::vector<cli::Module> modules = sites.modules;
  std::sort(modules.begin(), modules.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  for (cli::Site& site : sites.list) {
    for (cli::Frame& frame : site.frames) {
      const std::string& path = sites.modules[*frame.module].path;
      frame.module = static_cast<std::size_t>(
          std::find_if(modules.begin(), modules.end(),
                       [&](const auto& module) { return module.path == path; }) -
          modules.begin());
    }
  }
  sites.modules = modules;
  std::sort(sites.list.begin(), sites.list.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return report;
}

}  // namespace

TEST_CASE("ranks merge to what one process would have counted") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::size_t ranks = 2 + seed % 4;
    const auto events = random_events(seed, 50 * ranks, ranks);
    std::vector<cli::Report> reports;
    for (std::size_t rank = 0; rank < ranks; ++rank) reports.push_back(report_of(events, rank));
    const cli::Report sum = cli::merge(reports);
    const cli::Report one = report_of(events, std::string::npos);
    INFO("seed " << seed);
    CHECK(json_of(normal(sum)) == json_of(normal(one)));
    CHECK(sum.process.wall_ns == one.process.wall_ns);
    REQUIRE(sum.parts.size() == ranks);
    std::uint64_t blocked = 0;
    for (const cli::Part& part : sum.parts) blocked += part.blocked_ns;
    CHECK(blocked == one.blocked_ns());
  }
}

TEST_CASE("merging in steps is merging at once") {
  const auto events = random_events(11, 400, 3);
  const cli::Report a = report_of(events, 0), b = report_of(events, 1), c = report_of(events, 2);
  const std::string at_once = json_of(cli::merge({a, b, c}));
  CHECK(json_of(cli::merge({cli::merge({a, b}), c})) == at_once);
  CHECK(json_of(cli::merge({a, cli::merge({b, c})})) == at_once);
  CHECK(json_of(cli::merge({a})) == json_of(a));
}

TEST_CASE("a stack without names takes the names of the same stack elsewhere") {
  const auto events = random_events(5, 100, 1);
  const cli::Report named = report_of(events, 0);
  cli::Report bare = named;
  bare.written_at = "signal";
  bare.sites->has_symbols = false;
  for (cli::Site& site : bare.sites->list) {
    site.place = "lib+0x1";
    for (cli::Frame& frame : site.frames) frame.function = frame.file = std::nullopt;
  }
  for (const auto& order : {std::vector{bare, named}, std::vector{named, bare}}) {
    const cli::Report sum = cli::merge(order);
    CHECK(sum.written_at == "signal");
    CHECK_FALSE(sum.sites->has_symbols);
    REQUIRE(sum.sites->list.size() == named.sites->list.size());
    for (std::size_t i = 0; i < named.sites->list.size(); ++i) {
      CHECK(sum.sites->list[i].place == named.sites->list[i].place);
      CHECK(sum.sites->list[i].calls == 2 * named.sites->list[i].calls);
    }
  }
}

TEST_CASE("settings that differ are both there, sums that do not fit are refused") {
  const auto events = random_events(5, 50, 2);
  cli::Report a = report_of(events, 0), b = report_of(events, 1);
  a.process.settings = {{"DEFER", "all"}, {"REPORT", "x"}};
  b.process.settings = {{"DEFER", "0"}, {"REPORT", "x"}, {"DISABLE", "0"}};
  const auto settings = cli::merge({a, b}).process.settings;
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"DEFER", "all|0"}, {"REPORT", "x"}, {"DISABLE", "0"}};
  CHECK(settings == expected);
  a.entries[0].totals.total_ns = UINT64_MAX;
  CHECK_THROWS_AS(cli::merge({a, a}), cli::Failure);
}
