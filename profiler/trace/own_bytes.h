// SPDX-License-Identifier: Apache-2.0
// A reader of this process's memory that cannot fault and cannot leave its bounds. Any thread,
// signal handlers included; errno may change.
#pragma once

#include <cstring>

#include "profiler/trace/own_memory.h"

namespace profiler {

// A run of bytes, copied piece by piece. After the end, or where memory cannot be read, it yields
// zeros and is no longer good.
class OwnBytes {
 public:
  OwnBytes(std::uintptr_t from, std::uintptr_t end) noexcept : at_(from), end_(end) {}

  bool is_good() const noexcept { return is_good_; }
  bool is_at_end() const noexcept { return !is_good_ || at_ >= end_; }
  std::uintptr_t at() const noexcept { return at_; }
  std::uintptr_t end() const noexcept { return end_; }
  void limit(std::uintptr_t end) noexcept {
    if (end < at_ || end > end_) is_good_ = false;
    if (is_good_) end_ = end;
  }
  void fail() noexcept { is_good_ = false; }
  void skip(std::uint64_t bytes) noexcept {
    if (bytes > end_ - at_) is_good_ = false;
    if (is_good_) at_ += bytes;
  }

  std::uint8_t byte() noexcept {
    if (is_at_end() || (at_ - buffer_at_ >= buffered_ && !fill())) {
      is_good_ = false;
      return 0;
    }
    return buffer_[at_++ - buffer_at_];
  }
  template <typename Value>
  Value value() noexcept {
    std::uint8_t bytes[sizeof(Value)];
    for (std::uint8_t& each : bytes) each = byte();
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint64_t unsigned_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
    is_good_ = false;
    return 0;
  }
  std::int64_t signed_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      shift += 7;
      if ((next & 0x80) != 0) continue;
      if ((next & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
    is_good_ = false;
    return 0;
  }

 private:
  bool fill() noexcept {
    const std::uintptr_t left = end_ - at_;
    buffer_at_ = at_;
    buffered_ = copy_own_memory(buffer_, at_, left < sizeof buffer_ ? left : sizeof buffer_);
    return buffered_ != 0;
  }

  std::uintptr_t at_, end_;
  std::uintptr_t buffer_at_ = 0;
  std::size_t buffered_ = 0;
  bool is_good_ = true;
  std::uint8_t buffer_[256];  // most descriptions fit, and a handler's stack may be small
};

}  // namespace profiler
