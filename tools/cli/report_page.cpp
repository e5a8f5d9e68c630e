// SPDX-License-Identifier: Apache-2.0
// Sections of a report, top to bottom.
#include "tools/cli/report_page.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr std::size_t kEntriesAtExit = 30;
constexpr std::size_t kPlacesAtExit = 20;
constexpr std::size_t kMostItems = 12;
constexpr std::size_t kMostUnknownShown = 24;
// A saving below this part of the wall time is lost in its noise; as at exit.
constexpr double kWorthwhile = 0.01;

std::string share(double part, double whole) {
  return format("%.1f", percent(part, whole));
}

// Largest first, without zeros.
void add_items(const char* title, std::vector<Counted> items, Table* table) {
  std::erase_if(items, [](const Counted& item) { return item.count == 0; });
  if (items.empty()) return;
  std::stable_sort(items.begin(), items.end(),
                   [](const Counted& a, const Counted& b) { return a.count > b.count; });
  Note note{title, {}};
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i >= kMostItems) {
      others += items[i].count;
    } else {
      note.items.push_back(items[i].name + " " + grouped(items[i].count));
    }
  }
  if (others > 0) note.items.push_back("others " + grouped(others));
  table->notes.push_back(std::move(note));
}

std::string settings_text(const Process& process) {
  std::string text;
  for (const auto& [name, value] : process.settings) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

std::string title_of(const Report& report) {
  std::string title = "cajeta-xpu " + report.tool_version;
  if (report.parts.empty()) {
    title += format("  pid %llu", static_cast<unsigned long long>(report.process.pid));
  } else {
    title += format("  %zu processes", report.parts.size());
  }
  title += "  host " + report.process.host;
  return title;
}

void add_facts(const Report& report, Page* page) {
  const double wall_ns = to_double(report.process.wall_ns);
  if (wall_ns <= 0) return;
  const double observed = to_double(report.observed_ns());
  const double launching = to_double(report.launches.host_ns());
  const std::uint64_t inside = report.submitting_ns();
  page->facts.push_back("wall " + total_time(wall_ns) +
                        (report.parts.empty() ? "" : " in all processes"));
  page->facts.push_back(format("in calls that observe %s (%.1f %%)", total_time(observed).c_str(),
                               percent(observed, wall_ns)));
  std::string overlap;
  if (inside > 0) overlap = ", " + total_time(to_double(inside)) + " of it in those calls";
  page->facts.push_back(format("launching %s (%.1f %%)%s", total_time(launching).c_str(),
                               percent(launching, wall_ns), overlap.c_str()));
  page->facts.push_back("profiling cost about " +
                        total_time(to_double(report.process.estimated_cost_ns)));
}

// Which process waited longest: with ranks the rest waits for it, or it for the rest.
void add_parts(const Report& report, Page* page) {
  if (report.parts.empty()) return;
  std::vector<const Part*> parts;
  for (const Part& part : report.parts) parts.push_back(&part);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part* a, const Part* b) { return a->blocked_ns > b->blocked_ns; });
  Table table{"PROCESSES", "    by the time they were blocked", {}, {}, {}};
  table.columns = {{"share%", 6, false, 2}, {"blocked", 12}, {"wall", 12}, {"rank", 6}, {"pid", 8},
                   {"host", 0, true, 2}};
  std::size_t shown = 0;
  for (const Part* part : parts) {
    if (shown++ == kPlacesAtExit) break;
    const double blocked = to_double(part->blocked_ns), wall = to_double(part->wall_ns);
    table.rows.push_back({{share(blocked, wall), total_time(blocked), total_time(wall), part->rank,
                           std::to_string(part->pid), part->host + " " + part->executable},
                          "",
                          {}});
  }
  if (parts.size() > kPlacesAtExit) {
    table.notes.push_back({"", {format("and %zu more", parts.size() - kPlacesAtExit)}});
  }
  page->tables.push_back(std::move(table));
}

struct LaunchRow {
  const char* name;
  std::uint64_t count;
  std::uint64_t total_ns;
  std::uint64_t launches;  // that share the time; 0: no time is known
};

