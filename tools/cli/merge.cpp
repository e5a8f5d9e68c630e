// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/merge.h"

#include <algorithm>
#include <map>

#include "tools/cli/failure.h"

namespace cli {
namespace {

void add(std::uint64_t amount, std::uint64_t* sum) {
  if (__builtin_add_overflow(*sum, amount, sum)) {
    throw Failure("merge: a count passes 2^64; these reports cannot be added up");
  }
}

void add(const CallTotals& from, CallTotals* sum) {
  if (from.calls > 0) {
    sum->min_ns = sum->calls > 0 ? std::min(sum->min_ns, from.min_ns) : from.min_ns;
    sum->max_ns = std::max(sum->max_ns, from.max_ns);
  }
  for (std::uint64_t CallTotals::*count :
       {&CallTotals::calls, &CallTotals::total_ns, &CallTotals::flushed, &CallTotals::failed,
        &CallTotals::not_ready, &CallTotals::amount, &CallTotals::pageable, &CallTotals::locked,
        &CallTotals::unknown, &CallTotals::submit_ns}) {
    add(from.*count, &(sum->*count));
  }
  for (std::size_t i = 0; i < profiler::kBucketCount; ++i) add(from.buckets[i], &sum->buckets[i]);
}

void add(const std::vector<Counted>& from, std::vector<Counted>* sum) {
  for (const Counted& item : from) {
    const auto known = std::find_if(sum->begin(), sum->end(),
                                    [&](const Counted& other) { return other.name == item.name; });
    if (known == sum->end()) {
      sum->push_back(item);
    } else {
      add(item.count, &known->count);
    }
  }
}

void add(const Launches& from, Launches* sum) {
  for (std::uint64_t Launches::*count :
       {&Launches::queued, &Launches::replayed, &Launches::sent_one_by_one, &Launches::pending,
        &Launches::graphs_built, &Launches::graphs_launched, &Launches::nodes_patched,
        &Launches::graphs_evicted, &Launches::held_bytes}) {
    add(from.*count, &(sum->*count));
  }
  add(from.queueing_calls, &sum->queueing_calls);
  add(from.direct_calls, &sum->direct_calls);
  add(from.replayed_batches, &sum->replayed_batches);
  add(from.one_by_one_batches, &sum->one_by_one_batches);
  add(from.one_by_one_reasons, &sum->one_by_one_reasons);
}

void add(const std::vector<Entry>& from, std::vector<Entry>* sum) {
  for (const Entry& entry : from) {
    const auto known = std::find_if(sum->begin(), sum->end(), [&](const Entry& other) {  //
      return other.name == entry.name;
    });
    if (known == sum->end()) {
      sum->push_back(entry);
    } else {
      add(entry.totals, &known->totals);
    }
  }
}

// "a|b" and "b|c" -> "a|b|c": what the processes had, each value once.
std::string joined(const std::string& one, const std::string& other) {
  std::string all = one;
  for (std::size_t start = 0; start <= other.size();) {
    const std::size_t end = std::min(other.find('|', start), other.size());
    const std::string value = other.substr(start, end - start);
    if (("|" + all + "|").find("|" + value + "|") == std::string::npos) all += "|" + value;
    start = end + 1;
  }
  return all;
}

void add(const Process& from, Process* sum) {
  sum->host = joined(sum->host, from.host);
  sum->executable = joined(sum->executable, from.executable);
  if (sum->command != from.command) sum->command = joined(sum->command, from.command);
  add(from.wall_ns, &sum->wall_ns);
  add(from.estimated_cost_ns, &sum->estimated_cost_ns);
  for (const auto& setting : from.settings) {
    const auto known =
        std::find_if(sum->settings.begin(), sum->settings.end(),
                     [&](const auto& other) { return other.first == setting.first; });
    if (known == sum->settings.end()) {
      sum->settings.push_back(setting);
    } else {
      known->second = joined(known->second, setting.second);
    }
  }
}

std::string module_key(const Module& module) {
  return module.build_id.empty() ? module.path : module.build_id;
}

// What makes two stacks the same one, in any process: addresses in files, names elsewhere. Without
// inlined frames, which only a report with symbols has.
std::string site_key(const Sites& sites, const Site& site) {
  std::string key = site.entry;
  for (const Frame& frame : site.frames) {
    if (frame.is_inlined) continue;
    key += '\n';
    if (frame.module) {
      key += module_key(sites.modules[*frame.module]) + "+" + std::to_string(frame.offset);
    } else {
      key += frame.function ? *frame.function : std::to_string(frame.offset);
    }
  }
  if (site.frames.empty()) key += "\n" + site.place;
  if (site.python) {
    key += "\n" + site.python->file + ":" + std::to_string(site.python->line.value_or(0)) + " " +
           site.python->function;
  }
  return key;
}

// Positions of `from` in `sum`, which gets what it lacks.
std::vector<std::size_t> add_modules(const std::vector<Module>& from, std::vector<Module>* sum) {
  std::vector<std::size_t> positions;
  for (const Module& module : from) {
    const auto known = std::find_if(sum->begin(), sum->end(), [&](const Module& other) {
      return module_key(other) == module_key(module);
    });
    positions.push_back(static_cast<std::size_t>(known - sum->begin()));
    if (known == sum->end()) {
      sum->push_back(module);
    } else {
      known->is_unloaded |= module.is_unloaded;
    }
  }
  return positions;
}

void add_counts(const Site& from, Site* sum) {
  for (std::uint64_t Site::*count : {&Site::calls, &Site::total_ns, &Site::flushed, &Site::failed,
                                     &Site::not_ready, &Site::bytes, &Site::pageable_calls}) {
    add(from.*count, &(sum->*count));
  }
  sum->max_ns = std::max(sum->max_ns, from.max_ns);
}

bool has_names(const Site& site) {
  return std::any_of(site.frames.begin(), site.frames.end(),
                     [](const Frame& frame) { return frame.function.has_value(); });
}

class SiteSum {
 public:
  void add_sites(const Sites& from) {
    if (!sum_) {
      sum_.emplace();
      sum_->walk = from.walk;
      sum_->thresholds_ns = from.thresholds_ns;
    }
    // What holds for all of them.
    if (from.walk == "frame pointers") sum_->walk = from.walk;
    sum_->has_symbols &= from.has_symbols;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      auto& threshold = sum_->thresholds_ns[i];
      if (!from.thresholds_ns[i] || !threshold) {
        threshold.reset();
      } else {
        threshold = std::max(*threshold, *from.thresholds_ns[i]);
      }
    }
    add(from.dropped_calls, &sum_->dropped_calls);
    // One whose frames were not read explains the native places.
    if (!sum_->python || (from.python && !from.python->is_read)) sum_->python = from.python;
    const std::vector<std::size_t> positions = add_modules(from.modules, &sum_->modules);
    for (const Site& site : from.list) add_site(from, site, positions);
  }
  std::optional<Sites> take() { return std::move(sum_); }

