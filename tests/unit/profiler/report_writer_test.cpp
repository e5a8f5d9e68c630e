// SPDX-License-Identifier: Apache-2.0
// The text of the report, byte for byte, and its promises: 100 columns, totals that add up.
#include "profiler/report_writer.h"

#include <cstdio>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/catch.h"

using namespace profiler;
using runtime::EntryId;

namespace {

struct Report {
  std::unique_ptr<runtime::CounterSnapshot> counters = std::make_unique<runtime::CounterSnapshot>();
  std::deque<CallTotals> totals;  // addresses stay
  std::vector<EntryLine> lines;
  std::vector<CallTotals> launches =
      std::vector<CallTotals>(static_cast<std::size_t>(LaunchKind::kCount));
  CallTotals own_cost;
  ReportInput input{};

  Report() {
    input.version = "0.1.0";
    input.pid = 41873;
    input.host = "gpu07";
    input.command = "./heat2d --grid 256";
    input.settings = "DEFER=all DRIVER_PROFILE=1";
    input.wall_ns = 62.41e9;
  }

  std::string text(std::size_t capacity = 32 * 1024) {
    input.entries = lines.data();
    input.entry_count = lines.size();
    input.launches = launches.data();
    input.own_cost = &own_cost;
    input.counters = counters.get();
    std::vector<char> memory(capacity);
    TextBuffer out(memory.data(), memory.size());
    write_report(input, &out);
    return out.text();
  }

  // All calls took the same time, but for one that took `max_ns`.
  CallTotals& add(EntryId entry, std::uint64_t calls, std::uint64_t flushed, std::uint64_t total_ns,
                  std::uint64_t median_ns, std::uint64_t max_ns) {
    CallTotals& sum = totals.emplace_back();
    sum.calls = calls;
    sum.flushed = flushed;
    sum.total_ns = total_ns;
    sum.min_ns = median_ns;
    sum.max_ns = max_ns;
    sum.buckets[bucket_of(median_ns)] = calls - 1;
    sum.buckets[bucket_of(max_ns)] += 1;
    lines.push_back({entry, &sum});
    return sum;
  }
  void add_launches(LaunchKind kind, std::uint64_t calls, std::uint64_t amount,
                    std::uint64_t total_ns, std::uint64_t median_ns) {
    CallTotals& sum = launches[static_cast<std::size_t>(kind)];
    sum.calls = calls;
    sum.amount = amount;
    sum.total_ns = total_ns;
    sum.min_ns = sum.max_ns = median_ns;
    sum.buckets[bucket_of(median_ns)] = calls;
  }