void add_launch_row(const LaunchRow& row, std::uint64_t total, Table* table) {
  std::vector<std::string> cells = {row.name, grouped(row.count),
                                    share(to_double(row.count), to_double(total)) + " %"};
  if (row.launches > 0) {
    const double ns = to_double(row.total_ns);
    cells.push_back(total_time(ns));
    cells.push_back(call_time(ns / to_double(row.launches)));
  }
  table->rows.push_back({std::move(cells), "", {}});
}

std::string saving_text(const Launches& launches, double wall_ns) {
  const double launching = to_double(launches.host_ns());
  if (launches.queued == 0) {
    if (wall_ns <= 0 || launching <= 0) return "";
    return format(
        "%s: launch calls are %.1f %% of the wall time, the most that queueing could save",
        launching < kWorthwhile * wall_ns ? "nothing to gain" : "not queued",
        percent(launching, wall_ns));
  }
  const std::optional<Saving> saving = saving_of(launches);
  if (!saving) {
    return "host time saved: unknown, no launch of this run went to the driver one by one";
  }
  const double saved_ns = static_cast<double>(saving->saved_ns);
  const std::string price = call_time(to_double(saving->price_ns));
  if (saved_ns <= 0) {
    return format(
        "nothing to gain: queueing cost about %s more than sending at %s a launch (estimate)",
        total_time(-saved_ns).c_str(), price.c_str());
  }
  if (wall_ns > 0 && saved_ns < kWorthwhile * wall_ns) {
    return format(
        "nothing to gain: about %s of host time saved, %.2f %% of the wall time (estimate)",
        total_time(saved_ns).c_str(), percent(saved_ns, wall_ns));
  }
  return format("host time saved at this run's direct price of %s: %s (estimate; less wall time",
                price.c_str(), total_time(saved_ns).c_str());
}

void add_saving(const Report& report, Table* table) {
  const std::string text = saving_text(report.launches, to_double(report.process.wall_ns));
  if (text.empty()) return;
  table->notes.push_back({"", {text}});
  if (text.ends_with("wall time") && text.starts_with("host time saved")) {
    table->notes.push_back({"", {"  if the device is busy)"}});
  }
}

void add_launches(const Report& report, Page* page) {
  const Launches& launches = report.launches;
  const std::uint64_t total = launches.total();
  Table table{kLaunchesTitle, "", {}, {}, {}};
  if (total == 0) {
    table.remark = "  none";
    page->tables.push_back(std::move(table));
    return;
  }
  table.columns = {
      {"", 24, true, 2}, {"count", 14}, {"share", 9}, {"host time", 14}, {"per launch", 11}};
  const CallTotals& queueing = launches.queueing_calls;
  const std::uint64_t sent = launches.queued_sent_one_by_one();
  const LaunchRow rows[] = {
      {"replayed in graphs", launches.replayed, launches.replayed_batches.total_ns,
       launches.replayed_batches.amount},
      {"queued, sent one by one", sent, launches.one_by_one_batches.total_ns,
       launches.one_by_one_batches.amount},
      {"direct", launches.sent_one_by_one - sent, launches.direct_calls.total_ns,
       launches.direct_calls.calls},
  };
  for (const LaunchRow& row : rows) add_launch_row(row, total, &table);
  if (launches.pending > 0) add_launch_row({"still queued", launches.pending, 0, 0}, total, &table);
  if (queueing.calls > 0) {
    const double ns = to_double(queueing.total_ns);
    table.rows.push_back(
        {{"queueing them", "", "", total_time(ns), call_time(ns / to_double(queueing.calls))},
         "",
         {}});
  }
  add_launch_row({"total", total, launches.host_ns(), total}, total, &table);
  add_saving(report, &table);
  table.notes.push_back(
      {"graphs:",
       {grouped(launches.graphs_built) + " built", grouped(launches.graphs_launched) + " launched",
        grouped(launches.nodes_patched) + " nodes patched",
        grouped(launches.graphs_evicted) + " evicted",
        format("%.1f MiB held at exit", to_double(launches.held_bytes) / (1 << 20))}});
  add_items("one by one:", launches.one_by_one_reasons, &table);
  page->tables.push_back(std::move(table));
}

void add_flushes(const Report& report, Page* page) {
  if (report.flushes == 0) return;
  Table table{
      "FLUSHES", "  " + grouped(report.flushes) + " of queues that held launches", {}, {}, {}};
  add_items("by call:", report.flushes_by_entry, &table);
  add_items("by ourselves:", report.flushes_by_reason, &table);
  page->tables.push_back(std::move(table));
}