 private:
  void add_site(const Sites& from, const Site& site, const std::vector<std::size_t>& positions) {
    Site moved = site;
    for (Frame& frame : moved.frames) {
      if (frame.module) frame.module = positions[*frame.module];
    }
    const auto [at, is_new] = known_.try_emplace(site_key(from, site), sum_->list.size());
    if (is_new) {
      sum_->list.push_back(std::move(moved));
      return;
    }
    Site& known = sum_->list[at->second];
    add_counts(site, &known);
    if (has_names(known) || !has_names(moved)) return;
    known.frames = std::move(moved.frames);
    known.place = moved.place;
    known.through = moved.through;
  }

  std::optional<Sites> sum_;
  std::map<std::string, std::size_t> known_;
};

std::vector<Part> parts_of(const Report& report) {
  if (!report.parts.empty()) return report.parts;
  const Process& process = report.process;
  return {{process.pid, process.host, process.executable, process.rank, process.wall_ns,
           report.blocked_ns()}};
}

// The rarer moment wins: it is what a reader must know.
std::string moment_of(const std::string& one, const std::string& other) {
  for (const char* moment : {"signal", "snapshot"}) {
    if (one == moment || other == moment) return moment;
  }
  return "exit";
}

}  // namespace

Report merge(const std::vector<Report>& reports) {
  Report sum = reports.at(0);
  if (reports.size() == 1) return sum;
  sum.parts = parts_of(reports[0]);
  SiteSum sites;
  if (sum.sites) sites.add_sites(*sum.sites);
  for (auto report = reports.begin() + 1; report != reports.end(); ++report) {
    sum.tool_version = joined(sum.tool_version, report->tool_version);
    sum.written_at = moment_of(sum.written_at, report->written_at);
    add(report->process, &sum.process);
    for (Part& part : parts_of(*report)) sum.parts.push_back(std::move(part));
    add(report->launches, &sum.launches);
    add(report->flushes, &sum.flushes);
    add(report->flushes_by_entry, &sum.flushes_by_entry);
    add(report->flushes_by_reason, &sum.flushes_by_reason);
    add(report->entries, &sum.entries);
    if (report->sites) sites.add_sites(*report->sites);
    add(report->unknown_entries, &sum.unknown_entries);
    add(report->lost_calls, &sum.lost_calls);
  }
  sum.sites = sites.take();
  return sum;
}

}  // namespace cli
