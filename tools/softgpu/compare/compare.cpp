// SPDX-License-Identifier: Apache-2.0
// Matches operations by identity and waits by thread and entry, then asks the orders of both runs.
#include "tools/softgpu/compare/compare.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tools/softgpu/compare/conflicts.h"
#include "tools/softgpu/compare/order.h"
#include "tools/softgpu/trace_format.h"

namespace softgpu::compare {

namespace {

constexpr OperationIndex kNone = ~OperationIndex{0};
constexpr std::size_t kLongestText = 120;

std::string describe(const Operation& operation) {
  std::string text = std::to_string(operation.stream >> 32) + '.' +
                     std::to_string(operation.stream & 0xffffffff) + '#' +
                     std::to_string(operation.sequence) + " [";
  text += operation.text.substr(0, kLongestText);
  if (operation.text.size() > kLongestText) text += "...";
  return text + ']';
}

struct Identity {
  std::uint64_t stream, sequence;
  bool operator==(const Identity&) const = default;
};
struct HashIdentity {
  std::size_t operator()(const Identity& identity) const {
    return std::hash<std::uint64_t>()(identity.stream * 0x9e3779b97f4a7c15ull ^ identity.sequence);
  }
};
using Index = std::unordered_map<Identity, OperationIndex, HashIdentity>;

Index index_of(const Trace& trace) {
  Index index;
  for (OperationIndex i = 0; i < trace.operations.size(); ++i) {
    const Operation& operation = trace.operations[i];
    if (operation.has_identity) index.emplace(Identity{operation.stream, operation.sequence}, i);
  }
  return index;
}

// The waits of one thread in one entry, or its queries of one object grouped by what they asked
// for: how often a program polls is not the same in any two runs. A group is named by its last
// query.
struct CallSite {
  std::size_t thread;  // rank among the threads that wait
  bool is_query;
  std::string_view entry, object;
  auto operator<=>(const CallSite&) const = default;
};

std::string describe(const CallSite& site, std::size_t call) {
  return "thread " + std::to_string(site.thread) + ' ' + std::string(site.entry) +
         (site.is_query ? ' ' + std::string(site.object) : "") + " call " +
         std::to_string(call + 1);
}

using Group = std::vector<std::uint32_t>;  // a waiting call is one of its own
using CallSites = std::map<CallSite, std::vector<Group>>;

// Two queries of one object. A stream's goals say nothing: what it waited for in other streams is
// among them only until it is done.
bool ask_the_same(const Wait& one, const Wait& other) {
  if (one.object.starts_with('s')) return one.submitted == other.submitted;
  return one.goals == other.goals;
}

CallSites call_sites_of(const Trace& trace) {
  std::set<std::uint64_t> threads;
  for (const Wait& wait : trace.waits) threads.insert(wait.thread);
  std::map<std::uint64_t, std::size_t> ranks;
  for (const std::uint64_t thread : threads) ranks.emplace(thread, ranks.size());
  CallSites sites;
  for (std::uint32_t i = 0; i < trace.waits.size(); ++i) {
    const Wait& wait = trace.waits[i];
    if (!wait.is_query && !wait.is_over) continue;  // the process ended in it
    auto& site = sites[{ranks.at(wait.thread), wait.is_query, wait.entry, wait.object}];
    const bool is_repeated =
        wait.is_query && !site.empty() && ask_the_same(trace.waits[site.back().back()], wait);
    if (!is_repeated) site.emplace_back();
    site.back().push_back(i);
  }
  return sites;
}

// The first query of the group that was answered with yes.
std::size_t first_yes(const Trace& trace, const Group& group) {
  const auto is_yes = [&](std::uint32_t i) { return trace.waits[i].is_over; };
  return static_cast<std::size_t>(std::find_if(group.begin(), group.end(), is_yes) - group.begin());
}

// The queries of bare whose yes is chance: a program that asks once and goes on hears one answer in
// one run and another in the next. It counts when both runs heard it from the same call, or both
// asked until they heard it.
std::vector<bool> find_void_queries(const Trace& bare, const Trace& shimmed) {
  std::vector<bool> is_void(bare.waits.size());
  const CallSites sites = call_sites_of(bare);
  CallSites others = call_sites_of(shimmed);
  for (const auto& [site, groups] : sites) {
    if (!site.is_query) continue;
    const std::vector<Group>& counterparts = others[site];
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Group none;
      const Group& group = groups[i];
      const Group& other = i < counterparts.size() ? counterparts[i] : none;
      const std::size_t yes = first_yes(bare, group), other_yes = first_yes(shimmed, other);
      const bool is_loop = yes + 1 == group.size() && other_yes + 1 == other.size();
      const bool is_heard = other_yes < other.size() && (is_loop || yes == other_yes);
      for (const std::uint32_t query : group) is_void[query] = !is_heard;
    }
  }
  return is_void;
}

class Comparison {
 public:
  Comparison(const Trace& bare, const Trace& shimmed, const Options& options)
      : bare_(bare),
        shimmed_(shimmed),
        options_(options),
        void_queries_(find_void_queries(bare, shimmed)),
        strict_(bare, options.threads_race ? Reading::kOwn : Reading::kStrict, void_queries_),
        kept_(shimmed, Reading::kLiberal),
        counterpart_(bare.operations.size(), kNone),
        original_(shimmed.operations.size(), kNone) {}

