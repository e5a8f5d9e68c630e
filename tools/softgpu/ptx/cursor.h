// SPDX-License-Identifier: Apache-2.0
// A position in the tokens of a module, and constant expressions. Syntax errors are thrown as
// SyntaxError and caught in Module::parse; nothing else may throw it further.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/softgpu/ptx/ir.h"
#include "tools/softgpu/ptx/lexer.h"

namespace softgpu::ptx {

struct SyntaxError {
  std::uint32_t line = 0;
  std::string message;
  bool unsupported_version = false;
  bool unsupported_target = false;
};

class Cursor {
 public:
  explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    const std::size_t at = at_ + ahead;
    return at < tokens_.size() ? tokens_[at] : tokens_.back();
  }
  const Token& take() {
    const Token& token = peek();
    if (token.kind == TokenKind::kError) fail_here(std::string(token.text));
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(char punct) {
    if (!peek().is(punct)) return false;
    ++at_;
    return true;
  }
  bool accept_dotted(std::string_view word) {
    if (!peek().is_dotted(word)) return false;
    ++at_;
    return true;
  }
  void expect(char punct);
  std::string_view expect_word(const char* what);
  // A constant expression that is a whole number, 0 <= value <= limit.
  std::uint64_t expect_count(std::uint64_t limit, const char* what);
  void skip_statement();  // to after the next ';'

  std::uint32_t line() const { return peek().line; }
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  // At the token last taken, or at the next one.
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_here(std::string message) const;
  [[noreturn]] void fail_expected(const char* what) const;

  // Literals, operators, casts and parentheses. Floats only stand alone or signed.
  Number constant();
  // One term, so that "+ 4 - 8" can be read as a chain.
  Number constant_term();

 private:
  Number binary(int min_level, int depth);
  Number unary(int depth);
  Number primary(int depth);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// The literal as an immediate of `type`: low bits, the rest 0. False: it does not fit the type.
bool immediate_bits(const Number& number, Type type, std::uint64_t* bits);

}  // namespace softgpu::ptx
