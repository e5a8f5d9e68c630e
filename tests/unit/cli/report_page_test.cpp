// SPDX-License-Identifier: Apache-2.0
// The text of a report is the text that the process itself would have written, byte for byte; no
// line is longer than 100 columns; shown rows and the rest add up.
#include "tools/cli/report_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sstream>

#include "profiler/json_report.h"
#include "profiler/report_writer.h"
#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"
#include "tools/cli/merge.h"
#include "tools/cli/report_file.h"

namespace {

using profiler::CallTotals;
using profiler::LaunchKind;
using runtime::EntryId;

constexpr EntryId kEntries[] = {EntryId::cuStreamSynchronize, EntryId::cuMemcpyDtoH_v2,
                                EntryId::cuEventQuery, EntryId::cuMemFree_v2};

// What a process would report, from random numbers.
struct Exit {
  runtime::CounterSnapshot counters{};
  std::vector<CallTotals> totals = std::vector<CallTotals>(std::size(kEntries));
  std::vector<profiler::EntryLine> lines;
  std::vector<CallTotals> launches =
      std::vector<CallTotals>(static_cast<std::size_t>(LaunchKind::kCount));
  CallTotals own_cost;
  runtime::UnknownEntry unknown[1]{};
  const char* settings[2] = {"DEFER=all", "DRIVER_PROFILE=1"};
  profiler::ReportInput input{};

  CallTotals& launch(LaunchKind kind) { return launches[static_cast<std::size_t>(kind)]; }

  Exit(std::uint64_t seed, double wall_ns) {
    std::mt19937_64 random(seed);
    const bool is_deferred = seed % 3 != 0;
    fill(random, &launch(LaunchKind::kDirect));
    counters.direct = launch(LaunchKind::kDirect).calls;
    if (is_deferred) {
      for (const LaunchKind kind :
           {LaunchKind::kQueued, LaunchKind::kReplayed, LaunchKind::kOneByOne}) {
        fill(random, &launch(kind));
      }
      counters.replayed = launch(LaunchKind::kReplayed).amount;
      counters.direct += launch(LaunchKind::kOneByOne).amount;
      counters.queued = launch(LaunchKind::kQueued).calls;
      counters.pending = seed % 2;
      counters.flushes = 9;
      counters.flushes_by_entry[static_cast<std::size_t>(EntryId::cuMemFree_v2)] = 7;
      counters.flushes_by_reason[static_cast<std::size_t>(runtime::FlushReason::kExit)] = 2;
    } else {
      launch(LaunchKind::kDirect).amount = 0;
    }
    counters.direct_by_reason[0] = counters.direct;
    counters.graph_bytes = 1 << 19;
    for (std::size_t i = 0; i < std::size(kEntries); ++i) {
      fill(random, &totals[i]);
      lines.push_back({kEntries[i], &totals[i]});
    }
    own_cost.calls = own_cost.buckets[profiler::bucket_of(20)] = 8;
    own_cost.min_ns = own_cost.max_ns = 20;
    unknown[0].name = "cuNewEntry";
    unknown[0].calls = 3;
    input = {};
    input.version = "0.1.0";
    input.pid = 77;
    input.host = "gpu07";
    input.executable = "heat2d";
    input.command = "./heat2d --grid 256";
    input.rank = "0";
    input.rank_source = "none";
    input.moment = "exit";
    input.setting_list = settings;
    input.setting_count = 2;
    input.settings = "DEFER=all DRIVER_PROFILE=1";
    input.wall_ns = wall_ns;
    input.entries = lines.data();
    input.entry_count = lines.size();
    input.launches = launches.data();
    input.own_cost = &own_cost;
    input.clock_pair_ns = 24;
    input.lost_calls = seed % 4;
    input.unknown = unknown;
    input.unknown_count = seed % 2;
    input.counters = &counters;
  }