  std::uint64_t& direct(runtime::DirectReason reason) {
    return counters->direct_by_reason[static_cast<std::size_t>(reason)];
  }
  std::uint64_t& flushed_by(EntryId entry) {
    return counters->flushes_by_entry[static_cast<std::size_t>(entry)];
  }
};

Report sample() {
  Report report;
  runtime::CounterSnapshot& counters = *report.counters;
  counters.queued = 2'018'176;
  counters.replayed = 1'988'160;
  counters.direct = 48'220;
  counters.graphs_built = 61;
  counters.graphs_evicted = 7;
  counters.graph_launches = 24'852;
  counters.patches = 4'102'611;
  counters.flushes = 37'302;
  counters.graph_bytes = 1'992'295;
  report.direct(runtime::DirectReason::kUnknownLayout) = 17'000;
  report.direct(runtime::DirectReason::kFirstSight) = 30'016;
  report.direct(runtime::DirectReason::kCooperative) = 1'204;
  report.flushed_by(EntryId::cuStreamSynchronize) = 24'846;
  report.flushed_by(EntryId::cuMemcpyDtoH_v2) = 12'455;
  counters.flushes_by_reason[static_cast<std::size_t>(runtime::FlushReason::kExit)] = 1;
  report.own_cost.calls = 10;
  report.own_cost.min_ns = report.own_cost.max_ns = 26;
  report.own_cost.buckets[bucket_of(26)] = 10;
  report.input.clock_pair_ns = 24;
  report.add_launches(LaunchKind::kQueued, 2'018'176, 0, 60'545'280, 29);
  report.add_launches(LaunchKind::kReplayed, 24'852, 1'988'160, 1'128'000'000, 560);
  report.add_launches(LaunchKind::kOneByOne, 400, 30'016, 141'100'000, 4'600);
  report.add_launches(LaunchKind::kDirect, 18'204, 0, 83'700'000, 4'500);
  CallTotals& copies =
      report.add(EntryId::cuMemcpyDtoH_v2, 12'455, 12'455, 3'110'000'000, 246'000, 1'120'000);
  copies.amount = 49'820;
  copies.pageable = 12'455;
  copies.failed = 2;
  copies.submit_ns = 400'000'000;
  CallTotals& memsets = report.add(EntryId::cuMemsetD8Async, 10, 0, 20'000, 2'000, 2'000);
  memsets.amount = 10'485'760;
  report.add(EntryId::cuStreamSynchronize, 24'910, 24'846, 7'420'000'000, 291'000, 1'900'000);
  report.add(EntryId::cuEventQuery, 402'118, 0, 181'000'000, 410, 220'000).not_ready = 401'000;
  return report;
}

// clang-format off
constexpr const char* kGolden =
R"(cajeta-xpu 0.1.0  pid 41873  host gpu07
command   ./heat2d --grid 256
settings  DEFER=all DRIVER_PROFILE=1
wall 62.410 s | in calls that observe 10.711 s (17.2 %)
  launching 1.413 s (2.3 %), 400.000 ms of it in those calls | profiling cost about 123.794 ms

LAUNCHES                            count     share      host time  per launch
  replayed in graphs            1,988,160    97.6 %        1.128 s     0.57 us
  queued, sent one by one          30,016     1.5 %     141.100 ms     4.70 us
  direct                           18,204     0.9 %      83.700 ms     4.60 us
  queueing them                                          60.545 ms     0.03 us
  total                         2,036,380   100.0 %        1.413 s     0.69 us
  host time saved at this run's direct price of 4.60 us: 7.957 s (estimate; less wall time
    if the device is busy)
  graphs:  61 built | 24,852 launched | 4,102,611 nodes patched | 7 evicted | 1.9 MiB held at exit
  one by one:  first sight of a sequence 30,016 | parameter layout unknown 17,000
    cooperative launch 1,204

FLUSHES  37,302 of queues that held launches
  by call:  cuStreamSynchronize 24,846 | cuMemcpyDtoH_v2 12,455
  by ourselves:  exit 1

CALLS THAT OBSERVE THE DEVICE    by total time, 4 of 4 entries
  time%       total       calls     avg  median     p99     max   flushed  entry
   69.3     7.420 s      24,910  298 us  291 us  291 us 1.90 ms    24,846  cuStreamSynchronize
   29.0     3.110 s      12,455  250 us  254 us  254 us 1.12 ms    12,455  cuMemcpyDtoH_v2
    1.7  181.000 ms     402,118 0.45 us 0.41 us 0.41 us  220 us         0  cuEventQuery
    0.0    0.020 ms          10 2.00 us 2.00 us 2.00 us 2.00 us         0  cuMemsetD8Async
  100.0    10.711 s     439,493                                    37,301  total
  400.000 ms of this went into submitting queued launches
  failed:  cuMemcpyDtoH_v2 2
  found work in progress:  cuEventQuery 401,000

COPIES AND MEMSETS    calls by the host memory that they name
         calls        bytes       each    pageable page-locked     unknown  entry
        12,455     48.7 KiB        4 B      12,455           0           0  cuMemcpyDtoH_v2
            10     10.0 MiB   1.00 MiB           0           0           0  cuMemsetD8Async
        12,465     10.0 MiB      845 B      12,455           0           0  total
)";
// clang-format on

}  // namespace

TEST_CASE("the whole report") {
  CHECK(sample().text() == kGolden);
}

