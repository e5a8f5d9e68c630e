// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report_limits.h"

#include <algorithm>

#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/places.h"

namespace cli {
namespace {

// "cuMemFree_v2:10" -> the entry and the rest.
std::pair<std::string, std::string> split_entry(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

struct Amount {
  std::uint64_t blocked_ns = 0;
  std::uint64_t calls = 0;
};

// Exported symbols, and the names that people write: cuMemFree for cuMemFree_v2.
bool is_named(const std::string& symbol, const std::string& wanted) {
  if (wanted.empty() || symbol == wanted) return true;
  if (!symbol.starts_with(wanted + "_")) return false;
  const std::string suffix = symbol.substr(wanted.size());
  return suffix == "_ptsz" || suffix == "_ptds" ||
         (suffix.starts_with("_v") && suffix.size() > 2 && suffix[2] >= '0' && suffix[2] <= '9');
}

Amount amount_of(const Report& report, const std::string& entry) {
  Amount sum;
  for (const Entry& known : report.entries) {
    if (!is_named(known.name, entry)) continue;
    const CallTotals& totals = known.totals;
    sum.blocked_ns += totals.total_ns - std::min(totals.submit_ns, totals.total_ns);
    sum.calls += totals.calls;
  }
  return sum;
}

std::string subject(const std::string& entry) {
  return entry.empty() ? "" : " in " + entry;
}

void check_blocked(const Report& report, const BlockedLimit& limit,
                   std::vector<std::string>* broken) {
  const std::uint64_t blocked = amount_of(report, limit.entry).blocked_ns;
  const std::string time = total_time(to_double(blocked));
  if (limit.most.ns) {
    if (blocked <= *limit.most.ns) return;
    broken->push_back("blocked" + subject(limit.entry) + " for " + time + ", the limit is " +
                      total_time(to_double(*limit.most.ns)));
    return;
  }
  const std::uint64_t wall = report.process.wall_ns;
  if (wall == 0) {
    throw Failure(report.file +
                  ": process.wall_ns is 0, so a share of it has no meaning; give the"
                  " limit as a time");
  }
  const double share = percent(to_double(blocked), to_double(wall));
  if (share <= *limit.most.percent) return;
  broken->push_back(
      format("blocked%s for %.2f %% of the wall time (%s of %s), the limit is %.2f %%",
             subject(limit.entry).c_str(), share, time.c_str(), total_time(to_double(wall)).c_str(),
             *limit.most.percent));
}

void check_calls(const Report& report, const CallLimit& limit, std::vector<std::string>* broken) {
  const std::uint64_t calls = amount_of(report, limit.entry).calls;
  if (calls <= limit.most) return;
  broken->push_back(grouped(calls) + " calls" +
                    (limit.entry.empty() ? " that observe the device" : " of " + limit.entry) +
                    ", the limit is " + grouped(limit.most));
}

void check_launches(const Report& report, double most_percent, std::vector<std::string>* broken) {
  const Launches& launches = report.launches;
  const double share = percent(to_double(launches.sent_one_by_one), to_double(launches.total()));
  if (share <= most_percent) return;
  broken->push_back(format(
      "%.2f %% of the launches went one by one (%s of %s), the limit is %.2f %%", share,
      grouped(launches.sent_one_by_one).c_str(), grouped(launches.total()).c_str(), most_percent));
}

void check_failures(const Report& report, std::uint64_t most, std::vector<std::string>* broken) {
  std::uint64_t failed =
      report.launches.queueing_calls.failed + report.launches.direct_calls.failed;
  for (const Entry& entry : report.entries) failed += entry.totals.failed;
  if (failed <= most) return;
  broken->push_back(grouped(failed) + " calls failed, the limit is " + grouped(most));
}

bool is_allowed(const std::string& site, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& part) { return site.find(part) != std::string::npos; });
}

// A function is allowed as many places as it had: an edit above them moves their lines.
void check_sites(const Report& report, const Report& baseline, const Limits& limits,
                 std::vector<std::string>* broken) {
  for (const Report* one : {&report, &baseline}) {
    if (one->sites) continue;
    throw Failure(one->file +
                  ": sites is null, so sites cannot be compared; run with"
                  " CAJETA_XPU_DRIVER_SITES=1 (run --sites)");
  }
  const PlaceGroups known = place_groups(baseline);
  for (const auto& [key, group] : place_groups(report)) {
    const auto old = known.find(key);
    if (old != known.end() && group.places.size() <= old->second.places.size()) continue;
    for (const std::string& place : group.places) {
      if (old != known.end() && old->second.places.contains(place)) continue;
      const std::string site = group.entry + " at " + place;
      if (!is_allowed(site, limits.allowed)) broken->push_back("new site: " + site);
    }
  }
}

}  // namespace

BlockedLimit parse_blocked_limit(const std::string& option, const std::string& text) {
  const auto [entry, amount] = split_entry(text);
  return {entry, parse_time_or_share(option, amount)};
}

CallLimit parse_call_limit(const std::string& option, const std::string& text) {
  const auto [entry, amount] = split_entry(text);
  return {entry, parse_count(option, amount)};
}

std::vector<std::string> broken_limits(const Report& report, const Limits& limits,
                                       const Report* baseline) {
  std::vector<std::string> broken;
  for (const BlockedLimit& limit : limits.blocked) check_blocked(report, limit, &broken);
  for (const CallLimit& limit : limits.calls) check_calls(report, limit, &broken);
  if (limits.one_by_one_percent) check_launches(report, *limits.one_by_one_percent, &broken);
  if (limits.failed) check_failures(report, *limits.failed, &broken);
  if (limits.no_new_sites && baseline != nullptr) check_sites(report, *baseline, limits, &broken);
  return broken;
}

}  // namespace cli
