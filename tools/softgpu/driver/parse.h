// SPDX-License-Identifier: Apache-2.0
// Pieces that the values of environment variables are made of. Pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace softgpu {

// A decimal number and nothing else, within [low, high]. False: `value` is unchanged.
template <class Number>
bool parse_number(std::string_view text, Number low, Number high, Number* value) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (parsed < low || parsed > high) return false;
  *value = parsed;
  return true;
}

// A number of bytes, with K, M or G (binary) behind it if wanted.
inline bool parse_bytes(std::string_view text, std::uint64_t high, std::uint64_t* value) {
  int shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  std::uint64_t number = 0;
  if (!parse_number<std::uint64_t>(text, 0, high >> shift, &number)) return false;
  *value = number << shift;
  return true;
}

// What stands before the first `separator`, or all; takes it and the separator off `text`.
inline std::string_view take_until(char separator, std::string_view* text) {
  const std::size_t at = text->find(separator);
  const std::string_view taken = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return taken;
}

}  // namespace softgpu