TEST_CASE("no line is longer than 100 columns, whatever the numbers") {
  Report report = sample();
  report.input.command =
      "a very long command line that goes on and on and on, argument after argument, "
      "until no terminal can show it in one line any more";
  report.input.settings = report.input.command;
  runtime::CounterSnapshot& counters = *report.counters;
  counters.replayed = counters.direct = counters.queued = 999'999'999'999;
  counters.graph_launches = counters.patches = counters.graphs_built = 99'999'999'999;
  for (std::size_t i = 0; i < static_cast<std::size_t>(runtime::DirectReason::kCount); ++i) {
    counters.direct_by_reason[i] = 1'000'000 + i;
  }
  report.lines.clear();
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    counters.flushes_by_entry[i] = 1'000'000 + i;
    const auto entry = static_cast<EntryId>(i);
    CallTotals& sum = report.add(entry, 9'999'999'999, 9'999'999, 99'999'000'000'000,
                                 99'000'000'000, 99'000'000'000);
    sum.amount = sum.failed = sum.pageable = sum.submit_ns = 9'999'999'999;
  }
  std::istringstream lines(report.text());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CAPTURE(line);
    CHECK(line.size() <= kReportWidth);
  }
  CHECK(count > 40);
}

TEST_CASE("entries beyond the last row shown are summed up, so the table adds up") {
  Report report = sample();
  report.lines.clear();
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < kMostEntriesShown + 5; ++i) {
    report.add(static_cast<EntryId>(i), i + 1, i, 1'000'000'000 * (i + 1), 1'000, 1'000'000);
    calls += i + 1;
  }
  const std::string text = report.text();
  CHECK(text.find("30 of 35 entries") != std::string::npos);

  std::istringstream lines(text.substr(text.find("  time%")));
  std::string line;
  std::getline(lines, line);
  std::uint64_t sum = 0;
  std::uint64_t rows = 0;
  double percents = 0;
  while (std::getline(lines, line)) {
    double percent = 0, seconds = 0;
    unsigned long long row_calls = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lf %lf s %llu", &percent, &seconds, &row_calls) == 3);
    if (line.find("  total") != std::string::npos) {
      CHECK(row_calls == calls);
      break;
    }
    sum += row_calls;
    percents += percent;
    ++rows;
  }
  CHECK(rows == kMostEntriesShown + 1);
  CHECK(sum == calls);
  CHECK(percents == Approx(100).margin(2));
}

TEST_CASE("a process without deferral shows its calls and no flushes") {
  Report report;
  report.counters->direct = 5;
  report.direct(runtime::DirectReason::kNotDeferred) = 5;
  report.add_launches(LaunchKind::kDirect, 5, 0, 20'000, 4'000);
  report.add(EntryId::cuCtxSynchronize, 2, 0, 5'000'000, 2'000'000, 3'000'000);
  const std::string text = report.text();
  CHECK(text.find("FLUSHES") == std::string::npos);
  CHECK(text.find("one by one:  not deferred 5\n") != std::string::npos);
  CHECK(text.find("cuCtxSynchronize\n") != std::string::npos);
  CHECK(text.find("COPIES") == std::string::npos);
  CHECK(text.find(
            "  nothing to gain: launch calls are 0.0 % of the wall time, the most that queueing "
            "could save\n") != std::string::npos);
  report.input.wall_ns = 100'000;
  CHECK(report.text().find("  not queued: launch calls are 20.0 % of the wall time") !=
        std::string::npos);
}

