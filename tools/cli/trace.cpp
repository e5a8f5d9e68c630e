// SPDX-License-Identifier: Apache-2.0
// Names for what a trace holds.
#include "tools/cli/trace.h"

#include <algorithm>
#include <cinttypes>

#include "profiler/function_name.h"
#include "profiler/module_list.h"
#include "profiler/python_code.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

// Of a stack with what was inlined; deeper ones lose their outermost.
constexpr std::size_t kMostNames = 512;
// Of the frame that the profiler adds for the Python line.
constexpr std::string_view kPythonModule = "/[python]";

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

bool is_python_frame(const Trace& trace, const TraceFrame& frame) {
  return frame.module != kNone && trace.modules[frame.module] == kPythonModule;
}

bool is_bridge(const Trace& trace, const TraceFrame& frame) {
  return frame.module != kNone && profiler::is_python_bridge(trace.modules[frame.module]);
}

std::string frame_place(const Trace& trace, const TraceFrame& frame) {
  const std::string name = short_name(frame_name(trace, frame, 0));
  if (frame.lines.empty() || frame.lines[0].file.empty()) return name;
  const TraceLine& line = frame.lines[0];
  return base_of(line.file) + ":" + (line.line > 0 ? std::to_string(line.line) : "?") + " " + name;
}

}  // namespace

std::string module_name(const Trace& trace, const TraceFrame& frame) {
  return frame.module == kNone ? "" : base_of(trace.modules[frame.module]);
}

std::string short_name(const std::string& function) {
  std::string name(profiler::without_parameters(function));
  constexpr std::string_view kNoise = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = name.find(kNoise, at)) != name.npos;) {
    name.erase(at, kNoise.size());
  }
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
  const TraceStack& frames = trace.stacks[stack];
  const auto is_python = [&](TraceIndex at) { return is_python_frame(trace, trace.frames[at]); };
  const auto python = std::find_if(frames.begin(), frames.end(), is_python);
  const auto native = std::find_if(frames.begin(), frames.end(), [&](TraceIndex at) {
    return !is_python(at) && !is_driver_side(trace, trace.frames[at]);
  });
  const std::string behind =
      native != frames.end() ? frame_place(trace, trace.frames[*native]) : "";
  if (python == frames.end())
    return native != frames.end() ? behind : "outside the stack that was kept";
  // Code of the program's own between the Python line and the driver is worth telling.
  std::string place = frame_place(trace, trace.frames[*python]);
  const bool is_bridged = native == frames.end() || is_bridge(trace, trace.frames[*native]);
  return is_bridged ? place : place + " by " + behind;
}

std::string thread_name(const Trace& trace, TraceIndex thread) {
  if (thread == kNone) return "no thread";
  const TraceThread& found = trace.threads[thread];
  const std::string tid = std::to_string(found.tid);
  return found.name.empty() ? "thread " + tid : found.name + " (" + tid + ")";
}

}  // namespace cli
