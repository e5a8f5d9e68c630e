// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into tokens; debug information (.loc, .file, .section, @@DWARF) is dropped here.
// Tokens point into the text, which must outlive them. A syntax error is a token of kind kError,
// never an exception.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

enum class TokenKind : std::uint8_t {
  kEnd,
  kWord,    // identifier: opcode, register, symbol, `_`
  kDotted,  // directive or suffix, text without the dot: "global", "shared::cta"
  kNumber,  // integer or floating literal
  kString,  // text without the quotes
  kPunct,   // one character, or one of << >> <= >= == != && ||
  kError,   // text = what is wrong
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::uint32_t line = 0;
  std::string_view text;

  bool is(char c) const { return kind == TokenKind::kPunct && text.size() == 1 && text[0] == c; }
  bool is(std::string_view punct) const { return kind == TokenKind::kPunct && text == punct; }
  bool is_dotted(std::string_view word) const { return kind == TokenKind::kDotted && text == word; }
};

// Always ends with one kEnd or kError token.
std::vector<Token> tokenize(std::string_view text);

// A literal's value. Floating ones keep their own width: 0f.. and 0d.. exactly, decimals as double.
struct Number {
  enum class Kind : std::uint8_t { kInteger, kSingle, kDouble } kind = Kind::kInteger;
  bool is_unsigned = false;  // suffix U, or too large for int64
  std::uint64_t bits = 0;    // integer value, f32 bits or f64 bits
};

// False: not a valid literal, or an integer of more than 64 bits.
bool parse_number(std::string_view text, Number* number);

}  // namespace softgpu::ptx