double mean(std::uint64_t total, std::uint64_t calls) {
  return calls > 0 ? to_double(total) / to_double(calls) : 0;
}

// Descending but for names; equal ones by name.
bool is_before(const Entry& a, const Entry& b, SortBy sort) {
  const auto key = [sort](const Entry& entry) {
    switch (sort) {
      case SortBy::kCalls:
        return to_double(entry.totals.calls);
      case SortBy::kMean:
        return mean(entry.totals.total_ns, entry.totals.calls);
      case SortBy::kMax:
        return to_double(entry.totals.max_ns);
      case SortBy::kFlushed:
        return to_double(entry.totals.flushed);
      case SortBy::kName:
        return 0.0;
      default:
        return to_double(entry.totals.total_ns);
    }
  };
  const double one = key(a), other = key(b);
  return one != other ? one > other : a.name < b.name;
}

const char* sort_name(SortBy sort) {
  switch (sort) {
    case SortBy::kCalls:
      return "calls";
    case SortBy::kMean:
      return "average time";
    case SortBy::kMax:
      return "longest call";
    case SortBy::kFlushed:
      return "flushes";
    case SortBy::kName:
      return "name";
    default:
      return "total time";
  }
}

using Entries = std::vector<const Entry*>;

Entries sorted_entries(const Report& report, SortBy sort) {
  Entries entries;
  for (const Entry& entry : report.entries) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [sort](const Entry* a, const Entry* b) {  //
    return is_before(*a, *b, sort);
  });
  return entries;
}

struct Sum {
  std::uint64_t calls = 0;
  std::uint64_t flushed = 0;
  std::uint64_t total_ns = 0;
};

void add_entry_sum(const char* name, const Sum& sum, double whole_ns, Table* table) {
  const double ns = to_double(sum.total_ns);
  table->rows.push_back({{share(ns, whole_ns), total_time(ns), grouped(sum.calls), "", "", "", "",
                          grouped(sum.flushed), name},
                         "",
                         {}});
}

void add_entries(const Report& report, const View& view, Page* page) {
  const Entries entries = sorted_entries(report, view.sort);
  const std::size_t shown = std::min(entries.size(), view.top > 0 ? view.top : kEntriesAtExit);
  Table table{kEntriesTitle,
              format("    by %s, %zu of %zu entries", sort_name(view.sort), shown, entries.size()),
              {},
              {},
              {}};
  table.columns = {{"time%", 5, false, 2}, {"total", 11}, {"calls", 11}, {"avg", 7},
                   {"median", 7},          {"p99", 7},    {"max", 7},    {"flushed", 9},
                   {"entry", 0, true, 2}};
  const double whole_ns = to_double(report.observed_ns());
  Sum rest, total;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const CallTotals& totals = entries[i]->totals;
    for (Sum* sum : {&total, i < shown ? nullptr : &rest}) {
      if (sum == nullptr) continue;
      sum->calls += totals.calls;
      sum->flushed += totals.flushed;
      sum->total_ns += totals.total_ns;
    }
    if (i >= shown) continue;
    const double ns = to_double(totals.total_ns);
    table.rows.push_back(
        {{share(ns, whole_ns), total_time(ns), grouped(totals.calls),
          call_time(mean(totals.total_ns, totals.calls)),
          call_time(to_double(totals.quantile_ns(0.5))),
          call_time(to_double(totals.quantile_ns(0.99))), call_time(to_double(totals.max_ns)),
          grouped(totals.flushed), entries[i]->name},
         "",
         {}});
  }
  if (rest.calls > 0) add_entry_sum("the other entries", rest, whole_ns, &table);
  if (!entries.empty()) add_entry_sum("total", total, whole_ns, &table);
  if (const std::uint64_t inside = report.submitting_ns()) {
    table.notes.push_back(
        {"", {total_time(to_double(inside)) + " of this went into submitting queued launches"}});
  }
  std::vector<Counted> failed, not_ready;
  for (const Entry* entry : entries) {
    failed.push_back({entry->name, entry->totals.failed});
    not_ready.push_back({entry->name, entry->totals.not_ready});
  }
  add_items("failed:", failed, &table);
  add_items("found work in progress:", not_ready, &table);
  page->tables.push_back(std::move(table));
}

