// SPDX-License-Identifier: Apache-2.0
// Sections of the exit report, top to bottom.
#include "profiler/report_writer.h"

#include <algorithm>
#include <cstdio>

namespace profiler {
namespace {

constexpr std::size_t kIndent = 2;
// Reasons and entries named in a list of flushes; the rest is summed up in its last item.
constexpr std::size_t kMostItems = 12;
constexpr std::size_t kMostUnknownShown = 24;

struct Item {
  const char* name;
  std::uint64_t count;
};

double percent(double part, double whole) noexcept {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

// "title  name 3 | name 2 | ...", largest first; items without a count are left out.
void write_items(const char* title, Item* items, std::size_t count, TextBuffer* out) noexcept {
  Item* end =
      std::remove_if(items, items + count, [](const Item& item) { return item.count == 0; });
  if (end == items) return;
  std::sort(items, end, [](const Item& a, const Item& b) { return a.count > b.count; });
  out->append("%*s%s  ", static_cast<int>(kIndent), "", title);
  bool is_first = true;
  std::uint64_t others = 0;
  for (Item* item = items; item != end; ++item) {
    if (item - items >= static_cast<std::ptrdiff_t>(kMostItems)) {
      others += item->count;
      continue;
    }
    char text[96];
    std::snprintf(text, sizeof text, "%s %s", item->name, Grouped(item->count).text);
    out->append_item(text, kIndent + 2, kReportWidth, &is_first);
  }
  if (others > 0) {
    char text[48];
    std::snprintf(text, sizeof text, "others %s", Grouped(others).text);
    out->append_item(text, kIndent + 2, kReportWidth, &is_first);
  }
  out->append("\n");
}

double observed_ns(const ReportInput& input) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < input.entry_count; ++i) sum += input.entries[i].total_ns;
  return sum;
}

void write_head(const ReportInput& input, TextBuffer* out) noexcept {
  out->append("cajeta-xpu %.20s  pid %d  host %.40s\n", input.version, input.pid, input.host);
  out->append("command   %.*s\n", static_cast<int>(kReportWidth - 10), input.command);
  out->append("settings  %.*s\n", static_cast<int>(kReportWidth - 10), input.settings);
  const double observed = observed_ns(input);
  if (input.wall_ns <= 0) return;
  bool is_first = true;
  char text[96];
  std::snprintf(text, sizeof text, "wall %s", TotalTime(input.wall_ns).text);
  out->append_item(text, kIndent, kReportWidth, &is_first);
  std::snprintf(text, sizeof text, "in calls that observe %s (%.1f %%)", TotalTime(observed).text,
                percent(observed, input.wall_ns));
  out->append_item(text, kIndent, kReportWidth, &is_first);
  if (input.launch_calls > 0) {
    std::snprintf(text, sizeof text, "in launch calls %s (%.1f %%)",
                  TotalTime(input.launch_ns).text, percent(input.launch_ns, input.wall_ns));
    out->append_item(text, kIndent, kReportWidth, &is_first);
  }
  out->append("\n");
}

void write_graphs(const runtime::CounterSnapshot& counters, TextBuffer* out) noexcept {
  const Item items[] = {{"built", counters.graphs_built},
                        {"launched", counters.graph_launches},
                        {"nodes patched", counters.patches},
                        {"evicted", counters.graphs_evicted}};
  out->append("%*sgraphs:  ", static_cast<int>(kIndent), "");
  bool is_first = true;
  char text[96];
  for (const Item& item : items) {
    std::snprintf(text, sizeof text, "%s %s", Grouped(item.count).text, item.name);
    out->append_item(text, kIndent + 2, kReportWidth, &is_first);
  }
  const double mebibytes = static_cast<double>(counters.graph_bytes) / (1 << 20);
  std::snprintf(text, sizeof text, "%.1f MiB held at exit", mebibytes);
  out->append_item(text, kIndent + 2, kReportWidth, &is_first);
  out->append("\n");
}

void write_launch_row(const char* name, std::uint64_t count, std::uint64_t total,
                      const char* remark, TextBuffer* out) noexcept {
  const double share = percent(static_cast<double>(count), static_cast<double>(total));
  out->append("  %-22s %16s %7.1f %%%s%s\n", name, Grouped(count).text, share,
              remark[0] != '\0' ? "   " : "", remark);
}

void write_launches(const ReportInput& input, TextBuffer* out) noexcept {
  const runtime::CounterSnapshot& counters = *input.counters;
  const std::uint64_t total = counters.replayed + counters.direct + counters.pending;
  out->append("\nLAUNCHES                          count     share\n");
  char remark[96] = "";
  if (counters.graph_launches > 0) {
    std::snprintf(
        remark, sizeof remark, "%s graph launches, %.1f each",
        Grouped(counters.graph_launches).text,
        static_cast<double>(counters.replayed) / static_cast<double>(counters.graph_launches));
  }
  write_launch_row("replayed in graphs", counters.replayed, total, remark, out);
  write_launch_row("sent one by one", counters.direct, total, "", out);
  if (counters.pending > 0) write_launch_row("still queued", counters.pending, total, "", out);
  write_launch_row("total", total, total, "", out);
  out->append("  %s of them were queued\n", Grouped(counters.queued).text);
  if (input.launch_calls > 0) {
    out->append("  host time in %s launch calls: %s, %s each\n", Grouped(input.launch_calls).text,
                TotalTime(input.launch_ns).text,
                CallTime(input.launch_ns / static_cast<double>(input.launch_calls)).text);
  }
  write_graphs(counters, out);
  Item reasons[static_cast<std::size_t>(runtime::DirectReason::kCount)];
  for (std::size_t i = 0; i < std::size(reasons); ++i) {
    reasons[i] = {runtime::name(static_cast<runtime::DirectReason>(i)),
                  counters.direct_by_reason[i]};
  }
  write_items("one by one:", reasons, std::size(reasons), out);
}

void write_flushes(const runtime::CounterSnapshot& counters, TextBuffer* out) noexcept {
  if (counters.flushes == 0) return;
  out->append("\nFLUSHES  %s of queues that held launches\n", Grouped(counters.flushes).text);
  Item items[runtime::kEntryCount];
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    items[i] = {runtime::kEntryTable[i].symbol, counters.flushes_by_entry[i]};
  }
  write_items("by call:", items, std::size(items), out);
  Item reasons[static_cast<std::size_t>(runtime::FlushReason::kCount)];
  for (std::size_t i = 0; i < std::size(reasons); ++i) {
    reasons[i] = {runtime::name(static_cast<runtime::FlushReason>(i)),
                  counters.flushes_by_reason[i]};
  }
  write_items("by ourselves:", reasons, std::size(reasons), out);
}

