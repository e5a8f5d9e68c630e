// SPDX-License-Identifier: Apache-2.0
// Brackets, commas, escapes.
#include "profiler/json_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "profiler/utf8.h"

namespace profiler {
namespace {

// Elements of the outer levels stand on lines of their own.
constexpr int kLineDepth = 3;

}  // namespace

bool write_all(int file, const char* bytes, std::size_t size) noexcept {
  while (size > 0) {
    const ssize_t written = write(file, bytes, size);
    if (written > 0) {
      bytes += written;
      size -= static_cast<std::size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {
      pollfd ready{file, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

void JsonWriter::start(Write write, void* to) noexcept {
  write_ = write;
  to_ = to;
  depth_ = 0;
  error_ = 0;
  is_first_ = true;
  size_ = 0;
}

void JsonWriter::flush() noexcept {
  if (error_ == 0) {
    const bool is_written =
        write_ != nullptr ? write_(to_, buffer_, size_) : write_all(file_, buffer_, size_);
    if (!is_written) error_ = errno != 0 ? errno : EIO;
  }
  size_ = 0;
}

bool JsonWriter::finish() noexcept {
  put("\n");
  flush();
  if (error_ != 0) errno = error_;
  return error_ == 0;
}

void JsonWriter::put(const char* bytes, std::size_t size) noexcept {
  while (size > 0) {
    if (size_ == sizeof buffer_) flush();
    const std::size_t room = sizeof buffer_ - size_;
    const std::size_t part = size < room ? size : room;
    std::memcpy(buffer_ + size_, bytes, part);
    size_ += part;
    bytes += part;
    size -= part;
  }
}

void JsonWriter::put(const char* text) noexcept {
  put(text, std::strlen(text));
}

void JsonWriter::begin_value(const char* key) noexcept {
  if (!is_first_) put(",");
  if (depth_ > 0 && depth_ <= kLineDepth) {
    put("\n");
    for (int i = 0; i < depth_; ++i) put(" ");
  }
  is_first_ = false;
  if (key == nullptr) return;
  quote(key);
  put(":");
}

void JsonWriter::open(const char* key, char bracket) noexcept {
  begin_value(key);
  put(&bracket, 1);
  ++depth_;
  is_first_ = true;
}

void JsonWriter::close(char bracket) noexcept {
  --depth_;
  if (!is_first_ && depth_ < kLineDepth) {
    put("\n");
    for (int i = 0; i < depth_; ++i) put(" ");
  }
  put(&bracket, 1);
  is_first_ = false;
}

void JsonWriter::number(const char* key, std::uint64_t value) noexcept {
  begin_value(key);
  char digits[24];
  put(digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%" PRIu64, value)));
}

void JsonWriter::signed_number(const char* key, std::int64_t value) noexcept {
  begin_value(key);
  char digits[24];
  put(digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%" PRId64, value)));
}

void JsonWriter::boolean(const char* key, bool value) noexcept {
  begin_value(key);
  put(value ? "true" : "false");
}

void JsonWriter::null(const char* key) noexcept {
  begin_value(key);
  put("null");
}

void JsonWriter::text(const char* key, const char* value) noexcept {
  begin_value(key);
  quote(value);
}

void JsonWriter::quote(const char* value) noexcept {
  put("\"");
  while (*value != '\0') {
    const auto first = static_cast<unsigned char>(*value);
    const std::size_t length = utf8_length({value, strnlen(value, 4)});
    if (length == 0) {
      put("\\ufffd");
      ++value;
    } else if (first == '"' || first == '\\') {
      put("\\");
      put(value++, 1);
    } else if (first < ' ') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", first);
      put(escape);
      ++value;
    } else {
      put(value, length);
      value += length;
    }
  }
  put("\"");
}

}  // namespace profiler
