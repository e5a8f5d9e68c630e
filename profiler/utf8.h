// SPDX-License-Identifier: Apache-2.0
// What text of unknown origin is made of: UTF-8 or not. Pure, any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace profiler {

// The length of the UTF-8 sequence that `text` (not empty) begins with; 0 when it is none (RFC
// 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t index) -> unsigned {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0;
  };
  const auto is_next = [byte](std::size_t index) { return (byte(index) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return is_next(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!is_next(1) || !is_next(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) >= 0xA0) return 0;
    return 3;
  }
  if (first < 0xF0 || first > 0xF4 || !is_next(1) || !is_next(2) || !is_next(3)) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return 4;
}

// At most `most` bytes of it, without half a character at the end.
inline std::string_view utf8_prefix(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace profiler
