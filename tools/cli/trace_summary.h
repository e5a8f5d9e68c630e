// SPDX-License-Identifier: Apache-2.0
// What a trace adds up to: kernels, device streams, waits of the host, functions of the host. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/table.h"
#include "tools/cli/trace.h"

namespace cli {

struct KernelSum {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  // Between the end of what ran before on the stream and the start: the first of a stream has none.
  std::uint64_t gaps = 0;
  std::uint64_t gap_ns = 0;
  std::string place;  // that launched it most; empty: no launch has a stack
  std::uint64_t place_count = 0;
};

struct StreamSum {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t span_ns = 0;  // from the first start to the last end
  std::uint64_t busy_ns = 0;
  std::uint64_t gaps = 0;
  std::uint64_t max_gap_ns = 0;

  std::uint64_t idle_ns() const noexcept { return span_ns - busy_ns; }
};

struct BlockedSum {
  std::string entry;
  std::string thread;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
};

// A function's name where there is none: only the file can be told, as addresses are of
// instructions.
inline constexpr const char* kNoSymbols = "without symbols";

// CPU time by samples.
struct FunctionSum {
  std::string name;
  std::string module;
  std::uint64_t self = 0;   // timer periods in the function itself
  std::uint64_t total = 0;  // and in what it called
};

struct TraceSummary {
  std::uint64_t wall_ns = 0;     // from the first record to the last
  std::uint64_t device_ns = 0;   // of all kernels, however they overlap
  std::uint64_t blocked_ns = 0;  // of all threads
  std::uint64_t blocked_calls = 0;
  std::uint64_t periods = 0;  // of all samples
  // Largest first.
  std::vector<KernelSum> kernels;
  std::vector<StreamSum> streams;
  std::vector<BlockedSum> blocked;
  std::vector<FunctionSum> functions;
};

TraceSummary summary_of(const Trace& trace);

// CPU time of so many timer periods.
double cpu_ns(const Trace& trace, std::uint64_t periods) noexcept;

// Its forms. `top`: rows of a table, the rest is one row; 0: as many as in a report.
Page page_of(const Trace& trace, const TraceSummary& summary, std::size_t top);
std::string csv_of(const Trace& trace, const TraceSummary& summary);

}  // namespace cli
