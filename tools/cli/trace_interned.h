// SPDX-License-Identifier: Apache-2.0
// What the packets of a trace name by number: names, stacks and their frames, and the symbols of
// those. Views point into the file, which outlives this. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/cli/trace.h"

namespace cli {

// Interned data of the profiler's packets, and the symbols of the frames in it.
class Interned {
 public:
  explicit Interned(Trace* trace) : trace_(*trace) {}

  void add(std::string_view message);

  std::string_view category(std::uint64_t iid) const { return find(categories_, iid); }
  std::string_view event_name(std::uint64_t iid) const { return find(event_names_, iid); }
  std::string_view annotation_name(std::uint64_t iid) const { return find(annotation_names_, iid); }
  TraceIndex stack(std::uint64_t iid) const { return find(stacks_, iid); }

  // Names for addresses of a file.
  void add_symbols(std::string_view message);
  // At the end: later symbols win, and they come before and after their frames. Returns how many
  // were broken.
  std::size_t hand_out_symbols();

 private:
  using Views = std::unordered_map<std::uint64_t, std::string_view>;
  using Indices = std::unordered_map<std::uint64_t, TraceIndex>;

  static std::string_view find(const Views& views, std::uint64_t iid) {
    const auto found = views.find(iid);
    return found != views.end() ? found->second : std::string_view();
  }
  static TraceIndex find(const Indices& indices, std::uint64_t iid) {
    const auto found = indices.find(iid);
    return found != indices.end() ? found->second : kNone;
  }
  // {iid = 1, text = 2}, the form of most interned data.
  static void keep(std::string_view message, Views* views);

  // A file, in one of its builds.
  TraceIndex build_of(const std::string& path, std::string_view build_id);
  void add_mapping(std::string_view message);
  void add_frame(std::string_view message);
  void add_stack(std::string_view message);
  static std::vector<TraceLine> parse_lines(std::string_view address_symbols);

  Trace& trace_;
  Views categories_, event_names_, annotation_names_, function_names_, build_ids_, paths_;
  Indices mappings_, frames_, stacks_;
  std::map<std::pair<std::string, std::string>, TraceIndex> builds_;  // by path and build-id
  std::vector<TraceIndex> modules_;       // of the builds; kNone: no file
  std::vector<TraceIndex> frame_builds_;  // beside the trace's frames
  std::map<std::pair<TraceIndex, std::uint64_t>, std::string_view> symbols_;
};

}  // namespace cli