  Report run() {
    report_.operations = bare_.operations.size();
    report_.waits = bare_.waits.size();
    match_operations();
    compare_order();
    compare_waits();
    find_added_order();
    return std::move(report_);
  }

 private:
  void add(Finding finding, const std::string& line) {
    const auto kind = static_cast<std::size_t>(finding);
    if (++report_.counts[kind] <= kMostLines) report_.lines[kind].push_back(line);
  }

  // Operations that did not end in bare, or were skipped after a fault, need not be there.
  void match_operations() {
    const Index index = index_of(shimmed_);
    for (OperationIndex i = 0; i < bare_.operations.size(); ++i) {
      const Operation& operation = bare_.operations[i];
      if (!operation.has_identity) continue;
      const auto found = index.find({operation.stream, operation.sequence});
      if (found != index.end()) {
        original_[found->second] = i;
        match(i, found->second);
      } else if (operation.outcome == Outcome::kDone) {
        add(Finding::kMissing, describe(operation));
      }
    }
    for (OperationIndex i = 0; i < shimmed_.operations.size(); ++i) {
      const Operation& operation = shimmed_.operations[i];
      if (!operation.has_identity || original_[i] != kNone) continue;
      if (operation.outcome != Outcome::kSkipped) add(Finding::kExtra, describe(operation));
    }
  }

  void match(OperationIndex i, OperationIndex other) {
    const Operation& operation = bare_.operations[i];
    const Operation& counterpart = shimmed_.operations[other];
    if (operation.text != counterpart.text) {
      add(Finding::kChanged, describe(operation) + " became " + describe(counterpart));
      return;
    }
    counterpart_[i] = other;
    const bool both_done =
        operation.outcome == Outcome::kDone && counterpart.outcome == Outcome::kDone;
    if (both_done) match_steps(operation, counterpart);
    if (both_done && operation.access_text != counterpart.access_text) {
      add(Finding::kAccesses, describe(operation) + ": " + std::string(operation.access_text) +
                                  " became " + std::string(counterpart.access_text));
    }
  }

  // The first step that is not the same.
  void match_steps(const Operation& operation, const Operation& counterpart) {
    const auto& steps = operation.steps;
    const auto& others = counterpart.steps;
    const auto [ours, theirs] =
        std::mismatch(steps.begin(), steps.end(), others.begin(), others.end());
    if (ours == steps.end() && theirs == others.end()) return;
    const auto text = [](const auto& all, auto step) {
      return step == all.end() ? std::string("nothing")
                               : '[' + std::string(step->substr(0, kLongestText)) + ']';
    };
    add(Finding::kChanged, describe(operation) + " step " +
                               std::to_string(ours - steps.begin() + 1) + " " + text(steps, ours) +
                               " became " + text(others, theirs));
  }

  void compare_order() {
    // The last second operation that each first one was compared with: pairs come again and again.
    std::vector<OperationIndex> checked(bare_.operations.size(), kNone), raced = checked;
    const auto check = [&](const Conflict& conflict) {
      if (std::exchange(checked[conflict.first], conflict.second) == conflict.second) return;
      const OperationIndex first = counterpart_[conflict.first];
      const OperationIndex second = counterpart_[conflict.second];
      if (first == kNone || second == kNone || kept_.is_before(first, second)) return;
      add(Finding::kLostOrder, describe_pair(conflict));
    };
    const auto note_race = [&](const Conflict& conflict) {
      if (std::exchange(raced[conflict.first], conflict.second) == conflict.second) return;
      add(Finding::kRace, describe_pair(conflict));
    };
    find_conflicts(bare_, strict_, check, note_race);
  }

  std::string describe_pair(const Conflict& conflict) const {
    return describe(bare_.operations[conflict.first]) + " and " +
           describe(bare_.operations[conflict.second]) + " on allocation " +
           std::to_string(conflict.allocation) + " byte " +
           std::to_string(conflict.granule * kTraceGranule);
  }

  // A call of the bare run and its counterpart.
  struct Pair {
    std::uint32_t wait, other;
    CallSite site;
    std::size_t call;
  };

