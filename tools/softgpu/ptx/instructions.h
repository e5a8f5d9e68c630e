// SPDX-License-Identifier: Apache-2.0
// Which instructions exist: opcode names, the suffixes and types each accepts, and the shape of its
// operands. Pure functions over constant tables; knows nothing of registers or symbols.
#pragma once

#include <string>
#include <string_view>

#include "tools/softgpu/ptx/ir.h"

namespace softgpu::ptx {

// An instruction without its operands.
struct Form {
  Instruction instruction;
  // Operands in order, one letter each: d, D destination of `type` or of any width; p destination
  // predicate; : an optional second destination predicate after '|'; a, s, w, u sources of `type`,
  // `source_type`, twice `type`, u32; l source u64; P source predicate; ? the next operand is
  // optional; * anything, ignored. Empty: the opcode has its own syntax, known to the parser.
  const char* operands = "";
  bool own_syntax = false;
  bool cache_hint = false;        // .L2::cache_hint: one more operand, ignored
  bool destination_only = false;  // createpolicy: the first operand is written, the rest is ignored
};

// `suffixes` are the dotted words after the opcode. False: `error` says what is unknown.
bool decode_form(std::string_view opcode, const std::string_view* suffixes, std::size_t count,
                 Form* form, std::string* error);

// kNone when `word` is no type.
Type type_from_name(std::string_view word);

}  // namespace softgpu::ptx
