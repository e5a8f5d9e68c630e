// SPDX-License-Identifier: Apache-2.0
// Sections of the exit report, top to bottom.
#include "profiler/report_writer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace profiler {
namespace {

constexpr std::size_t kIndent = 2;
// Reasons and entries named in a list of flushes; the rest is summed up in its last item.
constexpr std::size_t kMostItems = 12;
constexpr std::size_t kMostUnknownShown = 24;
// A saving below this part of the wall time is lost in its noise. Heuristic.
constexpr double kWorthwhile = 0.01;

struct Item {
  const char* name;
  std::uint64_t count;
};

// Not on the stack, which may be that of a signal handler on a small thread.
Item g_items[runtime::kEntryCount];

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

double to_double(std::uint64_t number) noexcept {
  return static_cast<double>(number);
}

double observed_ns(const ReportInput& input) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < input.entry_count; ++i) sum += input.entries[i].totals->total_ns;
  return to_double(sum);
}

const CallTotals& launches(const ReportInput& input, LaunchKind kind) noexcept {
  return input.launches[static_cast<std::size_t>(kind)];
}

// The host time of all launches, wherever it was spent.
double launching_ns(const ReportInput& input) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(LaunchKind::kCount); ++i) {
    sum += input.launches[i].total_ns;
  }
  return to_double(sum);
}

void write_head(const ReportInput& input, TextBuffer* out) noexcept {
  out->append("cajeta-xpu %.20s  pid %d  host %.40s\n", input.version, input.pid, input.host);
  out->append("command   %.*s\n", static_cast<int>(kReportWidth - 10), input.command);
  out->append("settings  %.*s\n", static_cast<int>(kReportWidth - 10), input.settings);
  if (input.wall_ns <= 0) return;
  bool is_first = true;
  char text[160];
  std::snprintf(text, sizeof text, "wall %s", TotalTime(input.wall_ns).text);
  out->append_item(text, kIndent, kReportWidth, &is_first);
  const double observed = observed_ns(input);
  std::snprintf(text, sizeof text, "in calls that observe %s (%.1f %%)", TotalTime(observed).text,
                percent(observed, input.wall_ns));
  out->append_item(text, kIndent, kReportWidth, &is_first);
  const double launching = launching_ns(input);
  std::uint64_t inside = 0;
  for (std::size_t i = 0; i < input.entry_count; ++i) inside += input.entries[i].totals->submit_ns;
  char overlap[64] = "";
  if (inside > 0) {
    std::snprintf(overlap, sizeof overlap, ", %s of it in those calls",
                  TotalTime(to_double(inside)).text);
  }
  std::snprintf(text, sizeof text, "launching %s (%.1f %%)%s", TotalTime(launching).text,
                percent(launching, input.wall_ns), overlap);
  out->append_item(text, kIndent, kReportWidth, &is_first);
  std::snprintf(text, sizeof text, "profiling cost about %s",
                TotalTime(estimate_own_ns(input)).text);
  out->append_item(text, kIndent, kReportWidth, &is_first);
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

// `launches` share the time; a row that only has time has none.
void write_launch_row(const char* name, std::uint64_t count, std::uint64_t total, double ns,
                      std::uint64_t launches, TextBuffer* out) noexcept {
  char share[16] = "";
  if (total > 0) {
    std::snprintf(share, sizeof share, "%.1f %%", percent(to_double(count), to_double(total)));
  }
  out->append("  %-24s %14s %9s", name, Grouped(count).text, share);
  if (launches > 0) {
    out->append(" %14s %11s", TotalTime(ns).text, CallTime(ns / to_double(launches)).text);
  }
  out->append("\n");
}

void write_saving(const ReportInput& input, double wall_ns, TextBuffer* out) noexcept {
  const double launching = launching_ns(input);
  if (input.counters->queued == 0) {
    if (wall_ns <= 0 || launching <= 0) return;
    const bool is_little = launching < kWorthwhile * wall_ns;
    out->append(
        "  %s: launch calls are %.1f %% of the wall time, the most that queueing could save\n",
        is_little ? "nothing to gain" : "not queued", percent(launching, wall_ns));
    return;
  }
  const Saving saving = estimate_saving(input);
  if (!saving.has_price) {
    out->append(
        "  host time saved: unknown, no launch of this run went to the driver one by one\n");
  } else if (saving.saved_ns <= 0) {
    out->append(
        "  nothing to gain: queueing cost about %s more than sending at %s a launch (estimate)\n",
        TotalTime(-saving.saved_ns).text, CallTime(saving.price_ns).text);
  } else if (wall_ns > 0 && saving.saved_ns < kWorthwhile * wall_ns) {
    out->append(
        "  nothing to gain: about %s of host time saved, %.2f %% of the wall time (estimate)\n",
        TotalTime(saving.saved_ns).text, percent(saving.saved_ns, wall_ns));
  } else {
    out->append(
        "  host time saved at this run's direct price of %s: %s (estimate; less wall time\n"
        "    if the device is busy)\n",
        CallTime(saving.price_ns).text, TotalTime(saving.saved_ns).text);
  }
}

void write_launches(const ReportInput& input, TextBuffer* out) noexcept {
  const runtime::CounterSnapshot& counters = *input.counters;
  const std::uint64_t total = counters.replayed + counters.direct + counters.pending;
  const CallTotals& queued = launches(input, LaunchKind::kQueued);
  const CallTotals& replayed = launches(input, LaunchKind::kReplayed);
  const CallTotals& one_by_one = launches(input, LaunchKind::kOneByOne);
  const CallTotals& direct = launches(input, LaunchKind::kDirect);
  const std::uint64_t sent = std::min(one_by_one.amount, counters.direct);
  if (total == 0) return out->append("\nLAUNCHES  none\n");
  out->append("\nLAUNCHES                            count     share      host time  per launch\n");
  write_launch_row("replayed in graphs", counters.replayed, total, to_double(replayed.total_ns),
                   replayed.amount, out);
  write_launch_row("queued, sent one by one", sent, total, to_double(one_by_one.total_ns),
                   one_by_one.amount, out);
  write_launch_row("direct", counters.direct - sent, total, to_double(direct.total_ns),
                   direct.calls, out);
  if (counters.pending > 0) {
    write_launch_row("still queued", counters.pending, total, 0, 0, out);
  }
  if (queued.calls > 0) {
    out->append("  %-24s %14s %9s %14s %11s\n", "queueing them", "", "",
                TotalTime(to_double(queued.total_ns)).text,
                CallTime(to_double(queued.total_ns) / to_double(queued.calls)).text);
  }
  write_launch_row("total", total, total, launching_ns(input), total, out);
  write_saving(input, input.wall_ns, out);
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
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    g_items[i] = {runtime::kEntryTable[i].symbol, counters.flushes_by_entry[i]};
  }
  write_items("by call:", g_items, std::size(g_items), out);
  Item reasons[static_cast<std::size_t>(runtime::FlushReason::kCount)];
  for (std::size_t i = 0; i < std::size(reasons); ++i) {
    reasons[i] = {runtime::name(static_cast<runtime::FlushReason>(i)),
                  counters.flushes_by_reason[i]};
  }
  write_items("by ourselves:", reasons, std::size(reasons), out);
}

