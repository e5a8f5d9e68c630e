// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/cursor.h"

#include <bit>

namespace softgpu::ptx {
namespace {

// More is surely an attack on our stack, not a program.
constexpr int kMaxDepth = 100;

struct Operator {
  std::string_view text;
  int level;
};

constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
    {"!=", 6}, {"<", 7},  {"<=", 7}, {">", 7},  {">=", 7}, {"<<", 8},
    {">>", 8}, {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};
constexpr int kTermLevel = 10;

int level_of(const Token& token) {
  if (token.kind != TokenKind::kPunct && token.text != "%") return 0;
  for (const Operator& op : kOperators) {
    if (op.text == token.text) return op.level;
  }
  return 0;
}

std::int64_t as_signed(const Number& number) {
  return static_cast<std::int64_t>(number.bits);
}

std::uint64_t divide(const Number& a, const Number& b, bool is_unsigned, bool want_rest) {
  if (is_unsigned) return want_rest ? a.bits % b.bits : a.bits / b.bits;
  if (as_signed(b) == -1) return want_rest ? 0 : 0 - a.bits;
  return static_cast<std::uint64_t>(want_rest ? as_signed(a) % as_signed(b)
                                              : as_signed(a) / as_signed(b));
}

bool less(const Number& a, const Number& b, bool is_unsigned) {
  return is_unsigned ? a.bits < b.bits : as_signed(a) < as_signed(b);
}

std::uint64_t shift(const Number& a, const Number& b, bool left) {
  const unsigned count = static_cast<unsigned>(b.bits & 63);
  if (left) return a.bits << count;
  return a.is_unsigned ? a.bits >> count : static_cast<std::uint64_t>(as_signed(a) >> count);
}

Number apply(std::string_view op, const Number& a, const Number& b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  Number result;
  result.is_unsigned = is_unsigned;
  if (op == "+") result.bits = a.bits + b.bits;
  if (op == "-") result.bits = a.bits - b.bits;
  if (op == "*") result.bits = a.bits * b.bits;
  if (op == "/") result.bits = divide(a, b, is_unsigned, false);
  if (op == "%") result.bits = divide(a, b, is_unsigned, true);
  if (op == "&") result.bits = a.bits & b.bits;
  if (op == "|") result.bits = a.bits | b.bits;
  if (op == "^") result.bits = a.bits ^ b.bits;
  if (op == "<<" || op == ">>") {
    result.bits = shift(a, b, op == "<<");
    result.is_unsigned = a.is_unsigned;
  }
  const std::string_view kComparisons[] = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"};
  for (std::string_view comparison : kComparisons) {
    if (op == comparison) result.is_unsigned = false;
  }
  if (op == "<") result.bits = less(a, b, is_unsigned);
  if (op == "<=") result.bits = !less(b, a, is_unsigned);
  if (op == ">") result.bits = less(b, a, is_unsigned);
  if (op == ">=") result.bits = !less(a, b, is_unsigned);
  if (op == "==") result.bits = a.bits == b.bits;
  if (op == "!=") result.bits = a.bits != b.bits;
  if (op == "&&") result.bits = a.bits != 0 && b.bits != 0;
  if (op == "||") result.bits = a.bits != 0 || b.bits != 0;
  return result;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kDotted:
      return "'." + std::string(token.text) + "'";
    case TokenKind::kString:
      return "a string";
    default:
      return "'" + std::string(token.text) + "'";
  }
}

}  // namespace

void Cursor::fail(std::string message) const {
  const Token& token = at_ > 0 ? tokens_[at_ - 1] : tokens_[0];
  throw SyntaxError{token.line, std::move(message)};
}

void Cursor::fail_here(std::string message) const {
  throw SyntaxError{line(), std::move(message)};
}

void Cursor::fail_expected(const char* what) const {
  if (peek().kind == TokenKind::kError) fail_here(std::string(peek().text));
  fail_here(std::string("expected ") + what + ", found " + describe(peek()));
}

void Cursor::expect(char punct) {
  if (accept(punct)) return;
  const char what[] = {'\'', punct, '\'', '\0'};
  fail_expected(what);
}

