// SPDX-License-Identifier: Apache-2.0
// Writes a trace in Perfetto's format: a sequence of TracePacket messages, each complete in itself,
// so that a file that ends anywhere is readable up to its last whole packet. docs/trace-format.md
// says what is in them. One thread at a time (the drain of trace.h); it makes system calls and
// reads files, and nothing of the program waits for it.
#pragma once

#include "profiler/trace/id_table.h"
#include "profiler/trace/records.h"
#include "profiler/trace/trace_file.h"
#include "profiler/trace/trace_packet.h"
#include "profiler/trace/trace_stacks.h"
#include "profiler/trace/trace_symbols.h"
#include "profiler/trace/trace_tracks.h"

namespace profiler {

class TraceWriter {
 public:
  // `most_bytes`: packets that would pass it are dropped and counted in the header. False when out
  // of memory, or when not even the opening fits. The output, which is open, stays so.
  [[nodiscard]] bool start(TraceOutput* output, std::uint64_t most_bytes, const char* command,
                           const TraceHeader& header) noexcept;
  bool is_started() const noexcept { return is_started_; }
  // The memory; the output stays open.
  void release() noexcept;

  void add(const HostSpan& span) noexcept;
  void add(const HostSample& sample) noexcept;
  void add(const TimedLaunch& launch) noexcept;

  // Rewrites the first record, where the output can (the last one of a complete trace is written
  // behind it where not), and sends on what is buffered. `bytes_dropped` of the argument is
  // ignored: the writer knows. False when the file could not be written: the writer stops (errno
  // says why).
  [[nodiscard]] bool flush(const TraceHeader& header) noexcept;
  // Names for every address that was written, from symbols and debug information: files are read.
  // Call it before the last flush, never in a signal handler.
  void add_symbols() noexcept;

 private:
  // The most that one packet takes: symbols of a module, or the header with its command.
  static constexpr std::size_t kPacketBytes = 32 * 1024;
  static constexpr std::size_t kHeaderBytes = 8 * 1024;
  static constexpr std::size_t kCommandBytes = 2048;
  static constexpr std::size_t kMaxKernels = 8192;

  struct Slice {
    std::uint64_t track;
    std::uint64_t category;
    std::uint64_t name;
    std::uint64_t start_ns, end_ns;
  };
  struct Kernel {
    std::uint64_t name;     // of events
    std::uint64_t text;     // the same, of annotations
    std::uint64_t mangled;  // of annotations; 0: the same again
  };

  bool write_opening(const TraceHeader& header) noexcept;
  void encode_header(const TraceHeader& header, ProtobufWriter* out) const noexcept;
  bool write_clocks() noexcept;
  bool write_names() noexcept;
  std::uint64_t entry_name(runtime::EntryId entry) noexcept;
  Kernel kernel(const char* mangled) noexcept;
  bool write_kernel(const Kernel& kernel, const char* mangled) noexcept;
  void encode_fields(const Slice& slice, std::uint64_t type) noexcept;
  void encode_end(const Slice& slice) noexcept;
  void encode_launch(const TimedLaunch& launch, const Slice& slice, const Kernel& kernel,
                     std::uint64_t stack) noexcept;
  void encode_kernel(const TimedLaunch& launch, const Slice& slice, const Kernel& kernel) noexcept;
  bool append(bool has_tracks) noexcept;

  bool is_started_ = false;
  TraceFile file_;
  MappedArray<char, kPacketBytes> packet_;
  MappedArray<char, kHeaderBytes> header_;
  ProtobufWriter out_{nullptr, 0};
  TraceTracks tracks_;
  TraceStacks stacks_;
  TraceSymbols symbols_;
  IdTable<kMaxKernels> kernels_;
  MappedArray<bool, kMaxKernels> is_mangled_;
  bool is_entry_written_[runtime::kEntryCount] = {};
  std::uint64_t samples_ = 0;
  std::uint64_t start_ns_ = 0;
  char command_[kCommandBytes] = "";
};

}  // namespace profiler
