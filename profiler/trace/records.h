// SPDX-License-Identifier: Apache-2.0
// What the trace is made of, as its sources hand it to the writer. Times are nanoseconds of
// CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/python_frame.h"
#include "runtime/entry.h"

namespace profiler {

// Deep enough for an interpreter's frames above a library's.
inline constexpr std::size_t kTraceDepth = 32;

// A driver call of a host thread.
struct HostSpan {
  runtime::EntryId entry;
  std::uint32_t tid;
  std::uint64_t start_ns, end_ns;
  std::uint64_t bytes;  // moved or set; 0: none, or not told
  bool is_blocked;      // the host waited for the device, or may have
};

// Return addresses, innermost first; the first of a sample is the interrupted instruction.
struct TraceStack {
  const std::uintptr_t* addresses;
  std::size_t depth;
  const PythonPlace* python = nullptr;  // the Python code above them; null: none, or not read
};

struct HostSample {
  std::uint32_t tid;
  std::uint32_t weight;  // timer periods it stands for, 1 or more
  std::uint64_t time_ns;
  TraceStack stack;
};

// A device stream as the trace shows it. Numbers are the tracer's own: handles are reused.
struct TraceStream {
  std::uint32_t number;   // from 1, unique in the process
  std::uint32_t context;  // from 1, unique in the process
  std::uint64_t handle;   // as the program knows it; 0 the legacy stream
  bool is_per_thread;     // cudaStreamPerThread, of the thread that launched
};

// A launch whose device times are known.
struct TimedLaunch {
  runtime::EntryId entry;
  std::uint32_t tid;                             // that launched
  std::uint64_t host_start_ns, host_end_ns;      // of the launch call
  std::uint64_t device_start_ns, device_end_ns;  // anchored to the host clock
  const char* kernel;                            // mangled name
  std::uint32_t grid[3], block[3];
  std::uint32_t shared_bytes;
  TraceStream stream;
  TraceStack stack;      // of the launch call
  std::uint64_t number;  // unique in the process, from 1: the flow from the call to the kernel
};

// The first record of the file, kept up to date in place.
struct TraceHeader {
  std::uint64_t sample_hz;             // 0: host sampling is off
  std::uint64_t ring_samples;          // per thread
  std::uint64_t device_ring_launches;  // 0: device timing is off
  std::uint64_t samples_kept, samples_dropped;
  std::uint64_t threads_left_out;  // of the samples, as their stacks have no room for a signal
  std::uint64_t launches_kept, launches_dropped;
  std::uint64_t launches_untimed;  // in captures, or where events could not be had
  std::uint64_t spans_kept, spans_dropped;
  std::uint64_t bytes_dropped;  // that the bound of the file left no room for
  std::uint64_t own_cost_ns;    // host time spent on program threads: handlers, events, stacks
  PythonStatus python;          // whether launches have the Python line
  bool is_complete;             // false: the process was killed
};

}  // namespace profiler
