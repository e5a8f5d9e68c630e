// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cli/reports.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/unit/catch.h"
#include "tools/cli/report_json.h"

namespace cli_test {
namespace {

constexpr const char* kEntries[] = {"cuStreamSynchronize", "cuMemcpyDtoH_v2", "cuMemFree_v2",
                                    "cuEventQuery"};
constexpr const char* kKindsOf[] = {"sync", "copy", "alloc", "query"};
constexpr std::size_t kSites = 6;
constexpr std::size_t kModules = 3;

void add_sample(std::uint64_t ns, cli::CallTotals* totals) {
  totals->min_ns = totals->calls == 0 ? ns : std::min(totals->min_ns, ns);
  totals->max_ns = std::max(totals->max_ns, ns);
  ++totals->calls;
  totals->total_ns += ns;
  ++totals->buckets[profiler::bucket_of(ns)];
}

cli::Entry* entry_of(const Event& event, cli::Report* report) {
  for (cli::Entry& entry : report->entries) {
    if (entry.name == kEntries[event.entry]) return &entry;
  }
  report->entries.push_back({kEntries[event.entry], kKindsOf[event.entry], {}});
  return &report->entries.back();
}

// `first`: the module that is number 0 in this process.
cli::Site* site_of(const Event& event, std::size_t first, cli::Report* report) {
  const std::string place = "file" + std::to_string(event.site) + ".cpp:7 function";
  for (cli::Site& site : report->sites->list) {
    if (site.entry == kEntries[event.entry] && site.place == place) return &site;
  }
  cli::Site site;
  site.entry = kEntries[event.entry];
  site.kind = kKindsOf[event.entry];
  site.place = place;
  for (std::size_t depth = 0; depth < 3; ++depth) {
    const std::size_t module = (event.site + depth) % kModules;
    site.frames.push_back({(module + kModules - first) % kModules, 100 * event.site + depth,
                           "function", "file.cpp", 7, false});
  }
  report->sites->list.push_back(site);
  return &report->sites->list.back();
}

void add_event(const Event& event, std::size_t first_module, cli::Report* report) {
  cli::CallTotals& totals = entry_of(event, report)->totals;
  add_sample(event.ns, &totals);
  totals.flushed += event.flushed;
  totals.failed += event.failed;
  totals.not_ready += event.not_ready;
  totals.amount += event.bytes;
  totals.pageable += event.is_pageable;
  totals.submit_ns += event.flushed ? event.ns / 2 : 0;
  cli::Site& site = *site_of(event, first_module, report);
  ++site.calls;
  site.total_ns += event.ns;
  site.max_ns = std::max(site.max_ns, event.ns);
  site.flushed += event.flushed;
  site.failed += event.failed;
  site.not_ready += event.not_ready;
  site.bytes += event.bytes;
  site.pageable_calls += event.is_pageable;
  if (event.flushed) {
    ++report->flushes;
    add_sample(event.ns / 8, &report->launches.replayed_batches);
    report->launches.replayed_batches.amount += 8;
    report->launches.replayed += 8;
    report->launches.queued += 8;
    for (int i = 0; i < 8; ++i) add_sample(event.bytes % 90, &report->launches.queueing_calls);
  } else {
    add_sample(event.ns / 3, &report->launches.direct_calls);
    ++report->launches.sent_one_by_one;
  }
}

}  // namespace

std::vector<Event> random_events(std::uint64_t seed, std::size_t count, std::size_t processes) {
  std::mt19937_64 random(seed);
  std::vector<Event> events;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t site = random() % kSites;
    const std::uint64_t ns = random() >> (20 + random() % 44);
    events.push_back({random() % processes, site % std::size(kEntries), site, ns, random() % 4 == 0,
                      random() % 9 == 0, random() % 5 == 0, random() % 2 == 0, random() % 5000});
  }
  return events;
}

cli::Report report_of(const std::vector<Event>& events, std::size_t process) {
  const bool is_all = process == std::string::npos;
  const std::size_t first_module = is_all ? 0 : process % kModules;
  cli::Report report;
  report.file = "report." + std::to_string(process) + ".json";
  report.tool_version = "0.1.0";
  report.process.host = "host";
  report.process.executable = "program";
  report.process.command = "./program";
  report.process.pid = is_all ? 1 : 100 + process;
  report.process.rank = std::to_string(is_all ? 0 : process);
  report.sites.emplace();
  report.sites->thresholds_ns = {0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < kModules; ++i) {
    const std::size_t number = (i + first_module) % kModules;
    report.sites->modules.push_back(
        {"/lib" + std::to_string(number), "b" + std::to_string(number), false});
  }
  for (const Event& event : events) {
    if (!is_all && event.process != process) continue;
    add_event(event, first_module, &report);
    report.process.wall_ns += 2 * event.ns;
  }
  return report;
}

std::string json_of(const cli::Report& report) {
  const int file = memfd_create("report", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  profiler::JsonWriter out(file);
  cli::write_report(report, &out);
  REQUIRE(out.finish());
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(file);
  return text;
}

std::string sample_json() {
  std::ifstream file(SAMPLE_REPORT);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace cli_test
