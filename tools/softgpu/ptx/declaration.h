// SPDX-License-Identifier: Apache-2.0
// The parts of declarations that modules and function bodies share: types, alignment, array sizes,
// parameter lists, initialisers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/softgpu/ptx/symbols.h"

namespace softgpu::ptx {

// `.align 16 .attribute(.managed) .v4 .f32`, in any order.
struct TypePrefix {
  Type type = Type::kNone;
  std::uint32_t align = 0;  // 0: natural
  std::uint32_t vector = 1;
  bool managed = false;

  std::uint32_t element_bytes() const { return type_size(type) * vector; }
  std::uint32_t alignment() const { return align != 0 ? align : element_bytes(); }
};

// A name with its array dimensions. A first dimension of 0 is `[]`.
struct Declarator {
  std::string_view name;
  std::vector<std::uint64_t> dimensions;

  // Bytes of the whole, or fails over `limit`.
  std::uint64_t bytes(const Cursor& cursor, const TypePrefix& prefix, std::uint64_t limit) const;
};

struct ParameterDeclaration {
  std::string_view name;
  Type type = Type::kNone;
  bool is_register = false;
  std::uint32_t size = 0;
  std::uint32_t align = 1;
};

TypePrefix parse_type_prefix(Cursor& cursor);
Declarator parse_declarator(Cursor& cursor);
// From '(' to ')'.
std::vector<ParameterDeclaration> parse_parameters(Cursor& cursor);
// After '='. Fills variable.initial (no longer than needed) and relocations, and the size of an
// open array.
void parse_initializer(Cursor& cursor, const TypePrefix& prefix, const Declarator& declarator,
                       Variable* variable, std::vector<RawModule::NameUse>* names);
// A module-scope .global or .const variable list, also allowed in bodies. Names go to `names`.
void parse_variables(Cursor& cursor, RawModule* raw, VariableSpace space, bool external, bool weak,
                     std::unordered_map<std::string_view, Symbol>* names);
// A .shared variable list.
void parse_shared(Cursor& cursor, RawModule* raw, bool external,
                  std::unordered_map<std::string_view, Symbol>* names);

std::uint64_t round_up(std::uint64_t value, std::uint64_t align);

}  // namespace softgpu::ptx
