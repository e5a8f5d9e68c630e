// SPDX-License-Identifier: Apache-2.0
// Names for what a trace holds.
#include "tools/cli/trace.h"

#include <algorithm>
#include <cinttypes>

#include "profiler/module_list.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

// Of a stack with what was inlined; deeper ones lose their outermost.
constexpr std::size_t kMostNames = 512;

std::string base_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// As in profiler/site_report: cudart linked into the program.
bool is_static_runtime(std::string_view function) {
  const bool is_public = function.size() > 4 && function.starts_with("cuda") &&
                         function[4] >= 'A' && function[4] <= 'Z';
  return is_public || function.starts_with("__cudart") || function.starts_with("libcudart_static");
}

bool is_driver_side(const Trace& trace, const TraceFrame& frame) {
  const std::string module = module_name(trace, frame);
  if (module.starts_with("libcajeta_xpu") || profiler::is_cuda_library(module.c_str())) return true;
  return std::any_of(frame.lines.begin(), frame.lines.end(),
                     [](const TraceLine& line) { return is_static_runtime(line.function); });
}

}  // namespace

std::string module_name(const Trace& trace, const TraceFrame& frame) {
  return frame.module == kNone ? "" : base_of(trace.modules[frame.module]);
}

std::string short_name(const std::string& function) {
  std::size_t at = function.rfind(')');
  // In an argument of a template.
  if (at != function.npos && function.find('>', at) != function.npos) at = function.npos;
  for (std::size_t depth = 0; at != function.npos; at = at > 0 ? at - 1 : function.npos) {
    if (function[at] == ')') ++depth;
    if (function[at] == '(' && --depth == 0) break;
  }
  std::string name = function.substr(0, at);
  if (name.empty() || name.ends_with("operator")) name = function;
  constexpr std::string_view kNoise = "(anonymous namespace)::";
  for (at = 0; (at = name.find(kNoise, at)) != name.npos;) name.erase(at, kNoise.size());
  return name;
}

std::string frame_name(const Trace& trace, const TraceFrame& frame, std::size_t line) {
  if (line < frame.lines.size() && !frame.lines[line].function.empty()) {
    return frame.lines[line].function;
  }
  if (frame.module == kNone) return format("code at 0x%" PRIx64, frame.offset);
  return module_name(trace, frame) + format("+0x%" PRIx64, frame.offset);
}

std::vector<std::string> stack_names(const Trace& trace, TraceIndex stack) {
  std::vector<std::string> names;
  if (stack == kNone) return names;
  for (const TraceIndex number : trace.stacks[stack]) {
    const TraceFrame& frame = trace.frames[number];
    for (std::size_t line = 0; line < std::max<std::size_t>(frame.lines.size(), 1); ++line) {
      if (names.size() == kMostNames) break;
      names.push_back(frame_name(trace, frame, line));
    }
  }
  std::reverse(names.begin(), names.end());
  return names;
}

std::string place_of(const Trace& trace, TraceIndex stack) {
  if (stack == kNone || trace.stacks[stack].empty()) return "";
  for (const TraceIndex number : trace.stacks[stack]) {
    const TraceFrame& frame = trace.frames[number];
    if (is_driver_side(trace, frame)) continue;
    const std::string name = short_name(frame_name(trace, frame, 0));
    if (frame.lines.empty() || frame.lines[0].file.empty()) return name;
    const TraceLine& line = frame.lines[0];
    return base_of(line.file) + ":" + (line.line > 0 ? std::to_string(line.line) : "?") + " " +
           name;
  }
  return "outside the stack that was kept";
}

std::string thread_name(const Trace& trace, TraceIndex thread) {
  if (thread == kNone) return "no thread";
  const TraceThread& found = trace.threads[thread];
  const std::string tid = std::to_string(found.tid);
  return found.name.empty() ? "thread " + tid : found.name + " (" + tid + ")";
}

}  // namespace cli