void write_entry_row(const EntryLine& line, double whole_ns, TextBuffer* out) noexcept {
  const CallTotals& totals = *line.totals;
  const double total_ns = to_double(totals.total_ns);
  out->append("  %5.1f %11s %11s %7s %7s %7s %7s %9s  %s", percent(total_ns, whole_ns),
              TotalTime(total_ns).text, Grouped(totals.calls).text,
              CallTime(total_ns / to_double(totals.calls)).text,
              CallTime(to_double(totals.quantile_ns(0.5))).text,
              CallTime(to_double(totals.quantile_ns(0.99))).text,
              CallTime(to_double(totals.max_ns)).text, Grouped(totals.flushed).text,
              runtime::row(line.entry).symbol);
  out->end_line(kReportWidth);
}

struct Sum {
  std::uint64_t calls = 0;
  std::uint64_t flushed = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t submit_ns = 0;

  void add(const CallTotals& totals) noexcept {
    calls += totals.calls;
    flushed += totals.flushed;
    total_ns += totals.total_ns;
    submit_ns += totals.submit_ns;
  }
};

void write_sum_row(const Sum& sum, const char* name, double whole_ns, TextBuffer* out) noexcept {
  const double total_ns = to_double(sum.total_ns);
  out->append("  %5.1f %11s %11s %31s %9s  %s", percent(total_ns, whole_ns),
              TotalTime(total_ns).text, Grouped(sum.calls).text, "", Grouped(sum.flushed).text,
              name);
  out->end_line(kReportWidth);
}

