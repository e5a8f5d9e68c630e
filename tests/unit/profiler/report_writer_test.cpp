// SPDX-License-Identifier: Apache-2.0
// The text of the report, byte for byte, and its promises: 100 columns, totals that add up.
#include "profiler/report_writer.h"

#include <cstdio>
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
  std::vector<EntryLine> lines;
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
    input.counters = counters.get();
    std::vector<char> memory(capacity);
    TextBuffer out(memory.data(), memory.size());
    write_report(input, &out);
    return out.text();
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
  report.input.launch_calls = 2'036'380;
  report.input.launch_ns = 1.3528e9;
  report.lines = {
      {EntryId::cuMemcpyDtoH_v2, 12'455, 12'455, 3.11e9, 246e3, 1.12e6},
      {EntryId::cuStreamSynchronize, 24'910, 24'846, 7.42e9, 291e3, 1.9e6},
      {EntryId::cuEventQuery, 402'118, 0, 0.181e9, 410, 220e3},
  };
  return report;
}

// clang-format off
constexpr const char* kGolden =
R"(cajeta-xpu 0.1.0  pid 41873  host gpu07
command   ./heat2d --grid 256
settings  DEFER=all DRIVER_PROFILE=1
wall 62.410 s | in calls that observe 10.711 s (17.2 %) | in launch calls 1.353 s (2.2 %)

LAUNCHES                          count     share
  replayed in graphs            1,988,160    97.6 %   24,852 graph launches, 80.0 each
  sent one by one                  48,220     2.4 %
  total                         2,036,380   100.0 %
  2,018,176 of them were queued
  host time in 2,036,380 launch calls: 1.353 s, 0.66 us each
  graphs:  61 built | 24,852 launched | 4,102,611 nodes patched | 7 evicted | 1.9 MiB held at exit
  one by one:  first sight of a sequence 30,016 | parameter layout unknown 17,000
    cooperative launch 1,204

FLUSHES  37,302 of queues that held launches
  by call:  cuStreamSynchronize 24,846 | cuMemcpyDtoH_v2 12,455
  by ourselves:  exit 1

CALLS THAT OBSERVE THE DEVICE    by total time, 3 of 3 entries
  time%       total       calls     avg  median     max    flushed  entry
   69.3     7.420 s      24,910  298 us  291 us 1.90 ms     24,846  cuStreamSynchronize
   29.0     3.110 s      12,455  250 us  246 us 1.12 ms     12,455  cuMemcpyDtoH_v2
    1.7  181.000 ms     402,118 0.45 us 0.41 us  220 us          0  cuEventQuery
  100.0    10.711 s     439,483                             37,301  total
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
    report.lines.push_back({entry, 9'999'999'999, 9'999'999'999, 99'999e9, 99e9, 99e9});
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
    report.lines.push_back(
        {static_cast<EntryId>(i), i + 1, i, 1e9 * static_cast<double>(i + 1), 1e3, 1e6});
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
  report.lines = {{EntryId::cuCtxSynchronize, 2, 0, 5e6, 2.5e6, 3e6}};
  const std::string text = report.text();
  CHECK(text.find("FLUSHES") == std::string::npos);
  CHECK(text.find("one by one:  not deferred 5\n") != std::string::npos);
  CHECK(text.find("cuCtxSynchronize\n") != std::string::npos);
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
  CHECK(launches_kernel(runtime::row(EntryId::cuLaunchKernelEx_ptsz)));
  CHECK(launches_kernel(runtime::row(EntryId::cuLaunchCooperativeKernel)));
  CHECK_FALSE(launches_kernel(runtime::row(EntryId::cuGraphLaunch)));
}
