// SPDX-License-Identifier: Apache-2.0
// Names for the frames of the trace, as ModuleSymbols packets: at once from symbol tables, so that
// the trace of a killed process has them, and at the end from debug information. Later names hold.
// One thread at a time; files are read.
#pragma once

#include "profiler/trace/mapped_array.h"
#include "profiler/trace/symbol_table.h"
#include "profiler/trace/trace_stacks.h"

namespace profiler {

class TraceSymbols {
 public:
  [[nodiscard]] bool start(TraceFile* file, ProtobufWriter* out) noexcept;
  void release() noexcept;

  // Frames that came since the last call. No malloc.
  void name_new(const TraceStacks& stacks) noexcept;
  // All frames again, with files, lines and inlined calls.
  void name_all(const TraceStacks& stacks) noexcept;

 private:
  static constexpr std::size_t kMostAtOnce = 1024;

  void sort(const TraceStacks& stacks, std::size_t first, std::size_t end) noexcept;
  std::size_t end_of_module(const TraceStacks& stacks, std::size_t first,
                            std::size_t end) const noexcept;
  void name_by_table(const TraceStacks& stacks, std::size_t first, std::size_t end) noexcept;
  void name_python(const TraceStacks& stacks, std::size_t first, std::size_t end) noexcept;
  void name_by_map(const TraceStacks& stacks, std::size_t first, std::size_t end) noexcept;
  void name_by_debug_information(const TraceStacks& stacks, std::size_t first,
                                 std::size_t end) noexcept;
  void write_found(std::uint16_t module, std::size_t count) noexcept;

  TraceFile* file_ = nullptr;
  ProtobufWriter* out_ = nullptr;
  std::size_t named_ = 0;
  // Frames by module and address, while they are named.
  MappedArray<std::uint32_t, kMaxTraceFrames> order_;
  MappedArray<NamedAddress, kMostAtOnce> names_;
};

}  // namespace profiler