  void compare_waits() {
    const CallSites bare = call_sites_of(bare_);
    CallSites shimmed = call_sites_of(shimmed_);
    std::vector<Pair> pairs;
    for (const auto& [site, waits] : bare) {
      const std::vector<Group> others = std::move(shimmed[site]);
      shimmed.erase(site);
      const std::size_t both = std::min(waits.size(), others.size());
      for (std::size_t i = 0; i < both; ++i) {
        pairs.push_back({waits[i].back(), others[i].back(), site, i});
      }
      if (!site.is_query) compare_counts(site, waits.size(), others.size());
    }
    for (const auto& [site, waits] : shimmed) {
      if (!site.is_query) compare_counts(site, 0, waits.size());
    }
    // In the order of the program: later calls are not asked about what an earlier one saw.
    std::sort(pairs.begin(), pairs.end(),
              [](const Pair& one, const Pair& other) { return one.wait < other.wait; });
    for (const Pair& pair : pairs) {
      if (bare_.waits[pair.wait].is_over && !void_queries_[pair.wait]) {
        compare_seen(pair);
      } else {
        for (const OperationIndex goal : bare_.waits[pair.wait].goals) check_seen(goal, pair);
      }
    }
  }

  void compare_counts(const CallSite& site, std::size_t bare, std::size_t shimmed) {
    if (bare == shimmed) return;
    add(Finding::kLostObservation, describe(site, std::min(bare, shimmed)) + ": " +
                                       std::to_string(bare) + " calls bare, " +
                                       std::to_string(shimmed) + " shimmed");
  }

  void check_seen(OperationIndex operation, const Pair& pair) {
    const bool is_own = bare_.operations[operation].thread == bare_.waits[pair.wait].thread;
    if (options_.threads_race && !is_own) return;
    const OperationIndex counterpart = counterpart_[operation];
    if (counterpart == kNone || kept_.covers(kept_.seen(pair.other), counterpart)) return;
    add(Finding::kLostObservation,
        describe(pair.site, pair.call) + " came before " + describe(bare_.operations[operation]));
  }

  // Only what the thread had not seen in an earlier call: that was compared then.
  void compare_seen(const Pair& pair) {
    const Clock& seen = strict_.seen(pair.wait);
    Clock& before = compared_[pair.site.thread];
    if (before.size() < seen.size()) before.resize(seen.size());
    for (std::uint32_t chain = 0; chain < seen.size(); ++chain) {
      for (; before[chain] < seen[chain]; ++before[chain]) {
        check_seen(strict_.chains()[chain][before[chain]], pair);
      }
    }
  }

  // The edges of the shimmed run; those of nodes without identity are handed on.
  void find_added_order() {
    const Order liberal(bare_, Reading::kLiberal);
    std::unordered_map<OperationIndex, std::vector<OperationIndex>> passed_on;
    for (OperationIndex i = 0; i < shimmed_.operations.size(); ++i) {
      std::vector<OperationIndex> before;  // in bare
      for (const OperationIndex after : shimmed_.operations[i].after) {
        if (original_[after] != kNone) {
          before.push_back(original_[after]);
        } else if (const auto found = passed_on.find(after); found != passed_on.end()) {
          before.insert(before.end(), found->second.begin(), found->second.end());
        }
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      if (original_[i] == kNone) {
        passed_on.emplace(i, std::move(before));
        continue;
      }
      for (const OperationIndex first : before) {
        if (liberal.is_before(first, original_[i])) continue;
        add(Finding::kAddedOrder,
            describe(bare_.operations[first]) + " and " + describe(bare_.operations[original_[i]]));
      }
    }
  }

  const Trace& bare_;
  const Trace& shimmed_;
  const Options options_;
  const std::vector<bool> void_queries_;  // of bare
  const Order strict_, kept_;
  std::vector<OperationIndex> counterpart_;  // by bare operation: the equal one in shimmed
  std::vector<OperationIndex> original_;     // by shimmed operation: that of the same identity
  std::unordered_map<std::size_t, Clock> compared_;  // by thread, in clocks of `strict_`
  Report report_;
};

}  // namespace

bool Report::has_bugs() const {
  for (std::size_t kind = 0; kind < kFindings; ++kind) {
    if (is_bug(static_cast<Finding>(kind)) && counts[kind] > 0) return true;
  }
  return false;
}

std::string Report::summary() const {
  const auto part = [this](Finding finding, const char* name) {
    return std::to_string(count(finding)) + ' ' + name;
  };
  std::string text =
      std::to_string(operations) + " operations, " + std::to_string(waits) + " waits: ";
  if (has_bugs()) {
    text += part(Finding::kMissing, "missing, ") + part(Finding::kExtra, "extra, ") +
            part(Finding::kChanged, "changed, ") + part(Finding::kLostOrder, "lost orders, ") +
            part(Finding::kLostObservation, "lost observations");
  } else {
    text += "equal";
  }
  return text + "; " + part(Finding::kAddedOrder, "added orders, ") +
         part(Finding::kRace, "races, ") + part(Finding::kAccesses, "with other accesses");
}

Report compare(const Trace& bare, const Trace& shimmed, const Options& options) {
  return Comparison(bare, shimmed, options).run();
}

}  // namespace softgpu::compare