void write_entry_row(const EntryLine& line, double whole_ns, TextBuffer* out) noexcept {
  out->append("  %5.1f %11s %11s %7s %7s %7s %10s  %s", percent(line.total_ns, whole_ns),
              TotalTime(line.total_ns).text, Grouped(line.calls).text,
              CallTime(line.total_ns / static_cast<double>(line.calls)).text,
              CallTime(line.median_ns).text, CallTime(line.max_ns).text, Grouped(line.flushed).text,
              runtime::row(line.entry).symbol);
  out->end_line(kReportWidth);
}

void write_sum_row(const EntryLine& sum, const char* name, double whole_ns,
                   TextBuffer* out) noexcept {
  out->append("  %5.1f %11s %11s %23s %10s  %s", percent(sum.total_ns, whole_ns),
              TotalTime(sum.total_ns).text, Grouped(sum.calls).text, "", Grouped(sum.flushed).text,
              name);
  out->end_line(kReportWidth);
}

void add_to(EntryLine* sum, const EntryLine& line) noexcept {
  sum->calls += line.calls;
  sum->flushed += line.flushed;
  sum->total_ns += line.total_ns;
}

void write_entries(const ReportInput& input, TextBuffer* out) noexcept {
  EntryLine* entries = input.entries;
  const std::size_t shown = std::min(input.entry_count, kMostEntriesShown);
  out->append("\nCALLS THAT OBSERVE THE DEVICE    by total time, %zu of %zu entries\n", shown,
              input.entry_count);
  if (input.entry_count == 0) return;
  std::sort(entries, entries + input.entry_count, [](const EntryLine& a, const EntryLine& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.entry < b.entry;
  });
  const double whole_ns = observed_ns(input);
  out->append("  time%%       total       calls     avg  median     max    flushed  entry\n");
  EntryLine rest{};
  EntryLine total{};
  for (std::size_t i = 0; i < input.entry_count; ++i) {
    add_to(&total, entries[i]);
    if (i < shown) {
      write_entry_row(entries[i], whole_ns, out);
    } else {
      add_to(&rest, entries[i]);
    }
  }
  if (rest.calls > 0) write_sum_row(rest, "the other entries", whole_ns, out);
  write_sum_row(total, "total", whole_ns, out);
}

void write_unknown(const ReportInput& input, TextBuffer* out) noexcept {
  if (input.unknown_count == 0) return;
  out->append("\nENTRIES THIS LIBRARY DOES NOT KNOW  calls; queues are emptied ahead of each\n%*s",
              static_cast<int>(kIndent), "");
  const std::size_t shown = std::min(input.unknown_count, kMostUnknownShown);
  bool is_first = true;
  char text[96];
  for (std::size_t i = 0; i < shown; ++i) {
    std::snprintf(text, sizeof text, "%.60s %s", input.unknown[i].name,
                  Grouped(input.unknown[i].calls).text);
    out->append_item(text, kIndent, kReportWidth, &is_first);
  }
  if (shown < input.unknown_count) {
    std::snprintf(text, sizeof text, "and %zu more", input.unknown_count - shown);
    out->append_item(text, kIndent, kReportWidth, &is_first);
  }
  out->append("\n");
}

}  // namespace

bool observes_device(const runtime::EntryRow& row) noexcept {
  switch (row.entry_class) {
    case runtime::EntryClass::kStreamOrdered:
    case runtime::EntryClass::kObserveAll:
    case runtime::EntryClass::kNullStreamSync:
    case runtime::EntryClass::kEventObserve:
      return true;
    default:
      return false;
  }
}

bool launches_kernel(const runtime::EntryRow& row) noexcept {
  return row.entry_class == runtime::EntryClass::kLaunch ||
         row.entry_class == runtime::EntryClass::kLaunchDirect;
}

void write_report(const ReportInput& input, TextBuffer* out) noexcept {
  write_head(input, out);
  write_launches(input, out);
  write_flushes(*input.counters, out);
  write_entries(input, out);
  write_unknown(input, out);
  if (input.lost_calls > 0) {
    out->append("\n%s calls were not counted: out of memory\n", Grouped(input.lost_calls).text);
  }
}

}  // namespace profiler
