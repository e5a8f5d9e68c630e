// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format in memory that the caller gives. What does not fit is left out, and
// is_cut() says so: such a message must not be used. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace profiler {

class ProtobufWriter {
 public:
  constexpr ProtobufWriter(char* memory, std::size_t capacity) noexcept
      : memory_(memory), capacity_(capacity) {}

  void add(std::uint32_t field, std::uint64_t value) noexcept {
    put_varint(field << 3);
    put_varint(value);
  }
  // Always ten bytes, so that another value can take its place.
  void add_wide(std::uint32_t field, std::uint64_t value) noexcept;
  void add_fixed64(std::uint32_t field, std::uint64_t value) noexcept;
  void add_bytes(std::uint32_t field, const void* bytes, std::size_t size) noexcept;
  // As UTF-8: what is not comes out as "?".
  void add_text(std::uint32_t field, std::string_view text) noexcept;

  const char* data() const noexcept { return memory_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t room() const noexcept { return capacity_ - size_; }
  bool is_cut() const noexcept { return is_cut_; }
  void clear() noexcept {
    size_ = 0;
    is_cut_ = false;
  }

 private:
  friend class ProtobufMessage;

  void put_byte(unsigned byte) noexcept {
    if (size_ == capacity_) {
      is_cut_ = true;
    } else {
      memory_[size_++] = static_cast<char>(byte);
    }
  }
  void put_varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) put_byte(static_cast<unsigned>(value & 0x7f) | 0x80);
    put_byte(static_cast<unsigned>(value));
  }
  std::size_t open(std::uint32_t field) noexcept;
  void close(std::size_t start) noexcept;

  char* memory_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool is_cut_ = false;
};

// What is added while one lives is the content of a message in the field.
class ProtobufMessage {
 public:
  ProtobufMessage(ProtobufWriter* out, std::uint32_t field) noexcept
      : out_(out), start_(out->open(field)) {}
  ~ProtobufMessage() { out_->close(start_); }
  ProtobufMessage(const ProtobufMessage&) = delete;
  ProtobufMessage& operator=(const ProtobufMessage&) = delete;

 private:
  ProtobufWriter* out_;
  std::size_t start_;
};

}  // namespace profiler
