// SPDX-License-Identifier: Apache-2.0
// A report in memory: what docs/report.schema.json describes, in its order. Plain data; knows no
// format. Derived values (medians, the saving) are functions, so that merged reports get them from
// merged sums.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/call_stats.h"

namespace cli {

using profiler::CallTotals;

inline constexpr const char* kSchemaName = "cajeta-xpu.report";
inline constexpr std::array<const char*, 5> kKinds = {"sync", "copy", "query", "alloc", "other"};

struct Process {
  std::uint64_t pid = 0;
  std::string host;
  std::string executable;
  std::string command;
  std::string rank = "0";
  std::string rank_source = "none";
  std::uint64_t wall_ns = 0;
  std::vector<std::pair<std::string, std::string>> settings;
  std::uint64_t estimated_cost_ns = 0;
};

// One of the processes that a merged report holds.
struct Part {
  std::uint64_t pid = 0;
  std::string host;
  std::string executable;
  std::string rank;
  std::uint64_t wall_ns = 0;
  std::uint64_t blocked_ns = 0;
};

struct Counted {
  std::string name;
  std::uint64_t count = 0;
};

struct Launches {
  std::uint64_t queued = 0;
  std::uint64_t replayed = 0;
  std::uint64_t sent_one_by_one = 0;
  std::uint64_t pending = 0;
  CallTotals queueing_calls;
  CallTotals direct_calls;
  CallTotals replayed_batches;    // .amount: launches
  CallTotals one_by_one_batches;  // .amount: launches
  std::uint64_t graphs_built = 0;
  std::uint64_t graphs_launched = 0;
  std::uint64_t nodes_patched = 0;
  std::uint64_t graphs_evicted = 0;
  std::uint64_t held_bytes = 0;
  std::vector<Counted> one_by_one_reasons;

  std::uint64_t total() const noexcept { return replayed + sent_one_by_one + pending; }
  // The rest of sent_one_by_one was never queued.
  std::uint64_t queued_sent_one_by_one() const noexcept {
    return std::min(one_by_one_batches.amount, sent_one_by_one);
  }
  std::uint64_t host_ns() const noexcept {
    return queueing_calls.total_ns + direct_calls.total_ns + replayed_batches.total_ns +
           one_by_one_batches.total_ns;
  }
};

struct Saving {
  std::uint64_t price_ns;
  std::int64_t saved_ns;
};
// What queueing saved the host, at this report's own price of a launch; nothing without a price.
std::optional<Saving> saving_of(const Launches& launches) noexcept;

struct Entry {
  std::string name;
  std::string kind;
  CallTotals totals;  // .amount: bytes
};

struct Module {
  std::string path;
  std::string build_id;
  bool is_unloaded = false;
};

struct Frame {
  std::optional<std::size_t> module;
  std::uint64_t offset = 0;
  std::optional<std::string> function;
  std::optional<std::string> file;
  std::optional<std::uint64_t> line;
  bool is_inlined = false;
};

struct PythonPlace {
  std::string file;
  std::optional<std::uint64_t> line;
  std::string function;
};

struct Site {
  std::string entry;
  std::string kind;
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t flushed = 0;
  std::uint64_t failed = 0;
  std::uint64_t not_ready = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pageable_calls = 0;
  std::string place;
  std::optional<std::string> through;
  std::optional<PythonPlace> python;
  std::vector<Frame> frames;  // innermost first
};

// The interpreter in the process.
struct Python {
  std::string version;
  bool is_read = false;
  std::optional<std::string> why_not;
};

struct Sites {
  std::string walk = "libunwind";
  bool has_symbols = true;
  std::array<std::optional<std::uint64_t>, kKinds.size()> thresholds_ns;  // none: never
  std::uint64_t dropped_calls = 0;
  std::optional<Python> python;
  std::vector<Module> modules;
  std::vector<Site> list;
};

struct Report {
  std::string file;  // where it was read from; no part of the format
  std::string tool_version;
  std::string written_at = "exit";
  Process process;
  std::vector<Part> parts;  // empty: one process
  Launches launches;
  std::uint64_t flushes = 0;
  std::vector<Counted> flushes_by_entry;
  std::vector<Counted> flushes_by_reason;
  std::vector<Entry> entries;
  std::optional<Sites> sites;
  std::vector<Counted> unknown_entries;
  std::uint64_t lost_calls = 0;

  // In calls that observe the device.
  std::uint64_t observed_ns() const noexcept;
  // The same without submitting queued launches, which is work and no waiting.
  std::uint64_t blocked_ns() const noexcept;
  std::uint64_t submitting_ns() const noexcept;
};

// "main.cpp:12 solve in libx.so" -> "main.cpp solve in libx.so": the same place after an edit above
// it.
std::string place_without_line(const std::string& place);

// "solve" or "libx.so+0x12", for a list of frames.
std::string frame_name(const Sites& sites, const Frame& frame);

}  // namespace cli
