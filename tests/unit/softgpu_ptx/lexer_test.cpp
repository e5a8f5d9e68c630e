// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/lexer.h"

#include <bit>

#include "tests/unit/catch.h"

namespace softgpu::ptx {
namespace {

Number number(std::string_view text) {
  Number value;
  CAPTURE(text);
  REQUIRE(parse_number(text, &value));
  return value;
}

TEST_CASE("tokens carry their text and line", "[ptx][lexer]") {
  const auto tokens = tokenize("ld.shared::cta.u32 %r1,\n[$L__x+-4]; // end\n_ <<");
  const std::pair<TokenKind, std::string_view> expected[] = {
      {TokenKind::kWord, "ld"},    {TokenKind::kDotted, "shared::cta"},
      {TokenKind::kDotted, "u32"}, {TokenKind::kWord, "%r1"},
      {TokenKind::kPunct, ","},    {TokenKind::kPunct, "["},
      {TokenKind::kWord, "$L__x"}, {TokenKind::kPunct, "+"},
      {TokenKind::kPunct, "-"},    {TokenKind::kNumber, "4"},
      {TokenKind::kPunct, "]"},    {TokenKind::kPunct, ";"},
      {TokenKind::kWord, "_"},     {TokenKind::kPunct, "<<"},
      {TokenKind::kEnd, ""},
  };
  REQUIRE(tokens.size() == std::size(expected));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CAPTURE(i);
    CHECK(tokens[i].kind == expected[i].first);
    CHECK(tokens[i].text == expected[i].second);
  }
  CHECK(tokens[0].line == 1);
  CHECK(tokens[5].line == 2);
  CHECK(tokens[12].line == 3);
}

TEST_CASE("debug information and comments vanish but lines stay right", "[ptx][lexer]") {
  const auto tokens = tokenize(
      ".loc 1 2 3, function_name $x, inlined_at 1 2 3\n"
      ".file 1 \"a;b\"\n"
      "/* a\n b */\n"
      "@@DWARF .byte 1\n"
      ".section .debug_info {\n .b8 1\n}\nret;\0garbage");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0].text == "ret");
  CHECK(tokens[0].line == 9);
}

TEST_CASE("text after a NUL is not read", "[ptx][lexer]") {
  CHECK(tokenize(std::string_view("ret\0#", 5)).size() == 2);
}

TEST_CASE("what is no PTX becomes an error token at the end", "[ptx][lexer]") {
  for (const char* text : {"a # b", "/* open", "\"open", ".section .x {", "\"a\nb\""}) {
    CAPTURE(text);
    CHECK(tokenize(text).back().kind == TokenKind::kError);
  }
}

TEST_CASE("integer literals", "[ptx][lexer]") {
  CHECK(number("123").bits == 123);
  CHECK(number("0x1F").bits == 31);
  CHECK(number("017").bits == 15);
  CHECK(number("0b101").bits == 5);
  CHECK(number("5U").is_unsigned);
  CHECK(number("0xFFFFFFFFFFFFFFFF").bits == ~std::uint64_t{0});
  CHECK(number("0xFFFFFFFFFFFFFFFF").is_unsigned);
  CHECK(number("0").bits == 0);
}

TEST_CASE("floating literals keep their bits", "[ptx][lexer]") {
  CHECK(number("0f3F800000").kind == Number::Kind::kSingle);
  CHECK(number("0F3f800000").bits == 0x3f800000);
  CHECK(number("0d3FF0000000000000").bits == 0x3ff0000000000000);
  CHECK(number("1.5").kind == Number::Kind::kDouble);
  CHECK(std::bit_cast<double>(number("1.5").bits) == 1.5);
  CHECK(std::bit_cast<double>(number("25e-1").bits) == 2.5);
}

TEST_CASE("bad literals are refused", "[ptx][lexer]") {
  Number value;
  for (const char* text : {"", "0x", "12a", "09", "0b2", "0f123", "0f3F80000G", "1.2.3", "U",
                           "99999999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text, &value));
  }
}

}  // namespace
}  // namespace softgpu::ptx
