// SPDX-License-Identifier: Apache-2.0
// The tracks of the trace: the process, its threads, device contexts and their streams. Each is
// described once, before the first event on it. One thread at a time.
#pragma once

#include "profiler/trace/id_table.h"
#include "profiler/trace/records.h"
#include "profiler/trace/trace_file.h"
#include "profiler/trace/trace_packet.h"

namespace profiler {

// Beyond these, events are dropped and counted.
inline constexpr std::size_t kMaxTraceThreads = 8192;
inline constexpr std::size_t kMaxTraceContexts = 4096;
inline constexpr std::size_t kMaxTraceStreams = 65536;

class TraceTracks {
 public:
  [[nodiscard]] bool start(TraceFile* file, ProtobufWriter* out) noexcept;
  void release() noexcept;

  // Describes the process (with the defaults of all later packets) and the track of the header.
  bool write_process(std::uint64_t sample_hz) noexcept;

  // What identifies the track in events; 0: no room for another.
  std::uint64_t of_header() const noexcept { return uuid(Kind::kHeader, 0); }
  std::uint64_t of_thread(std::uint32_t tid) noexcept;
  std::uint64_t of_stream(const TraceStream& stream) noexcept;

  // The end of the last kernel on the stream, which has a track.
  std::uint64_t& stream_end_ns(const TraceStream& stream) noexcept {
    return stream_ends_[streams_.find(stream.number) - 1];
  }

  // Threads name themselves after they began: looks again, rarer and rarer unless `is_forced`.
  void update_names(bool is_forced) noexcept;

  int pid() const noexcept { return pid_; }
  // Differs between processes whose traces are opened together.
  std::uint64_t flow(std::uint64_t number) const noexcept { return seed_ << 48 | number; }

 private:
  enum class Kind : std::uint64_t { kProcess, kHeader, kThread, kContext, kStream };

  static constexpr std::size_t kNameBytes = 16;  // of the kernel's names of threads
  struct Thread {
    std::uint32_t tid;
    char name[kNameBytes];
  };

  std::uint64_t uuid(Kind kind, std::uint64_t number) const noexcept {
    return seed_ << 32 | static_cast<std::uint64_t>(kind) << 28 | number;
  }
  bool append() noexcept { return file_->append(out_->data(), out_->size()); }
  bool write_thread(std::size_t number, const Thread& thread) noexcept;
  std::uint64_t of_context(std::uint32_t number) noexcept;
  bool write_context(std::uint64_t track, std::uint32_t number) noexcept;
  bool write_stream(std::uint64_t track, std::uint64_t context, const TraceStream& stream) noexcept;

  TraceFile* file_ = nullptr;
  ProtobufWriter* out_ = nullptr;
  int pid_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t looks_ = 0;
  IdTable<kMaxTraceThreads> threads_;
  IdTable<kMaxTraceContexts> contexts_;
  IdTable<kMaxTraceStreams> streams_;
  MappedArray<Thread, kMaxTraceThreads> thread_names_;
  MappedArray<std::uint64_t, kMaxTraceStreams> stream_ends_;
};

}  // namespace profiler
