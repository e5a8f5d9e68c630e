// SPDX-License-Identifier: Apache-2.0
// Call stacks as the trace has them: each distinct one is written once, after its frames and the
// modules they lie in, and known by a number from then on. Full tables say so in the trace. One
// thread at a time.
#pragma once

#include "profiler/module_list.h"
#include "profiler/trace/id_table.h"
#include "profiler/trace/records.h"
#include "profiler/trace/trace_file.h"
#include "profiler/trace/trace_packet.h"

namespace profiler {

// A large program has some ten thousand places that it is met at; the tables take memory as they
// fill, 6 MB at most.
inline constexpr std::size_t kMaxTraceFrames = 65536;
inline constexpr std::size_t kMaxTraceStacks = 65536;

// Python code is a module of its own.
inline constexpr std::uint16_t kPythonModule = kNoModule - 1;

struct TraceFrame {
  std::uintptr_t address;  // in the process, inside the instruction; of Python code its PythonPlace
  std::uint16_t module;    // kNoModule: code made at run time
};

// As the trace writes the path of a module.
const char* trace_path(std::uint16_t module) noexcept;

// In its file; that of code in no module is the address itself, that of Python code its number.
std::uintptr_t file_address(const TraceFrame& frame) noexcept;

class TraceStacks {
 public:
  [[nodiscard]] bool start(TraceFile* file, ProtobufWriter* out) noexcept;
  void release() noexcept;

  // The number of the stack in the trace; 0: none, or the trace is full. `is_first_exact`: the
  // first address is not that of a return.
  std::uint64_t find(const TraceStack& stack, bool is_first_exact) noexcept;

  // Frames that are in the trace; a number once given stays.
  std::size_t frame_count() const noexcept { return frame_count_; }
  const TraceFrame& frame(std::size_t index) const noexcept { return frames_[index]; }

 private:
  struct Recent {
    std::uint64_t key;
    std::uint64_t iid;
  };
  static constexpr std::size_t kRecent = 8192;
  // The places of what found the tables full.
  static constexpr std::uint64_t kFullFrame = kMaxTraceFrames + 1;
  static constexpr std::uint64_t kFullStack = kMaxTraceStacks + 1;

  bool write_opening() noexcept;
  std::uint64_t write(const std::uintptr_t* returns, std::size_t depth,
                      const PythonPlace* python) noexcept;
  std::uint64_t write_frame(const TraceFrame& frame) noexcept;
  bool write_module(std::uint16_t module) noexcept;

  TraceFile* file_ = nullptr;
  ProtobufWriter* out_ = nullptr;
  IdTable<kMaxTraceFrames> frame_ids_;
  IdTable<kMaxTraceStacks> stack_ids_;
  MappedArray<TraceFrame, kMaxTraceFrames> frames_;
  MappedArray<Recent, kRecent> recent_;
  std::size_t frame_count_ = 0;
  // By number; the last two are those of Python code and of code in no module.
  bool is_module_written_[kMaxModules + 2] = {};
};

}  // namespace profiler
