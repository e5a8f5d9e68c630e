// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/trace_interned.h"

#include <algorithm>

#include "tools/cli/trace_fields.h"

namespace cli {
namespace {

// Eight times what the profiler keeps of a stack.
constexpr std::size_t kDeepestStack = 256;
constexpr std::size_t kMostLines = 64;  // at one address
constexpr std::string_view kNoFile = "/[anonymous]";

}  // namespace

void Interned::keep(std::string_view message, Views* views) {
  std::uint64_t iid = 0;
  std::string_view text;
  each_field(message, [&](Field& field) {
    field.number(1, &iid);
    field.view(2, &text);
  });
  (*views)[iid] = text;
}

// What is referred to may stand behind what refers to it.
void Interned::add(std::string_view message) {
  each_field(message, [&](Field& field) {
    field.message(1, [&](std::string_view part) { keep(part, &categories_); });
    field.message(2, [&](std::string_view part) { keep(part, &event_names_); });
    field.message(3, [&](std::string_view part) { keep(part, &annotation_names_); });
    field.message(5, [&](std::string_view part) { keep(part, &function_names_); });
    field.message(16, [&](std::string_view part) { keep(part, &build_ids_); });
    field.message(17, [&](std::string_view part) { keep(part, &paths_); });
  });
  each_field(message, [&](Field& field) {
    field.message(19, [&](std::string_view part) { add_mapping(part); });
  });
  each_field(message, [&](Field& field) {
    field.message(6, [&](std::string_view part) { add_frame(part); });
  });
  each_field(message, [&](Field& field) {
    field.message(7, [&](std::string_view part) { add_stack(part); });
  });
}

TraceIndex Interned::build_of(const std::string& path, std::string_view build_id) {
  const auto next = static_cast<TraceIndex>(modules_.size());
  const auto [at, is_new] = builds_.try_emplace({path, cut_name(build_id)}, next);
  if (is_new && path == kNoFile) {
    modules_.push_back(kNone);
  } else if (is_new) {
    modules_.push_back(static_cast<TraceIndex>(trace_.modules.size()));
    trace_.modules.push_back(path);
  }
  return at->second;
}

void Interned::add_mapping(std::string_view message) {
  std::uint64_t iid = 0, build_id = 0, path = 0;
  each_field(message, [&](Field& field) {
    field.number(1, &iid);
    field.number(2, &build_id);
    field.numbers(7, [&](std::uint64_t part) { path = part; });
  });
  mappings_[iid] = build_of("/" + cut_name(find(paths_, path)), find(build_ids_, build_id));
}

void Interned::add_frame(std::string_view message) {
  std::uint64_t iid = 0, function = 0, mapping = 0;
  TraceFrame frame;
  each_field(message, [&](Field& field) {
    field.number(1, &iid);
    field.number(2, &function);
    field.number(3, &mapping);
    field.number(4, &frame.offset);
  });
  const TraceIndex build = find(mappings_, mapping);
  if (build != kNone) frame.module = modules_[build];
  const std::string_view name = find(function_names_, function);
  if (!name.empty()) frame.lines.push_back({cut_name(name), "", 0});
  frames_[iid] = static_cast<TraceIndex>(trace_.frames.size());
  trace_.frames.push_back(std::move(frame));
  frame_builds_.push_back(build);
}

void Interned::add_stack(std::string_view message) {
  std::uint64_t iid = 0;
  TraceStack stack;
  each_field(message, [&](Field& field) {
    field.number(1, &iid);
    field.numbers(2, [&](std::uint64_t number) {
      const TraceIndex frame = find(frames_, number);
      if (frame != kNone) stack.push_back(frame);
    });
  });
  std::reverse(stack.begin(), stack.end());
  if (stack.size() > kDeepestStack) stack.resize(kDeepestStack);
  stack.shrink_to_fit();
  stacks_[iid] = static_cast<TraceIndex>(trace_.stacks.size());
  trace_.stacks.push_back(std::move(stack));
}

void Interned::add_symbols(std::string_view message) {
  std::string_view path, build_id;
  std::vector<std::string_view> addresses;
  each_field(message, [&](Field& field) {
    field.view(1, &path);
    field.view(2, &build_id);
    field.message(3, [&](std::string_view part) { addresses.push_back(part); });
  });
  const TraceIndex build = build_of(cut_name(path), build_id);
  for (const std::string_view part : addresses) {
    std::uint64_t address = 0;
    each_field(part, [&](Field& field) { field.number(1, &address); });
    symbols_[{build, address}] = part;
  }
}

std::vector<TraceLine> Interned::parse_lines(std::string_view address_symbols) {
  std::vector<TraceLine> lines;
  each_field(address_symbols, [&](Field& field) {
    field.message(2, [&](std::string_view part) {
      if (lines.size() == kMostLines) return;
      TraceLine& line = lines.emplace_back();
      each_field(part, [&](Field& inner) {
        inner.text(1, &line.function);
        inner.text(2, &line.file);
        inner.number(3, &line.line);
      });
    });
  });
  return lines;
}

std::size_t Interned::hand_out_symbols() {
  std::size_t broken = 0;
  for (std::size_t i = 0; i < trace_.frames.size(); ++i) {
    TraceFrame& frame = trace_.frames[i];
    const auto found = symbols_.find({frame_builds_[i], frame.offset});
    if (found == symbols_.end()) continue;
    try {
      std::vector<TraceLine> lines = parse_lines(found->second);
      if (!lines.empty()) frame.lines = std::move(lines);
    } catch (const BrokenMessage&) {
      ++broken;
    }
  }
  return broken;
}

}  // namespace cli
