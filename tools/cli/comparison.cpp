// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/cli/output.h"
#include "tools/cli/places.h"

namespace cli {
namespace {

// Growth of a total within three deviations of its calls is chance. Heuristic: calls that take the
// device's time vary together, which the threshold is for.
constexpr double kDeviations = 3;

struct Side {
  std::uint64_t calls = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t failed = 0;
  double variance = 0;  // of blocked_ns, ns^2
};

Side side_of(const CallTotals& totals) {
  const double spread = spread_ns(totals);
  const std::uint64_t inside = std::min(totals.submit_ns, totals.total_ns);
  return {totals.calls, totals.total_ns - inside, totals.failed, spread * spread};
}

Side sum_of(const Report& report) {
  Side sum;
  for (const Entry& entry : report.entries) {
    const Side side = side_of(entry.totals);
    sum.calls += side.calls;
    sum.blocked_ns += side.blocked_ns;
    sum.failed += side.failed;
    sum.variance += side.variance;
  }
  return sum;
}

double growth_percent(std::uint64_t before, std::uint64_t after) {
  if (before == after) return 0;
  if (before == 0) return INFINITY;
  return 100.0 * (to_double(after) - to_double(before)) / to_double(before);
}

std::string growth_text(std::uint64_t before, std::uint64_t after) {
  if (before == after) return "=";
  if (before == 0) return "new";
  return format("%+.1f %%", growth_percent(before, after));
}

bool grew(std::uint64_t before, std::uint64_t after, std::uint64_t least, double percent) {
  return after > before && after - before >= std::max<std::uint64_t>(least, 1) &&
         growth_percent(before, after) >= percent;
}

class Finder {
 public:
  explicit Finder(const Thresholds& thresholds) : thresholds_(thresholds) {}

  void look(const std::string& subject, const Side& before, const Side& after) {
    if (thresholds_.watches_time) look_at_time(subject, before, after);
    if (thresholds_.watches_calls) look_at(subject, Metric::kCalls, before.calls, after.calls);
    if (thresholds_.watches_failures) {
      look_at(subject, Metric::kFailures, before.failed, after.failed);
    }
  }
  void look_at_launches(std::uint64_t before, std::uint64_t after) {
    if (thresholds_.watches_launches) look_at("total", Metric::kLaunches, before, after);
  }
  std::vector<Regression> take() {
    std::stable_sort(found_.begin(), found_.end(), [](const Regression& a, const Regression& b) {
      if (a.metric != b.metric) return a.metric < b.metric;
      return a.after - a.before > b.after - b.before;
    });
    return std::move(found_);
  }

 private:
  void look_at_time(const std::string& subject, const Side& before, const Side& after) {
    if (!grew(before.blocked_ns, after.blocked_ns, thresholds_.least_ns, thresholds_.percent)) {
      return;
    }
    const double chance = kDeviations * std::sqrt(before.variance + after.variance);
    if (to_double(after.blocked_ns - before.blocked_ns) <= chance) return;
    found_.push_back({subject, Metric::kTime, before.blocked_ns, after.blocked_ns});
  }
  void look_at(const std::string& subject, Metric metric, std::uint64_t before,
               std::uint64_t after) {
    if (!grew(before, after, thresholds_.least_count, thresholds_.percent)) return;
    found_.push_back({subject, metric, before, after});
  }