// One count of each entry, as a list.
void write_entry_items(const ReportInput& input, const char* title,
                       std::uint64_t CallTotals::*count, TextBuffer* out) noexcept {
  for (std::size_t i = 0; i < input.entry_count; ++i) {
    const EntryLine& line = input.entries[i];
    g_items[i] = {runtime::row(line.entry).symbol, line.totals->*count};
  }
  write_items(title, g_items, input.entry_count, out);
}

void write_entries(const ReportInput& input, TextBuffer* out) noexcept {
  EntryLine* entries = input.entries;
  const std::size_t shown = std::min(input.entry_count, kMostEntriesShown);
  out->append("\nCALLS THAT OBSERVE THE DEVICE    by total time, %zu of %zu entries\n", shown,
              input.entry_count);
  if (input.entry_count == 0) return;
  std::sort(entries, entries + input.entry_count, [](const EntryLine& a, const EntryLine& b) {
    const std::uint64_t one = a.totals->total_ns, other = b.totals->total_ns;
    return one != other ? one > other : a.entry < b.entry;
  });
  const double whole_ns = observed_ns(input);
  out->append(
      "  time%%       total       calls     avg  median     p99     max   flushed  entry\n");
  Sum rest;
  Sum total;
  for (std::size_t i = 0; i < input.entry_count; ++i) {
    total.add(*entries[i].totals);
    if (i < shown) {
      write_entry_row(entries[i], whole_ns, out);
    } else {
      rest.add(*entries[i].totals);
    }
  }
  if (rest.calls > 0) write_sum_row(rest, "the other entries", whole_ns, out);
  write_sum_row(total, "total", whole_ns, out);
  if (total.submit_ns > 0) {
    out->append("  %s of this went into submitting queued launches\n",
                TotalTime(to_double(total.submit_ns)).text);
  }
  write_entry_items(input, "failed:", &CallTotals::failed, out);
  write_entry_items(input, "found work in progress:", &CallTotals::not_ready, out);
}

bool moves_memory(const EntryLine& line) noexcept {
  const CallTotals& totals = *line.totals;
  return totals.amount + totals.pageable + totals.locked + totals.unknown > 0;
}

void write_copy_row(std::uint64_t calls, const CallTotals& sum, const char* name,
                    TextBuffer* out) noexcept {
  const double bytes = to_double(sum.amount);
  out->append("  %12s %12s %10s %11s %11s %11s  %s", Grouped(calls).text, Bytes(bytes).text,
              Bytes(calls > 0 ? bytes / to_double(calls) : 0).text, Grouped(sum.pageable).text,
              Grouped(sum.locked).text, Grouped(sum.unknown).text, name);
  out->end_line(kReportWidth);
}

// In the order of the table above.
void write_copies(const ReportInput& input, TextBuffer* out) noexcept {
  CallTotals rest;
  CallTotals total;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < input.entry_count; ++i) {
    const EntryLine& line = input.entries[i];
    if (!moves_memory(line)) continue;
    if (shown == 0) {
      out->append(
          "\nCOPIES AND MEMSETS    calls by the host memory that they name\n"
          "         calls        bytes       each    pageable page-locked     unknown  "
          "entry\n");
    }
    const bool is_shown = shown++ < kMostEntriesShown;
    for (CallTotals* sum : {&total, is_shown ? nullptr : &rest}) {
      if (sum == nullptr) continue;
      sum->calls += line.totals->calls;
      sum->amount += line.totals->amount;
      sum->pageable += line.totals->pageable;
      sum->locked += line.totals->locked;
      sum->unknown += line.totals->unknown;
    }
    if (is_shown) {
      write_copy_row(line.totals->calls, *line.totals, runtime::row(line.entry).symbol, out);
    }
  }
  if (shown == 0) return;
  if (rest.calls > 0) write_copy_row(rest.calls, rest, "the other entries", out);
  write_copy_row(total.calls, total, "total", out);
}

void write_place(const SiteLine& line, TextBuffer* out) noexcept {
  char remark[96] = "";
  if (line.bytes > 0) {
    std::snprintf(remark, sizeof remark, " (%s each%s)",
                  Bytes(to_double(line.bytes) / to_double(line.calls)).text,
                  line.pageable_calls > 0 ? ", pageable" : "");
  }
  const char* through = line.through[0] != '\0' ? " through " : "";
  char place[kPlaceBytes + 192];
  std::snprintf(place, sizeof place, "%s%s%s%s", line.place, through, line.through, remark);
  out->append_behind(place, 8, kReportWidth);
}

