// SPDX-License-Identifier: Apache-2.0
// Limits hold at their edge and break behind it; quantities in arguments.
#include "tools/cli/report_limits.h"

#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"
#include "tools/cli/failure.h"

namespace {

cli::Report sample() {
  cli::Report report;
  report.file = "x.json";
  report.process.wall_ns = 1'000'000'000;
  cli::Entry free{"cuMemFree_v2", "alloc", {}}, sync{"cuStreamSynchronize", "sync", {}};
  free.totals.calls = 10;
  free.totals.total_ns = 50'000'000;
  free.totals.failed = 2;
  sync.totals.calls = 90;
  sync.totals.total_ns = 200'000'000;
  sync.totals.submit_ns = 50'000'000;
  report.entries = {free, sync};
  report.launches.replayed = 90;
  report.launches.sent_one_by_one = 10;
  return report;
}

std::vector<std::string> broken(const cli::Limits& limits) {
  return cli::broken_limits(sample(), limits, nullptr);
}

std::vector<std::string> broken_blocked(const std::string& text) {
  cli::Limits limits;
  limits.blocked = {cli::parse_blocked_limit("--max-blocked", text)};
  return broken(limits);
}

std::vector<std::string> broken_calls(const std::string& text) {
  cli::Limits limits;
  limits.calls = {cli::parse_call_limit("--max-calls", text)};
  return broken(limits);
}

}  // namespace

TEST_CASE("limits hold at their edge") {
  CHECK(broken_blocked("200ms").empty());
  CHECK(broken_blocked("0.2s").empty());
  CHECK(broken_blocked("20%").empty());
  CHECK(broken_blocked("199999us") ==
        std::vector<std::string>{"blocked for 200.000 ms, the limit is 199.999 ms"});
  CHECK(broken_blocked("19.9%").size() == 1);
  CHECK(broken_blocked("cuMemFree:50ms").empty());
  CHECK(broken_blocked("cuMemFree_v2:49ms").size() == 1);
  CHECK(broken_blocked("cuMem:0").empty());  // no prefix of a name
  CHECK(broken_calls("100").empty());
  CHECK(broken_calls("99") ==
        std::vector<std::string>{"100 calls that observe the device, the limit is 99"});
  CHECK(broken_calls("cuStreamSynchronize:89").size() == 1);
  cli::Limits limits;
  limits.one_by_one_percent = 10;
  limits.failed = 2;
  CHECK(broken(limits).empty());
  limits.one_by_one_percent = 9.9;
  limits.failed = 1;
  CHECK(broken(limits).size() == 2);
}

TEST_CASE("quantities that are not understood are named with what is") {
  for (const char* text : {"", "x", "10", "10 ms", "-1ms", "ms", "1e3ms", "10m", "10%%", "1e99s"}) {
    INFO(text);
    CHECK_THROWS_AS(cli::parse_time_or_share("--max-blocked", text), cli::Failure);
  }
  for (const char* text : {"", "-1", "1.5", "1k", "18446744073709551616"}) {
    INFO(text);
    CHECK_THROWS_AS(cli::parse_count("--max-calls", text), cli::Failure);
  }
  CHECK(cli::parse_time_ns("o", "1.5us") == 1500);
  CHECK(cli::parse_time_ns("o", "0") == 0);
  CHECK(cli::parse_percent("o", "12.5%") == 12.5);
  CHECK(cli::parse_count("o", "18446744073709551615") == UINT64_MAX);
}

TEST_CASE("a share of no wall time cannot be judged") {
  cli::Report report = sample();
  report.process.wall_ns = 0;
  cli::Limits limits;
  limits.blocked = {cli::parse_blocked_limit("o", "10%")};
  CHECK_THROWS_AS(cli::broken_limits(report, limits, nullptr), cli::Failure);
}

TEST_CASE("new sites are found though lines moved, and can be allowed") {
  const auto events = cli_test::random_events(3, 200, 1);
  const cli::Report before = cli_test::report_of(events, 0);
  cli::Report after = before;
  cli::Limits limits;
  limits.no_new_sites = true;
  const auto found = [&] { return cli::broken_limits(after, limits, &before); };
  for (cli::Site& site : after.sites->list) site.place.replace(site.place.find(":7"), 2, ":19");
  CHECK(found().empty());
  // A second call in a function that had one.
  cli::Site second = before.sites->list[0];
  second.place.replace(second.place.find(":7"), 2, ":23");
  after = before;
  after.sites->list.push_back(second);
  CHECK(found() == std::vector<std::string>{"new site: " + second.entry + " at " + second.place});
  // Another entry from a known function.
  after.sites->list.back() = before.sites->list[0];
  after.sites->list.back().entry = "cuCtxSynchronize";
  CHECK(found().size() == 1);
  limits.allowed = {"cuCtxSynchronize at file"};
  CHECK(found().empty());
  after.sites.reset();
  CHECK_THROWS_AS(found(), cli::Failure);
}
