// SPDX-License-Identifier: Apache-2.0
// A profiler's trace in memory: what one process did, host and device, on one clock. Plain data;
// knows no format. Times are nanoseconds of the traced machine's CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace cli {

// Positions in the vectors of a Trace; kNone: there is none.
using TraceIndex = std::uint32_t;
inline constexpr TraceIndex kNone = std::numeric_limits<TraceIndex>::max();

// The first record of the file.
struct TraceFacts {
  std::string version;  // of the library
  std::string command;
  std::uint64_t pid = 0;
  std::uint64_t sample_hz = 0;             // 0: host sampling was off
  std::uint64_t ring_samples = 0;          // per thread
  std::uint64_t device_ring_launches = 0;  // 0: device timing was off
  std::uint64_t samples_kept = 0, samples_dropped = 0;
  std::uint64_t launches_kept = 0, launches_dropped = 0, launches_untimed = 0;
  std::uint64_t spans_kept = 0, spans_dropped = 0;
  std::uint64_t bytes_dropped = 0;
  std::uint64_t own_cost_ns = 0;
  std::string python;         // version of the interpreter; empty: none was found
  std::string python_unread;  // why launches have no Python lines; empty: they have
  bool is_complete = false;   // false: the process was killed, or still runs
};

struct TraceThread {
  std::uint64_t tid = 0;
  std::string name;
};

struct TraceStream {
  std::string name;  // "stream 1 (legacy)", numbers are unique in the process
  std::string context;
};

// A line of source at an address; those inlined into it come first.
struct TraceLine {
  std::string function;
  std::string file;
  std::uint64_t line = 0;  // 0: not known
};

struct TraceFrame {
  TraceIndex module = kNone;     // none: code in no file
  std::uint64_t offset = 0;      // in the file; without a file the address
  std::vector<TraceLine> lines;  // empty: without symbols
};

using TraceStack = std::vector<TraceIndex>;  // frames, innermost first

enum class SpanKind { kCall, kBlocked, kLaunch };

// A driver call of a host thread.
struct TraceSpan {
  SpanKind kind = SpanKind::kCall;
  TraceIndex thread = kNone;
  TraceIndex name = kNone;
  TraceIndex stack = kNone;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t bytes = 0;
};

// A kernel on its stream.
struct TraceKernel {
  TraceIndex stream = kNone;
  TraceIndex name = kNone;
  TraceIndex launch = kNone;               // a span; none when that was dropped
  TraceIndex grid = kNone, block = kNone;  // names: "64x1x1"
  std::uint64_t shared_bytes = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
};

struct TraceSample {
  TraceIndex thread = kNone;
  TraceIndex stack = kNone;
  std::uint64_t time_ns = 0;
  std::uint64_t weight = 1;  // timer periods it stands for
};

struct Trace {
  std::string file;  // where it was read from
  TraceFacts facts;
  // What is wrong with the file and still lets it be read: one line each.
  std::vector<std::string> remarks;
  std::vector<std::string> names;
  std::vector<TraceThread> threads;
  std::vector<TraceStream> streams;
  std::vector<std::string> modules;  // paths
  std::vector<TraceFrame> frames;
  std::vector<TraceStack> stacks;
  // In the order of the file.
  std::vector<TraceSpan> spans;
  std::vector<TraceKernel> kernels;
  std::vector<TraceSample> samples;
};

// The last part of the path; empty without a file.
std::string module_name(const Trace& trace, const TraceFrame& frame);
// "(anonymous namespace)::solve(int) const" -> "solve"
std::string short_name(const std::string& function);
// "solve", "libx.so+0x12" or "code at 0x12".
std::string frame_name(const Trace& trace, const TraceFrame& frame, std::size_t line);
// Outermost first, with what was inlined.
std::vector<std::string> stack_names(const Trace& trace, TraceIndex stack);
// The Python line, else the nearest frame outside CUDA's libraries and ours: "solver.cpp:12 step",
// "train.py:3 step by model.cpp:7 run". Empty without a stack.
std::string place_of(const Trace& trace, TraceIndex stack);
// "main (41)" or "thread 41".
std::string thread_name(const Trace& trace, TraceIndex thread);

}  // namespace cli