  const Thresholds& thresholds_;
  std::vector<Regression> found_;
};

using Sides = std::map<std::string, std::pair<Side, Side>>;

Sides entry_sides(const Report& before, const Report& after) {
  Sides sides;
  for (const Entry& entry : before.entries) sides[entry.name].first = side_of(entry.totals);
  for (const Entry& entry : after.entries) sides[entry.name].second = side_of(entry.totals);
  return sides;
}

// Sites have no histogram: their time is shown and not judged, their entry's is.
Sides place_sides(const Report& before, const Report& after) {
  Sides sides;
  PlaceGroups old = place_groups(before);
  for (const auto& [key, group] : place_groups(after)) {
    std::pair<Side, Side> pair{{}, {group.calls, group.total_ns, 0, 0}};
    if (const auto known = old.find(key); known != old.end()) {
      pair.first = {known->second.calls, known->second.total_ns, 0, 0};
      old.erase(known);
    }
    sides[group.entry + " at " + group.name()] = pair;
  }
  for (const auto& [key, group] : old) {
    sides[group.entry + " at " + group.name()] = {{group.calls, group.total_ns, 0, 0}, {}};
  }
  return sides;
}

// Sides in the order of what they changed most.
std::vector<const Sides::value_type*> sorted(const Sides& sides) {
  std::vector<const Sides::value_type*> order;
  for (const auto& side : sides) order.push_back(&side);
  const auto change = [](const Sides::value_type* side) {
    const double before = to_double(side->second.first.blocked_ns);
    return std::abs(to_double(side->second.second.blocked_ns) - before);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return change(a) > change(b); });
  return order;
}

Row row_of(const std::string& name, const Side& before, const Side& after) {
  return {{total_time(to_double(before.blocked_ns)), total_time(to_double(after.blocked_ns)),
           growth_text(before.blocked_ns, after.blocked_ns), grouped(before.calls),
           grouped(after.calls), growth_text(before.calls, after.calls), name},
          "",
          {}};
}

Table side_table(const char* title, const char* remark, const char* last) {
  Table table{title, remark, {}, {}, {}};
  table.columns = {{"blocked", 11, false, 2},
                   {"after", 11},
                   {"change", 9},
                   {"calls", 9},
                   {"after", 9},
                   {"change", 9},
                   {last, 0, true, 2}};
  return table;
}

Row launch_row(const char* name, std::uint64_t before, std::uint64_t after) {
  return {{name, grouped(before), grouped(after), growth_text(before, after)}, "", {}};
}

Table launch_table(const Launches& before, const Launches& after) {
  Table table{"LAUNCHES", "", {}, {}, {}};
  table.columns = {{"", 24, true, 2}, {"before", 14}, {"after", 14}, {"change", 9}};
  table.rows = {launch_row("replayed in graphs", before.replayed, after.replayed),
                launch_row("one by one", before.sent_one_by_one, after.sent_one_by_one),
                launch_row("total", before.total(), after.total())};
  return table;
}

Table regression_table(const std::vector<Regression>& regressions) {
  Table table{"WORSE", "", {}, {}, {}};
  if (regressions.empty()) table.remark = "  nothing";
  for (const Regression& regression : regressions) {
    table.notes.push_back({"", {line_of(regression)}});
  }
  return table;
}

std::string name_of(const Report& report) {
  const Process& process = report.process;
  return report.file + "  (" + process.command + ", wall " +
         total_time(to_double(process.wall_ns)) + ")";
}

}  // namespace

double spread_ns(const CallTotals& totals) {
  if (totals.calls < 2) return 0;
  const double mean = to_double(totals.total_ns) / to_double(totals.calls);
  double sum = 0;
  for (std::size_t bucket = 0; bucket < profiler::kBucketCount; ++bucket) {
    if (totals.buckets[bucket] == 0) continue;
    const double floor = to_double(profiler::bucket_floor(bucket));
    const double middle = (floor + to_double(profiler::bucket_floor(bucket + 1))) / 2;
    sum += to_double(totals.buckets[bucket]) * (middle - mean) * (middle - mean);
  }
  return std::sqrt(sum);
}

std::string line_of(const Regression& regression) {
  const std::uint64_t before = regression.before, after = regression.after;
  const std::string growth = growth_text(before, after);
  const auto line = [&](const char* what, const std::string& one, const std::string& other) {
    return std::string(what) + " " + one + " -> " + other + " (" + growth +
           "): " + regression.subject;
  };
  switch (regression.metric) {
    case Metric::kTime:
      return line("blocked time", total_time(to_double(before)), total_time(to_double(after)));
    case Metric::kCalls:
      return line("calls", grouped(before), grouped(after));
    case Metric::kLaunches:
      return line("launches sent one by one", grouped(before), grouped(after));
    default:
      return line("failed calls", grouped(before), grouped(after));
  }
}

Comparison compare(const Report& before, const Report& after, const Thresholds& thresholds) {
  Finder finder(thresholds);
  Comparison comparison;
  Page& page = comparison.page;
  page.title = "cajeta-xpu compare";
  page.head = {"before    " + name_of(before), "after     " + name_of(after)};

  Table entries = side_table("CALLS THAT OBSERVE THE DEVICE", "    by change", "entry");
  const Sides by_entry = entry_sides(before, after);
  for (const auto* side : sorted(by_entry)) {
    entries.rows.push_back(row_of(side->first, side->second.first, side->second.second));
    finder.look(side->first, side->second.first, side->second.second);
  }
  const Side old_sum = sum_of(before), new_sum = sum_of(after);
  entries.rows.push_back(row_of("total", old_sum, new_sum));
  finder.look("total", old_sum, new_sum);
  page.tables.push_back(std::move(entries));

  if (before.sites && after.sites) {
    Thresholds of_places = thresholds;
    of_places.watches_time = false;
    Finder place_finder(of_places);
    Table places = side_table("WHERE", "    by change", "place");
    const Sides by_place = place_sides(before, after);
    for (const auto* side : sorted(by_place)) {
      Row row = row_of("", side->second.first, side->second.second);
      row.cells.pop_back();
      row.behind = side->first;
      places.rows.push_back(std::move(row));
      place_finder.look(side->first, side->second.first, side->second.second);
    }
    page.tables.push_back(std::move(places));
    comparison.regressions = place_finder.take();
  }
  page.tables.push_back(launch_table(before.launches, after.launches));
  finder.look_at_launches(before.launches.sent_one_by_one, after.launches.sent_one_by_one);
  std::vector<Regression> found = finder.take();
  comparison.regressions.insert(comparison.regressions.begin(), found.begin(), found.end());
  page.tables.push_back(regression_table(comparison.regressions));
  return comparison;
}

}  // namespace cli
