// SPDX-License-Identifier: Apache-2.0
// A message is written behind one byte for its length; where the length needs more, the content
// moves up when the message ends.
#include "profiler/trace/protobuf_writer.h"

#include "profiler/utf8.h"

namespace profiler {
namespace {

constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kLengthDelimited = 2;
constexpr int kWideBytes = 10;

}  // namespace

void ProtobufWriter::add_wide(std::uint32_t field, std::uint64_t value) noexcept {
  put_varint(field << 3);
  for (int i = 1; i < kWideBytes; ++i, value >>= 7) {
    put_byte(static_cast<unsigned>(value & 0x7f) | 0x80);
  }
  put_byte(static_cast<unsigned>(value));
}

void ProtobufWriter::add_fixed64(std::uint32_t field, std::uint64_t value) noexcept {
  put_varint(field << 3 | kFixed64);
  for (int i = 0; i < 8; ++i, value >>= 8) put_byte(static_cast<unsigned>(value & 0xff));
}

void ProtobufWriter::add_bytes(std::uint32_t field, const void* bytes, std::size_t size) noexcept {
  put_varint(field << 3 | kLengthDelimited);
  put_varint(size);
  if (size > room()) {
    is_cut_ = true;
    return;
  }
  if (size > 0) std::memcpy(memory_ + size_, bytes, size);
  size_ += size;
}

void ProtobufWriter::add_text(std::uint32_t field, std::string_view text) noexcept {
  const ProtobufMessage message(this, field);
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) put_byte('?');
    for (std::size_t i = 0; i < length; ++i) put_byte(static_cast<unsigned char>(text[i]));
    text.remove_prefix(length > 0 ? length : 1);
  }
}

std::size_t ProtobufWriter::open(std::uint32_t field) noexcept {
  put_varint(field << 3 | kLengthDelimited);
  put_byte(0);
  return size_;
}

void ProtobufWriter::close(std::size_t start) noexcept {
  if (is_cut_) return;
  const std::size_t length = size_ - start;
  std::size_t more = 0;
  for (std::size_t left = length >> 7; left > 0; left >>= 7) ++more;
  if (more > room()) {
    is_cut_ = true;
    return;
  }
  std::memmove(memory_ + start + more, memory_ + start, length);
  size_ = start - 1;
  put_varint(length);
  size_ = start + more + length;
}

}  // namespace profiler
