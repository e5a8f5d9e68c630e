// SPDX-License-Identifier: Apache-2.0
// Bounded text and the number formats of the report.
#include "profiler/text_buffer.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace profiler {

TextBuffer::TextBuffer(char* memory, std::size_t capacity) noexcept
    : memory_(memory), capacity_(capacity) {
  memory_[0] = '\0';
}

void TextBuffer::append(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const std::size_t room = capacity_ - size_;
  const int length = std::vsnprintf(memory_ + size_, room, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (static_cast<std::size_t>(length) >= room) {
    is_cut_ = true;
    size_ = capacity_ - 1;
  } else {
    size_ += static_cast<std::size_t>(length);
  }
}

std::size_t TextBuffer::column() const noexcept {
  std::size_t start = size_;
  while (start > 0 && memory_[start - 1] != '\n') --start;
  return size_ - start;
}

void TextBuffer::append_item(const char* item, std::size_t indent, std::size_t width,
                             bool* is_first) noexcept {
  if (*is_first) {
    append("%s", item);
  } else if (column() + 3 + std::strlen(item) <= width) {
    append(" | %s", item);
  } else {
    append("\n%*s%s", static_cast<int>(indent), "", item);
  }
  *is_first = false;
}

void TextBuffer::append_behind(const char* text, std::size_t indent, std::size_t width) noexcept {
  if (column() + std::strlen(text) > width) {
    while (size_ > 0 && memory_[size_ - 1] == ' ') --size_;
    append("\n%*s", static_cast<int>(indent), "");
  }
  append("%s", text);
  end_line(width);
}

void TextBuffer::end_line(std::size_t width) noexcept {
  const std::size_t length = column();
  if (length > width) size_ -= length - width;
  append("\n");
}

Grouped::Grouped(unsigned long long number) noexcept {
  char digits[24];
  const int count = std::snprintf(digits, sizeof digits, "%llu", number);
  char* out = text;
  for (int index = 0; index < count; ++index) {
    if (index > 0 && (count - index) % 3 == 0) *out++ = ',';
    *out++ = digits[index];
  }
  *out = '\0';
}

TotalTime::TotalTime(double ns) noexcept {
  if (ns >= 1e9) {
    std::snprintf(text, sizeof text, "%.3f s", ns / 1e9);
  } else {
    std::snprintf(text, sizeof text, "%.3f ms", ns / 1e6);
  }
}

CallTime::CallTime(double ns) noexcept {
  double value = ns / 1e3;
  const char* unit = "us";
  if (value >= 999.5) {
    value /= 1e3;
    unit = "ms";
  }
  if (value >= 999.5 && unit[0] == 'm') {
    value /= 1e3;
    unit = "s";
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
}

Bytes::Bytes(double bytes) noexcept {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < sizeof kUnits / sizeof *kUnits; ++unit) bytes /= 1024;
  const bool is_whole = unit == 0 && bytes == static_cast<double>(static_cast<int>(bytes));
  const int decimals = is_whole ? 0 : bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, bytes, kUnits[unit]);
}

}  // namespace profiler