  static void fill(std::mt19937_64& random, CallTotals* sum) {
    const std::size_t calls = 1 + random() % 200;
    for (std::size_t i = 0; i < calls; ++i) {
      const std::uint64_t ns = random() >> (30 + random() % 34);
      sum->min_ns = sum->calls == 0 ? ns : std::min(sum->min_ns, ns);
      sum->max_ns = std::max(sum->max_ns, ns);
      ++sum->calls;
      sum->total_ns += ns;
      ++sum->buckets[profiler::bucket_of(ns)];
    }
    sum->amount = random() % 100'000;
    sum->flushed = random() % calls;
    sum->failed = random() % 3;
    sum->not_ready = random() % 3;
    sum->pageable = random() % calls;
    sum->submit_ns = sum->total_ns / (1 + random() % 5);
  }

  std::string text() {
    std::vector<char> memory(64 * 1024);
    profiler::TextBuffer out(memory.data(), memory.size());
    profiler::write_report(input, &out);
    return out.text();
  }
  std::string json() {
    const int file = memfd_create("report", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    profiler::JsonWriter out(file);
    profiler::write_json_report(input, &out);
    REQUIRE(out.finish());
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
    REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    close(file);
    return text;
  }
};

std::string text_of(const cli::Report& report, const cli::View& view) {
  return cli::text_of(cli::page_of(report, view), false);
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
  }
}

}  // namespace

TEST_CASE("the text is the one that the process would have written") {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    // From a run that is all launching to one where it does not matter.
    Exit exit(seed, 1e9 * static_cast<double>(1 << (2 * (seed % 8))));
    const std::string json = exit.json();
    INFO("seed " << seed);
    CHECK(text_of(cli::parse_report(json, "x"), {}) == exit.text());
  }
}

TEST_CASE("sites, stacks and merged reports stay within 100 columns") {
  cli::Report report = cli::parse_report(cli_test::sample_json(), "x");
  report.sites->list[0].place = std::string(300, 'p');
  report.sites->list[1].through = std::string(80, 't');
  report.process.command = std::string(250, 'c');
  report.process.host = "evil\033[2J\nhost";
  report.entries[0].name = std::string(90, 'e');
  cli::View view;
  view.has_stacks = true;
  for (const cli::Report& one : {report, cli::merge({report, report})}) {
    const std::string text = text_of(one, view);
    check_width(text);
    CHECK(text.find('\033') == text.npos);
    CHECK(text.find("evil?[2J?host") != text.npos);
  }
  CHECK(cli::text_of(cli::page_of(report, view), true).find("\033[1mWHERE\033[0m") !=
        std::string::npos);
}

TEST_CASE("rows that are not shown are one row, and the total stays") {
  const cli::Report report = cli::parse_report(cli_test::sample_json(), "x");
  const auto row = [&](std::size_t top, cli::SortBy sort, const std::string& last) {
    cli::View view;
    view.top = top;
    view.sort = sort;
    for (const cli::Table& table : cli::page_of(report, view).tables) {
      if (table.title != "CALLS THAT OBSERVE THE DEVICE") continue;
      for (const cli::Row& one : table.rows) {
        if (one.cells.back() == last) return one.cells;
      }
    }
    return std::vector<std::string>{};
  };
  using cli::SortBy;
  const auto total = row(0, SortBy::kTotal, "total");
  REQUIRE_FALSE(total.empty());
  CHECK(row(1, SortBy::kTotal, "total") == total);
  CHECK(row(2, SortBy::kCalls, "total") == total);
  CHECK(row(0, SortBy::kTotal, "the other entries").empty());
  CHECK_FALSE(row(1, SortBy::kName, "the other entries").empty());
  // The one row shown is the one with the most.
  CHECK_FALSE(row(1, SortBy::kCalls, "cuMemcpyDtoHAsync_v2").empty());
  CHECK_FALSE(row(1, SortBy::kName, "cuDevicePrimaryCtxRelease_v2").empty());
}

TEST_CASE("Markdown keeps what stands in text, escaped") {
  cli::Report report = cli::parse_report(cli_test::sample_json(), "x");
  report.sites->list[0].place = "a|b<c>";
  const std::string text = cli::markdown_of(cli::page_of(report, {}));
  CHECK(text.find("### CALLS THAT OBSERVE THE DEVICE") != text.npos);
  CHECK(text.find("a\\|b\\<c\\>") != text.npos);
}