TEST_CASE("the saving is what the run's own prices say, and nothing to gain when that is so") {
  Report report;
  report.counters->queued = report.counters->replayed = 1000;
  report.add_launches(LaunchKind::kQueued, 1000, 0, 20'000, 20);
  report.add_launches(LaunchKind::kReplayed, 10, 1000, 480'000, 480);
  CHECK_FALSE(estimate_saving((report.text(), report.input)).has_price);
  CHECK(report.text().find("host time saved: unknown") != std::string::npos);
  report.add_launches(LaunchKind::kDirect, 10, 0, 30'000, 3'000);  // price about 3 us
  CHECK(estimate_saving((report.text(), report.input)).saved_ns == Approx(2.5e6).epsilon(0.07));
  CHECK(report.text().find("nothing to gain: about 2.500 ms of host time saved, 0.00 %") !=
        std::string::npos);
  report.input.wall_ns = 10e6;
  CHECK(report.text().find("direct price of 3.00 us: 2.500 ms (estimate") != std::string::npos);
  report.add_launches(LaunchKind::kOneByOne, 10, 100, 10'000, 100);  // the better price
  CHECK(estimate_saving((report.text(), report.input)).saved_ns == Approx(-400e3).epsilon(0.03));
  CHECK(report.text().find("nothing to gain: queueing cost about 0.400 ms more") !=
        std::string::npos);
}

TEST_CASE("entries without a row are listed with their calls") {
  Report report;
  CHECK(report.text().find("DOES NOT KNOW") == std::string::npos);
  std::vector<runtime::UnknownEntry> unknown = {{"cuFromTheFuture", 1234}, {"cuNeverCalled", 0}};
  report.input.unknown = unknown.data();
  report.input.unknown_count = unknown.size();
  CHECK(report.text().find("  cuFromTheFuture 1,234 | cuNeverCalled 0\n") != std::string::npos);
  unknown.assign(30, {"cuFromTheFuture", 1});
  report.input.unknown = unknown.data();
  report.input.unknown_count = unknown.size();
  CHECK(report.text().find("and 6 more\n") != std::string::npos);
}

TEST_CASE("lost calls are admitted") {
  Report report;
  CHECK(report.text().find("not counted") == std::string::npos);
  report.input.lost_calls = 3;
  CHECK(report.text().find("3 calls were not counted: out of memory\n") != std::string::npos);
}

TEST_CASE("a small buffer cuts the report without harm") {
  const std::string whole = sample().text();
  const std::string cut = sample().text(200);
  CHECK(cut.size() == 199);
  CHECK(whole.compare(0, cut.size(), cut) == 0);
}

TEST_CASE("entries that observe the device are told from those that do not") {
  const auto observes = [](EntryId entry) { return observes_device(runtime::row(entry)); };
  CHECK(observes(EntryId::cuStreamSynchronize));
  CHECK(observes(EntryId::cuMemcpyDtoH_v2));
  CHECK(observes(EntryId::cuEventQuery));
  CHECK(observes(EntryId::cuMemFree_v2));
  CHECK(observes(EntryId::cuMemcpyDtoHAsync_v2_ptsz));
  CHECK_FALSE(observes(EntryId::cuLaunchKernel));
  CHECK_FALSE(observes(EntryId::cuCtxGetCurrent));
  CHECK_FALSE(observes(EntryId::cuGraphCreate));
}

TEST_CASE("places are shown by total time with their library and bytes, and add up") {
  Report report;
  report.add(EntryId::cuMemcpyDtoH_v2, 100, 0, 8'000'000, 60'000, 2'000'000);
  report.add(EntryId::cuStreamSynchronize, 10, 0, 2'000'000, 200'000, 200'000);
  CHECK(report.text().find("WHERE") == std::string::npos);
  std::vector<SiteLine> sites(2);
  sites[0] = {EntryId::cuStreamSynchronize,
              10,
              2'000'000,
              200'000,
              0,
              0,
              "fft.cpp:77 plan",
              "libcufft.so.11"};
  sites[1] = {EntryId::cuMemcpyDtoH_v2, 60, 7'000'000, 2'000'000, 240, 60, "a.cpp:9 norm", ""};
  report.input.sites = sites.data();
  report.input.site_count = sites.size();
  report.input.walk = "libunwind";
  CHECK(report.text().find(R"(
WHERE    calls over their threshold by total time, 2 of 2 places; stacks by libunwind
  time%       total       calls     max  entry                  place
   70.0    7.000 ms          60 2.00 ms  cuMemcpyDtoH_v2        a.cpp:9 norm (4 B each, pageable)
   20.0    2.000 ms          10  200 us  cuStreamSynchronize
        fft.cpp:77 plan through libcufft.so.11
   90.0    9.000 ms          70          total
)") != std::string::npos);
  CHECK(report.text().find("dropped") == std::string::npos);
  report.input.dropped_sites = 5;
  CHECK(report.text().find("  5 calls from further places were dropped") != std::string::npos);
}

TEST_CASE("places beyond the last row shown are summed up, and long ones are cut at the width") {
  Report report;
  std::vector<SiteLine> sites(kMostSitesShown + 3);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sites[i] = {EntryId::cuMemFree_v2, 1, 1000, 1000, 0, 0, "", ""};
    std::snprintf(sites[i].place, sizeof sites[i].place, "%0200zu", i);
  }
  report.input.sites = sites.data();
  report.input.site_count = sites.size();
  report.input.walk = "frame pointers";
  const std::string text = report.text();
  CHECK(text.find("  3          the other places\n") != std::string::npos);
  CHECK(text.find("  23          total\n") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= kReportWidth);
}
