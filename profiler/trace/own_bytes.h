// SPDX-License-Identifier: Apache-2.0
// A reader of bytes in this process's memory that cannot leave its bounds. Any thread, signal
// handlers included.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

// A run of bytes. After the end it yields zeros and is no longer good.
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
    if (is_at_end()) {
      is_good_ = false;
      return 0;
    }
    return *reinterpret_cast<const std::uint8_t*>(at_++);
  }
  template <typename Value>
  Value value() noexcept {
    Value value{};
    if (!is_good_ || at_ >= end_ || end_ - at_ < sizeof value) {
      is_good_ = false;
      return value;
    }
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
    at_ += sizeof value;
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
  std::uintptr_t at_, end_;
  bool is_good_ = true;
};

}  // namespace profiler