bool moves_memory(const CallTotals& totals) {
  return (totals.amount | totals.pageable | totals.locked | totals.unknown) != 0;
}

void add_copy_row(const std::string& name, const CallTotals& sum, Table* table) {
  const double bytes = to_double(sum.amount);
  table->rows.push_back(
      {{grouped(sum.calls), bytes_text(bytes), bytes_text(mean(sum.amount, sum.calls)),
        grouped(sum.pageable), grouped(sum.locked), grouped(sum.unknown), name},
       "",
       {}});
}

void add_copies(const Report& report, const View& view, Page* page) {
  Table table{"COPIES AND MEMSETS", "    calls by the host memory that they name", {}, {}, {}};
  table.columns = {{"calls", 12, false, 2}, {"bytes", 12},   {"each", 10},         {"pageable", 11},
                   {"page-locked", 11},     {"unknown", 11}, {"entry", 0, true, 2}};
  CallTotals rest, total;
  const std::size_t most = view.top > 0 ? view.top : kEntriesAtExit;
  for (const Entry* entry : sorted_entries(report, view.sort)) {
    const CallTotals& totals = entry->totals;
    if (!moves_memory(totals)) continue;
    const bool is_shown = table.rows.size() < most;
    for (CallTotals* sum : {&total, is_shown ? nullptr : &rest}) {
      if (sum == nullptr) continue;
      sum->calls += totals.calls;
      sum->amount += totals.amount;
      sum->pageable += totals.pageable;
      sum->locked += totals.locked;
      sum->unknown += totals.unknown;
    }
    if (is_shown) add_copy_row(entry->name, totals, &table);
  }
  if (table.rows.empty()) return;
  if (rest.calls > 0) add_copy_row("the other entries", rest, &table);
  add_copy_row("total", total, &table);
  page->tables.push_back(std::move(table));
}

bool is_place_before(const PlaceSum& a, const PlaceSum& b, SortBy sort) {
  const auto key = [sort](const PlaceSum& place) {
    switch (sort) {
      case SortBy::kCalls:
        return to_double(place.calls);
      case SortBy::kMean:
        return mean(place.total_ns, place.calls);
      case SortBy::kMax:
        return to_double(place.max_ns);
      case SortBy::kFlushed:
        return to_double(place.flushed);
      case SortBy::kName:
        return 0.0;
      default:
        return to_double(place.total_ns);
    }
  };
  const double one = key(a), other = key(b);
  if (one != other) return one > other;
  return std::tie(a.example->entry, a.example->place) <
         std::tie(b.example->entry, b.example->place);
}

std::string place_text(const PlaceSum& place) {
  std::string text = place.example->place;
  if (place.example->through) text += " through " + *place.example->through;
  if (place.bytes > 0) {
    text += " (" + bytes_text(mean(place.bytes, place.calls)) + " each" +
            (place.pageable_calls > 0 ? ", pageable" : "") + ")";
  }
  return text;
}

// Outermost last, one line a frame.
std::vector<std::string> stack_lines(const Sites& sites, const PlaceSum& place) {
  std::vector<std::string> lines;
  for (const Site* site : place.stacks) {
    if (place.stacks.size() > 1) {
      lines.push_back(format("%s calls, %s", grouped(site->calls).c_str(),
                             total_time(to_double(site->total_ns)).c_str()));
    }
    for (const Frame& frame : site->frames) {
      std::string line = "  " + frame_name(sites, frame);
      if (frame.file) {
        line += " " + frame.file->substr(frame.file->rfind('/') + 1);
        if (frame.line) line += ":" + std::to_string(*frame.line);
      }
      lines.push_back(line + (frame.is_inlined ? " (inlined)" : ""));
    }
  }
  return lines;
}