std::string_view Cursor::expect_word(const char* what) {
  if (peek().kind != TokenKind::kWord) fail_expected(what);
  return take().text;
}

std::uint64_t Cursor::expect_count(std::uint64_t limit, const char* what) {
  const Number number = constant();
  if (number.kind != Number::Kind::kInteger || number.bits > limit) {
    fail(std::string(what) + " out of range");
  }
  return number.bits;
}

void Cursor::skip_statement() {
  while (!accept(';')) {
    if (at_end()) fail_expected("';'");
    take();
  }
}

Number Cursor::constant() {
  Number value = binary(1, 0);
  if (!peek().is('?')) return value;
  take();
  const Number yes = constant_term();
  expect(':');
  const Number no = constant_term();
  return value.bits != 0 ? yes : no;
}

Number Cursor::constant_term() {
  return binary(kTermLevel, 0);
}

Number Cursor::binary(int min_level, int depth) {
  Number left = unary(depth);
  for (;;) {
    const int level = level_of(peek());
    if (level == 0 || level < min_level) return left;
    const std::string_view op = take().text;
    const Number right = binary(level + 1, depth + 1);
    if (left.kind != Number::Kind::kInteger || right.kind != Number::Kind::kInteger) {
      fail("operators need integer constants");
    }
    if ((op == "/" || op == "%") && right.bits == 0) fail("division by zero in a constant");
    left = apply(op, left, right);
  }
}

Number Cursor::unary(int depth) {
  if (depth > kMaxDepth) fail("constant expression is nested too deeply");
  if (accept('+')) return unary(depth + 1);
  if (accept('-')) {
    Number value = unary(depth + 1);
    switch (value.kind) {
      case Number::Kind::kInteger:
        value.bits = 0 - value.bits;
        value.is_unsigned = false;
        break;
      case Number::Kind::kSingle:
        value.bits ^= 0x8000'0000u;
        break;
      case Number::Kind::kDouble:
        value.bits ^= std::uint64_t{1} << 63;
        break;
    }
    return value;
  }
  if (peek().is('!') || peek().is('~')) {
    const bool is_not = take().is('!');
    Number value = unary(depth + 1);
    if (value.kind != Number::Kind::kInteger) fail("operators need integer constants");
    value.bits = is_not ? value.bits == 0 : ~value.bits;
    return value;
  }
  return primary(depth);
}

Number Cursor::primary(int depth) {
  if (accept('(')) {
    if (peek().is_dotted("s64") || peek().is_dotted("u64")) {
      const bool to_unsigned = take().text == "u64";
      expect(')');
      Number value = unary(depth + 1);
      value.is_unsigned = to_unsigned;
      return value;
    }
    const Number value = binary(1, depth + 1);
    expect(')');
    return value;
  }
  if (peek().kind == TokenKind::kWord && peek().text == "WARP_SZ") {
    take();
    return {Number::Kind::kInteger, false, 32};
  }
  if (peek().kind != TokenKind::kNumber) fail_expected("a number");
  Number number;
  if (!parse_number(peek().text, &number))
    fail_here("bad number '" + std::string(peek().text) + "'");
  take();
  return number;
}

bool immediate_bits(const Number& number, Type type, std::uint64_t* bits) {
  if (type == Type::kPred) {
    *bits = number.bits != 0;
    return number.kind == Number::Kind::kInteger;
  }
  if (number.kind == Number::Kind::kInteger) {
    if (type == Type::kF32 || type == Type::kF64) return false;
    const unsigned size = type_size(type);
    *bits = size >= 8 || size == 0 ? number.bits : number.bits & ((1ull << (8 * size)) - 1);
    return true;
  }
  const bool single = number.kind == Number::Kind::kSingle;
  if (type_size(type) == 4) {
    const auto value = static_cast<float>(std::bit_cast<double>(number.bits));
    *bits = single ? number.bits : std::bit_cast<std::uint32_t>(value);
    return true;
  }
  if (type_size(type) == 8) {
    const double value = std::bit_cast<float>(static_cast<std::uint32_t>(number.bits));
    *bits = single && type == Type::kF64 ? std::bit_cast<std::uint64_t>(value) : number.bits;
    return true;
  }
  return false;
}

}  // namespace softgpu::ptx
