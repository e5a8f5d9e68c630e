// SPDX-License-Identifier: Apache-2.0
// Appends whole packets to the trace, through a buffer, and keeps its size below a bound: once a
// packet did not fit, none but those of the reserve do. The first failure to write ends it. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/trace/mapped_array.h"
#include "profiler/trace/trace_output.h"

namespace profiler {

class TraceFile {
 public:
  // False: out of memory.
  [[nodiscard]] bool start(TraceOutput* output, std::uint64_t most_bytes) noexcept;
  // The memory; the output stays open.
  void release() noexcept { buffer_.unmap(); }

  // False: left out, and counted.
  bool append(const void* packets, std::size_t size) noexcept;
  // Sets room aside that append() does not touch; never more than half of all.
  void reserve(std::size_t size) noexcept {
    reserved_ += size;
    if (reserved_ > most_bytes_ / 2) reserved_ = most_bytes_ / 2;
  }
  // Into the reserve, and beyond it if there is room.
  bool append_reserved(const void* packets, std::size_t size) noexcept;
  // Whether append() takes nothing any more.
  bool is_closed() const noexcept { return is_full_ || error_ != 0; }

  // Writes what is buffered.
  void send() noexcept;
  // Writes over the beginning of the file, which append() was given at the same size: also when
  // what comes after it could not be written. Where that cannot be, the last one is appended. False
  // (and errno): something could not be written.
  [[nodiscard]] bool rewrite(const void* first, std::size_t size, bool is_last) noexcept;

  // Counts what was not even handed over.
  void drop(std::size_t size) noexcept { bytes_dropped_ += size; }
  std::uint64_t bytes_dropped() const noexcept { return bytes_dropped_; }

 private:
  static constexpr std::size_t kBufferBytes = 256 * 1024;

  void put(const char* bytes, std::size_t size) noexcept;

  TraceOutput* output_ = nullptr;
  int error_ = 0;
  bool is_full_ = false;
  std::uint64_t most_bytes_ = 0;
  std::uint64_t bytes_ = 0;  // appended
  std::uint64_t reserved_ = 0;
  std::uint64_t bytes_dropped_ = 0;
  std::size_t buffered_ = 0;
  MappedArray<char, kBufferBytes> buffer_;
};

}  // namespace profiler
