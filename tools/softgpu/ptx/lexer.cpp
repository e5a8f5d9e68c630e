// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <utility>

namespace softgpu::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}
bool starts_word(char c) {
  return is_letter(c) || c == '_' || c == '$' || c == '%';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text.substr(0, text.find('\0'))) {}

  std::vector<Token> run() {
    tokens_.reserve(text_.size() / 4 + 16);
    while (skip_blanks() && at_ < text_.size()) {
      if (!next()) return std::move(tokens_);
    }
    if (tokens_.empty() || tokens_.back().kind != TokenKind::kError) push(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void push(TokenKind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }
  bool fail(std::string_view what) {
    push(TokenKind::kError, what);
    at_ = text_.size();
    return false;
  }
  std::string_view since(std::size_t start) const { return text_.substr(start, at_ - start); }

  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  // Blanks, comments and @@DWARF lines. False: an error was pushed.
  bool skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (c == '/' && peek(1) == '/') {
        skip_line();
        --at_;
      } else if (c == '/' && peek(1) == '*') {
        if (!skip_comment()) return false;
      } else if (c == '@' && peek(1) == '@') {
        skip_line();
        --at_;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != '\v' && c != '\f') {
        return true;
      }
    }
    return true;
  }

  bool skip_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) return fail("comment without end");
    for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
    at_ = end + 1;  // the caller steps over the last character
    return true;
  }

  bool next() {
    const char c = text_[at_];
    const std::size_t start = at_;
    if (starts_word(c)) {
      ++at_;
      while (is_word(peek())) ++at_;
      push(TokenKind::kWord, since(start));
      return true;
    }
    if (is_digit(c)) return number();
    if (c == '.' && is_word(peek(1))) return dotted();
    if (c == '"') return string();
    return punct();
  }

  bool number() {
    const std::size_t start = at_;
    const bool prefixed = peek() == '0' && is_letter(peek(1)) && (peek(1) | 32) != 'e';
    while (is_digit(peek()) || is_letter(peek()) ||
           (!prefixed && (peek() == '.' ||
                          ((peek() == '+' || peek() == '-') && (text_[at_ - 1] | 32) == 'e')))) {
      ++at_;
    }
    push(TokenKind::kNumber, since(start));
    return true;
  }

  bool dotted() {
    const std::size_t start = ++at_;
    while (is_word(peek()) || (peek() == ':' && peek(1) == ':')) at_ += peek() == ':' ? 2 : 1;
    const std::string_view word = since(start);
    if (word == "loc" || word == "file") {
      skip_line();
    } else if (word == "section") {
      return section();
    } else {
      push(TokenKind::kDotted, word);
    }
    return true;
  }

  bool section() {
    const std::size_t close = text_.find('}', at_);
    if (close == std::string_view::npos) return fail(".section without end");
    for (; at_ < close; ++at_) line_ += text_[at_] == '\n';
    ++at_;
    return true;
  }

  bool string() {
    const std::size_t start = ++at_;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (at_ >= text_.size() || peek() != '"') return fail("string without end");
    push(TokenKind::kString, since(start));
    ++at_;
    return true;
  }

  bool punct() {
    static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    static constexpr std::string_view kSingles = "{}()[],;:=+-*/%!~<>&|^?@";
    for (std::string_view pair : kPairs) {
      if (text_.substr(at_, 2) == pair) {
        push(TokenKind::kPunct, text_.substr(at_, 2));
        at_ += 2;
        return true;
      }
    }
    if (kSingles.find(text_[at_]) == std::string_view::npos) return fail("unexpected character");
    push(TokenKind::kPunct, text_.substr(at_, 1));
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

bool parse_hex_float(std::string_view digits, std::size_t width, Number* number) {
  if (digits.size() != width) return false;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number->bits, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

bool parse_decimal_float(std::string_view text, Number* number) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  number->kind = Number::Kind::kDouble;
  number->bits = std::bit_cast<std::uint64_t>(value);
  return true;
}

bool parse_integer(std::string_view text, Number* number) {
  if (text.back() == 'U' || text.back() == 'u') {
    number->is_unsigned = true;
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] | 32) == 'x') {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] | 32) == 'b') {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  if (text.empty()) return false;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number->bits, base);
  if (number->bits >> 63) number->is_unsigned = true;
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  return Lexer(text).run();
}

bool parse_number(std::string_view text, Number* number) {
  *number = {};
  if (text.empty()) return false;
  if (text.size() > 2 && text[0] == '0' && (text[1] | 32) == 'f') {
    number->kind = Number::Kind::kSingle;
    return parse_hex_float(text.substr(2), 8, number);
  }
  if (text.size() > 2 && text[0] == '0' && (text[1] | 32) == 'd') {
    number->kind = Number::Kind::kDouble;
    return parse_hex_float(text.substr(2), 16, number);
  }
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] | 32) == 'x';
  if (!hex && text.find_first_of(".eE") != std::string_view::npos) {
    return parse_decimal_float(text, number);
  }
  return parse_integer(text, number);
}

}  // namespace softgpu::ptx