void add_places(const Report& report, const View& view, Page* page) {
  if (!report.sites) return;
  std::vector<PlaceSum> places = places_of(*report.sites);
  std::stable_sort(places.begin(), places.end(), [&](const PlaceSum& a, const PlaceSum& b) {
    return is_place_before(a, b, view.sort);
  });
  const std::size_t shown = std::min(places.size(), view.top > 0 ? view.top : kPlacesAtExit);
  Table table{"WHERE",
              format("    calls over their threshold by %s, %zu of %zu places; stacks by %s",
                     sort_name(view.sort), shown, places.size(), report.sites->walk.c_str()),
              {},
              {},
              {}};
  table.columns = {{"time%", 5, false, 2}, {"total", 11},        {"calls", 11}, {"max", 7},
                   {"entry", 21, true, 2}, {"place", 0, true, 2}};
  const double whole_ns = to_double(report.observed_ns());
  Sum rest, total;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const PlaceSum& place = places[i];
    for (Sum* sum : {&total, i < shown ? nullptr : &rest}) {
      if (sum == nullptr) continue;
      sum->calls += place.calls;
      sum->total_ns += place.total_ns;
    }
    if (i >= shown) continue;
    const double ns = to_double(place.total_ns);
    Row row{{share(ns, whole_ns), total_time(ns), grouped(place.calls),
             call_time(to_double(place.max_ns)), place.example->entry},
            place_text(place),
            {}};
    if (view.has_stacks) row.below = stack_lines(*report.sites, place);
    table.rows.push_back(std::move(row));
  }
  const auto add_sum = [&](const char* name, const Sum& sum) {
    const double ns = to_double(sum.total_ns);
    table.rows.push_back(
        {{share(ns, whole_ns), total_time(ns), grouped(sum.calls), "", name}, "", {}});
  };
  if (rest.calls > 0) add_sum("the other places", rest);
  if (!places.empty()) add_sum("total", total);
  if (report.sites->dropped_calls > 0) {
    table.notes.push_back({"",
                           {grouped(report.sites->dropped_calls) +
                            " calls from further places were dropped: the table is full"}});
  }
  page->tables.push_back(std::move(table));
}

void add_unknown(const Report& report, Page* page) {
  if (report.unknown_entries.empty()) return;
  Table table{"ENTRIES THIS LIBRARY DOES NOT KNOW",
              "  calls; queues are emptied ahead of each",
              {},
              {},
              {{"", {}}}};
  const std::size_t count = report.unknown_entries.size();
  for (std::size_t i = 0; i < std::min(count, kMostUnknownShown); ++i) {
    const Counted& entry = report.unknown_entries[i];
    table.notes[0].items.push_back(entry.name.substr(0, 60) + " " + grouped(entry.count));
  }
  if (count > kMostUnknownShown) {
    table.notes[0].items.push_back(format("and %zu more", count - kMostUnknownShown));
  }
  page->tables.push_back(std::move(table));
}

}  // namespace

std::vector<PlaceSum> places_of(const Sites& sites) {
  std::vector<PlaceSum> places;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  for (const Site& site : sites.list) {
    const auto [at, is_new] =
        known.try_emplace({site.entry, site.place, site.through.value_or("")}, places.size());
    if (is_new) places.push_back({&site, 0, 0, 0, 0, 0, 0, {}});
    PlaceSum& place = places[at->second];
    if (site.total_ns > place.example->total_ns) place.example = &site;
    place.calls += site.calls;
    place.total_ns += site.total_ns;
    place.max_ns = std::max(place.max_ns, site.max_ns);
    place.flushed += site.flushed;
    place.bytes += site.bytes;
    place.pageable_calls += site.pageable_calls;
    place.stacks.push_back(&site);
  }
  return places;
}

Page page_of(const Report& report, const View& view) {
  Page page;
  page.title = title_of(report);
  page.head = {"command   " + report.process.command, "settings  " + settings_text(report.process)};
  if (report.written_at != "exit") {
    page.head.push_back(report.written_at == "snapshot"
                            ? "written   while the process went on"
                            : "written   as a signal killed the process; no symbols were read");
  }
  add_facts(report, &page);
  add_parts(report, &page);
  add_launches(report, &page);
  add_flushes(report, &page);
  add_entries(report, view, &page);
  add_copies(report, view, &page);
  add_places(report, view, &page);
  add_unknown(report, &page);
  if (report.lost_calls > 0) {
    page.tables.push_back(
        {grouped(report.lost_calls) + " calls were not counted: out of memory", "", {}, {}, {}});
  }
  return page;
}

}  // namespace cli
