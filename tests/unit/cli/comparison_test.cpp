// SPDX-License-Identifier: Apache-2.0
// What counts as worse, and what is chance.
#include "tools/cli/comparison.h"

#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"

namespace {

using cli::Metric;

// `calls` calls of `ns` each.
cli::Entry entry(const char* name, std::uint64_t calls, std::uint64_t ns) {
  cli::Entry made{name, "sync", {}};
  made.totals.calls = calls;
  made.totals.total_ns = calls * ns;
  made.totals.min_ns = made.totals.max_ns = ns;
  made.totals.buckets[profiler::bucket_of(ns)] = calls;
  return made;
}

cli::Report report_of(std::vector<cli::Entry> entries) {
  cli::Report report;
  report.entries = std::move(entries);
  return report;
}

std::vector<Metric> metrics(const cli::Comparison& comparison, const std::string& subject) {
  std::vector<Metric> found;
  for (const cli::Regression& regression : comparison.regressions) {
    if (regression.subject == subject) found.push_back(regression.metric);
  }
  return found;
}

}  // namespace

TEST_CASE("a report is no worse than itself") {
  const auto events = cli_test::random_events(3, 500, 1);
  const cli::Report report = cli_test::report_of(events, 0);
  cli::Thresholds strict;
  strict.percent = 0;
  strict.least_ns = 0;
  CHECK(cli::compare(report, report, strict).regressions.empty());
}

TEST_CASE("more time, more calls, new entries and failures are worse") {
  const cli::Report before = report_of({entry("a", 100, 1'000'000), entry("b", 100, 1'000'000)});
  cli::Report after = report_of(
      {entry("a", 100, 2'000'000), entry("b", 150, 1'000'000), entry("c", 5, 10'000'000)});
  after.entries[0].totals.failed = 2;
  const cli::Comparison found = cli::compare(before, after, {});
  CHECK(metrics(found, "a") == std::vector{Metric::kTime, Metric::kFailures});
  CHECK(metrics(found, "b") == std::vector{Metric::kTime, Metric::kCalls});
  CHECK(metrics(found, "c") == std::vector{Metric::kTime, Metric::kCalls});
  CHECK(metrics(found, "total") == std::vector{Metric::kTime, Metric::kCalls, Metric::kFailures});
  CHECK(cli::compare(after, before, {}).regressions.empty());
}

TEST_CASE("thresholds hold at their edge") {
  const cli::Report before = report_of({entry("a", 1000, 1'000'000)});
  cli::Thresholds thresholds;
  thresholds.watches_time = false;
  thresholds.percent = 10;
  const auto is_worse = [&](std::uint64_t calls) {
    return !cli::compare(before, report_of({entry("a", calls, 1'000'000)}), thresholds)
                .regressions.empty();
  };
  CHECK_FALSE(is_worse(1099));
  CHECK(is_worse(1100));
  thresholds.least_count = 200;
  CHECK_FALSE(is_worse(1199));
  CHECK(is_worse(1200));
  thresholds.watches_calls = false;
  CHECK_FALSE(is_worse(5000));
}

TEST_CASE("a time within the spread of its calls, or below the least one, is chance") {
  cli::Entry steady = entry("a", 1000, 1'000'000);
  cli::Entry slower = entry("a", 1000, 1'200'000);
  CHECK_FALSE(cli::compare(report_of({steady}), report_of({slower}), {}).regressions.empty());
  // The same sums, but one call took them: an outlier.
  cli::Entry outlier = steady;
  --outlier.totals.buckets[profiler::bucket_of(1'000'000)];
  ++outlier.totals.buckets[profiler::bucket_of(201'000'000)];
  outlier.totals.total_ns += 200'000'000;
  outlier.totals.max_ns = 201'000'000;
  CHECK(outlier.totals.total_ns == slower.totals.total_ns);
  CHECK(cli::compare(report_of({steady}), report_of({outlier}), {}).regressions.empty());
  cli::Thresholds thresholds;
  thresholds.least_ns = 300'000'000;
  CHECK(cli::compare(report_of({steady}), report_of({slower}), thresholds).regressions.empty());
}

TEST_CASE("time that went into submitting launches is not blocked time") {
  cli::Entry before = entry("a", 100, 10'000'000), after = entry("a", 100, 20'000'000);
  after.totals.submit_ns = 1'000'000'000;
  CHECK(cli::compare(report_of({before}), report_of({after}), {}).regressions.empty());
}

TEST_CASE("a place that moved by some lines is the same place") {
  const auto events = cli_test::random_events(3, 200, 1);
  const cli::Report before = cli_test::report_of(events, 0);
  cli::Report after = before;
  for (cli::Site& site : after.sites->list) site.place.replace(site.place.find(":7"), 2, ":19");
  CHECK(cli::compare(before, after, {}).regressions.empty());
  after.sites->list[0].calls *= 2;
  const cli::Comparison found = cli::compare(before, after, {});
  REQUIRE(found.regressions.size() == 1);
  CHECK(found.regressions[0].subject.find(":19 function") != std::string::npos);
  CHECK(found.regressions[0].metric == Metric::kCalls);
}

TEST_CASE("more launches one by one are worse") {
  cli::Report before, after;
  before.launches.sent_one_by_one = 100;
  after.launches.sent_one_by_one = 120;
  const cli::Comparison found = cli::compare(before, after, {});
  REQUIRE(found.regressions.size() == 1);
  CHECK(cli::line_of(found.regressions[0]) ==
        "launches sent one by one 100 -> 120 (+20.0 %): total");
}