void write_site_row(const SiteLine& line, double whole_ns, TextBuffer* out) noexcept {
  const double total_ns = to_double(line.total_ns);
  out->append("  %5.1f %11s %11s %7s  %-21s  ", percent(total_ns, whole_ns),
              TotalTime(total_ns).text, Grouped(line.calls).text,
              CallTime(to_double(line.max_ns)).text, runtime::row(line.entry).symbol);
  write_place(line, out);
}

void write_site_sum(const char* name, const Sum& sum, double whole_ns, TextBuffer* out) noexcept {
  const double total_ns = to_double(sum.total_ns);
  out->append("  %5.1f %11s %11s %7s  %s\n", percent(total_ns, whole_ns), TotalTime(total_ns).text,
              Grouped(sum.calls).text, "", name);
}

void write_sites(const ReportInput& input, TextBuffer* out) noexcept {
  if (input.sites == nullptr) return;
  const std::size_t shown = std::min(input.site_count, kMostSitesShown);
  out->append(
      "\nWHERE    calls over their threshold by total time, %zu of %zu places; stacks by %s\n",
      shown, input.site_count, input.walk);
  std::sort(input.sites, input.sites + input.site_count, [](const SiteLine& a, const SiteLine& b) {
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    return a.entry != b.entry ? a.entry < b.entry : std::strcmp(a.place, b.place) < 0;
  });
  if (input.site_count > 0) {
    out->append("  time%%       total       calls     max  entry                  place\n");
  }
  const double whole_ns = observed_ns(input);
  Sum rest;
  Sum total;
  for (std::size_t i = 0; i < input.site_count; ++i) {
    const SiteLine& line = input.sites[i];
    for (Sum* sum : {&total, i < shown ? nullptr : &rest}) {
      if (sum == nullptr) continue;
      sum->calls += line.calls;
      sum->total_ns += line.total_ns;
    }
    if (i < shown) write_site_row(line, whole_ns, out);
  }
  if (rest.calls > 0) write_site_sum("the other places", rest, whole_ns, out);
  if (input.site_count > 0) write_site_sum("total", total, whole_ns, out);
  if (input.dropped_sites > 0) {
    out->append("  %s calls from further places were dropped: the table is full\n",
                Grouped(input.dropped_sites).text);
  }
  if (input.python_version != nullptr) {
    out->append("  Python %s: places are native: %s\n", input.python_version, input.python_unread);
  }
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

double estimate_own_ns(const ReportInput& input) noexcept {
  std::uint64_t calls =
      launches(input, LaunchKind::kQueued).calls + launches(input, LaunchKind::kDirect).calls;
  for (std::size_t i = 0; i < input.entry_count; ++i) calls += input.entries[i].totals->calls;
  const std::uint64_t each_ns = input.own_cost->quantile_ns(0.5) + input.clock_pair_ns;
  return to_double(calls * each_ns);
}

Saving estimate_saving(const ReportInput& input) noexcept {
  const CallTotals& one_by_one = launches(input, LaunchKind::kOneByOne);
  const CallTotals& direct = launches(input, LaunchKind::kDirect);
  const CallTotals& replayed = launches(input, LaunchKind::kReplayed);
  // The same launches at their first sight are the better price than launches of another sort.
  const CallTotals& priced = one_by_one.calls > 0 ? one_by_one : direct;
  if (priced.calls == 0) return {false, 0, 0};
  const double price_ns = to_double(priced.quantile_ns(0.5));
  const double spent_ns =
      to_double(replayed.total_ns + launches(input, LaunchKind::kQueued).total_ns);
  return {true, price_ns, price_ns * to_double(replayed.amount) - spent_ns};
}

void write_report(const ReportInput& input, TextBuffer* out) noexcept {
  write_head(input, out);
  write_launches(input, out);
  write_flushes(*input.counters, out);
  write_entries(input, out);
  write_copies(input, out);
  write_sites(input, out);
  write_unknown(input, out);
  if (input.lost_calls > 0) {
    out->append("\n%s calls were not counted: out of memory\n", Grouped(input.lost_calls).text);
  }
}

}  // namespace profiler
