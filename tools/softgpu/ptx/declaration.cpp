// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/declaration.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tools/softgpu/ptx/instructions.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kMaxDimensions = 8;
// Initialised bytes of one variable; the text itself is at least as long, except for open nesting.
constexpr std::uint64_t kMaxInitialBytes = std::uint64_t{1} << 28;

void skip_parentheses(Cursor& cursor) {
  cursor.expect('(');
  while (!cursor.accept(')')) {
    if (cursor.at_end()) cursor.fail_expected("')'");
    cursor.take();
  }
}

void parse_attribute(Cursor& cursor, TypePrefix* prefix) {
  cursor.expect('(');
  while (!cursor.accept(')')) {
    if (cursor.at_end()) cursor.fail_expected("')'");
    if (cursor.accept_dotted("managed")) {
      prefix->managed = true;
    } else if (cursor.accept_dotted("unified")) {
      if (cursor.peek().is('(')) skip_parentheses(cursor);
    } else if (!cursor.accept(',')) {
      cursor.fail_expected("an attribute");
    }
  }
}

class Initializer {
 public:
  Initializer(Cursor& cursor, const TypePrefix& prefix, const Declarator& declarator,
              Variable* variable, std::vector<RawModule::NameUse>* names)
      : cursor_(cursor), type_(prefix.type), variable_(variable), names_(names) {
    counts_ = declarator.dimensions;
    if (prefix.vector > 1) counts_.push_back(prefix.vector);
    strides_.resize(counts_.size());
    std::uint64_t stride = type_size(type_);
    for (std::size_t i = counts_.size(); i-- > 0;) {
      strides_[i] = stride;
      stride *= std::max<std::uint64_t>(counts_[i], 1);
    }
  }

  // Bytes used from the start.
  std::uint64_t run() {
    level(0, 0);
    return used_;
  }

 private:
  void level(std::size_t depth, std::uint64_t base) {
    if (!cursor_.accept('{')) return scalar(base);
    if (depth >= counts_.size()) cursor_.fail("too many braces in the initialiser");
    const bool open = counts_[depth] == 0;
    std::uint64_t limit = open ? kMaxInitialBytes : base + counts_[depth] * strides_[depth];
    std::uint64_t stride = strides_[depth];
    std::uint64_t at = base;
    while (!cursor_.accept('}')) {
      // Inner braces may be left out: then elements follow each other.
      if (!cursor_.peek().is('{')) stride = type_size(type_);
      if (at + stride > limit) cursor_.fail("too many elements in the initialiser");
      level(depth + 1, at);
      at += stride;
      used_ = std::max(used_, at);
      if (!cursor_.accept(',') && !cursor_.peek().is('}')) cursor_.fail_expected("',' or '}'");
    }
  }

  void scalar(std::uint64_t at) {
    if (cursor_.peek().kind == TokenKind::kWord && cursor_.peek().text != "WARP_SZ") {
      return address(at, 0);
    }
    const Number number = cursor_.constant();
    if (cursor_.accept('(')) {  // mask(symbol): one part of the address
      if (number.kind != Number::Kind::kInteger || number.bits == 0) cursor_.fail("bad mask");
      address(at, static_cast<unsigned>(std::countr_zero(number.bits)));
      return cursor_.expect(')');
    }
    std::uint64_t bits = 0;
    if (!immediate_bits(number, type_, &bits)) cursor_.fail("the value does not fit the type");
    store(at, bits);
  }

  void address(std::uint64_t at, unsigned shift) {
    Variable::Relocation relocation{};
    relocation.offset = at;
    relocation.size = type_size(type_);
    relocation.shift = shift;
    std::string_view name = cursor_.expect_word("a symbol");
    if (name == "generic" && cursor_.accept('(')) {
      relocation.generic = true;
      name = cursor_.expect_word("a symbol");
      cursor_.expect(')');
    }
    if (is_float(type_)) cursor_.fail("an address needs an integer type");
    while (cursor_.peek().is('+') || cursor_.peek().is('-')) {
      const bool minus = cursor_.take().is('-');
      const Number offset = cursor_.constant_term();
      relocation.addend += static_cast<std::int64_t>(minus ? 0 - offset.bits : offset.bits);
    }
    names_->push_back({name, cursor_.line()});
    relocation.symbol = std::string(name);
    variable_->relocations.push_back(std::move(relocation));
    store(at, 0);
  }

  void store(std::uint64_t at, std::uint64_t bits) {
    const std::uint64_t size = type_size(type_);
    if (at + size > kMaxInitialBytes) cursor_.fail("the initialiser is too large");
    used_ = std::max(used_, at + size);
    auto& bytes = variable_->initial;
    if (bytes.size() < at + size) bytes.resize(at + size);
    std::memcpy(bytes.data() + at, &bits, size);  // little-endian host, as the device
  }

  Cursor& cursor_;
  Type type_;
  Variable* variable_;
  std::vector<RawModule::NameUse>* names_;
  std::vector<std::uint64_t> counts_, strides_;
  std::uint64_t used_ = 0;
};

// The variable of that name if it is already there and one of the two is only a declaration.
Variable* redeclared(Cursor& cursor, RawModule* raw, const Symbol& old, bool external, bool weak,
                     VariableSpace space) {
  if (old.kind != SymbolKind::kVariable) cursor.fail("the name is declared twice");
  Variable& variable = raw->impl->variables[old.index];
  if (variable.space != space) cursor.fail("the name is declared twice");
  if (!variable.external && !external && !weak) cursor.fail("the variable is defined twice");
  return &variable;
}

}  // namespace

std::uint64_t round_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) / align * align;
}

std::uint64_t Declarator::bytes(const Cursor& cursor, const TypePrefix& prefix,
                                std::uint64_t limit) const {
  std::uint64_t total = prefix.element_bytes();
  for (std::uint64_t count : dimensions) {
    if (count != 0 && total > limit / count)
      cursor.fail("'" + std::string(name) + "' is too large");
    total *= count;
  }
  if (total > limit) cursor.fail("'" + std::string(name) + "' is too large");
  return total;
}

TypePrefix parse_type_prefix(Cursor& cursor) {
  TypePrefix prefix;
  while (cursor.peek().kind == TokenKind::kDotted) {
    const std::string_view word = cursor.peek().text;
    if (word == "align") {
      cursor.take();
      prefix.align = static_cast<std::uint32_t>(cursor.expect_count(1u << 20, "alignment"));
      if (!std::has_single_bit(prefix.align)) cursor.fail("alignment is not a power of two");
    } else if (word == "attribute") {
      cursor.take();
      parse_attribute(cursor, &prefix);
    } else if (word == "managed") {
      cursor.take();
      prefix.managed = true;
    } else if (word == "v2" || word == "v4") {
      cursor.take();
      prefix.vector = word == "v2" ? 2 : 4;
    } else if (type_from_name(word) != Type::kNone && prefix.type == Type::kNone) {
      prefix.type = type_from_name(cursor.take().text);
    } else {
      cursor.fail_here("'." + std::string(word) + "' is not supported here");
    }
  }
  if (prefix.type == Type::kNone) cursor.fail_expected("a type");
  return prefix;
}

Declarator parse_declarator(Cursor& cursor) {
  Declarator declarator;
  declarator.name = cursor.expect_word("a name");
  while (cursor.accept('[')) {
    if (declarator.dimensions.size() == kMaxDimensions) cursor.fail("too many array dimensions");
    if (cursor.accept(']')) {
      if (!declarator.dimensions.empty()) cursor.fail("only the first dimension may be open");
      declarator.dimensions.push_back(0);
      continue;
    }
    declarator.dimensions.push_back(cursor.expect_count(kMaxVariableBytes, "array size"));
    cursor.expect(']');
  }
  return declarator;
}

std::vector<ParameterDeclaration> parse_parameters(Cursor& cursor) {
  std::vector<ParameterDeclaration> parameters;
  cursor.expect('(');
  while (!cursor.accept(')')) {
    ParameterDeclaration parameter;
    parameter.is_register = cursor.accept_dotted("reg");
    if (!parameter.is_register && !cursor.accept_dotted("param")) cursor.fail_expected(".param");
    TypePrefix prefix;
    std::uint32_t align = 0;
    // `.param .u64 .ptr .global .align 16 name`: what follows .ptr describes the target, not the
    // parameter.
    while (cursor.peek().kind == TokenKind::kDotted && !cursor.peek().is_dotted("ptr")) {
      if (cursor.accept_dotted("align")) {
        align = static_cast<std::uint32_t>(cursor.expect_count(128, "alignment"));
        if (!std::has_single_bit(align)) cursor.fail("alignment is not a power of two");
        continue;
      }
      const Type type = type_from_name(cursor.peek().text);
      if (type == Type::kNone || prefix.type != Type::kNone) cursor.fail_expected("a type");
      prefix.type = type;
      cursor.take();
    }
    if (prefix.type == Type::kNone) cursor.fail_expected("a type");
    if (cursor.accept_dotted("ptr")) {
      while (cursor.peek().kind == TokenKind::kDotted) {
        if (cursor.take().text == "align") cursor.expect_count(1u << 20, "alignment");
      }
    }
    const Declarator declarator = parse_declarator(cursor);
    if (type_size(prefix.type) == 0 && !parameter.is_register) cursor.fail("bad parameter type");
    parameter.name = declarator.name;
    parameter.type = prefix.type;
    parameter.size = static_cast<std::uint32_t>(declarator.bytes(cursor, prefix, kMaxParamBytes));
    parameter.align = align != 0 ? align : std::max(1u, type_size(prefix.type));
    parameters.push_back(parameter);
    if (!cursor.accept(',') && !cursor.peek().is(')')) cursor.fail_expected("',' or ')'");
  }
  return parameters;
}

void parse_initializer(Cursor& cursor, const TypePrefix& prefix, const Declarator& declarator,
                       Variable* variable, std::vector<RawModule::NameUse>* names) {
  const std::uint64_t used = Initializer(cursor, prefix, declarator, variable, names).run();
  if (!declarator.dimensions.empty() && declarator.dimensions[0] == 0) {
    variable->size = round_up(used, prefix.element_bytes());
  }
}

void parse_variables(Cursor& cursor, RawModule* raw, VariableSpace space, bool external, bool weak,
                     std::unordered_map<std::string_view, Symbol>* names) {
  const TypePrefix prefix = parse_type_prefix(cursor);
  if (type_size(prefix.type) == 0) cursor.fail("bad variable type");
  do {
    const Declarator declarator = parse_declarator(cursor);
    Variable variable;
    variable.name = std::string(declarator.name);
    variable.space = space;
    variable.size = declarator.bytes(cursor, prefix, kMaxVariableBytes);
    variable.align = prefix.alignment();
    variable.managed = prefix.managed;
    variable.external = external;
    if (cursor.accept('=')) {
      parse_initializer(cursor, prefix, declarator, &variable, &raw->initializer_names);
    }
    if (const auto old = names->find(declarator.name); old != names->end()) {
      Variable* there = redeclared(cursor, raw, old->second, external, weak, space);
      if (there->external) *there = std::move(variable);
      continue;
    }
    (*names)[declarator.name] = {SymbolKind::kVariable,
                                 static_cast<std::uint32_t>(raw->impl->variables.size()), 0,
                                 prefix.element_bytes()};
    raw->impl->variables.push_back(std::move(variable));
  } while (cursor.accept(','));
  cursor.expect(';');
}

void parse_shared(Cursor& cursor, RawModule* raw, bool external,
                  std::unordered_map<std::string_view, Symbol>* names) {
  const TypePrefix prefix = parse_type_prefix(cursor);
  if (type_size(prefix.type) == 0) cursor.fail("bad variable type");
  do {
    const Declarator declarator = parse_declarator(cursor);
    SharedVariable variable;
    variable.name = std::string(declarator.name);
    variable.size = declarator.bytes(cursor, prefix, 1u << 30);
    variable.align = prefix.alignment();
    // Only an open array is dynamic; a sized extern variable is defined in another module or here.
    variable.external = external && variable.size == 0;
    const auto old = names->find(declarator.name);
    if (old != names->end() && old->second.kind != SymbolKind::kShared) {
      cursor.fail("the name is declared twice");
    }
    if (old != names->end()) {
      SharedVariable& there = raw->shared[old->second.index];
      if (there.size < variable.size) there = std::move(variable);
      continue;
    }
    (*names)[declarator.name] = {SymbolKind::kShared,
                                 static_cast<std::uint32_t>(raw->shared.size()), 0,
                                 prefix.element_bytes()};
    raw->shared.push_back(std::move(variable));
  } while (cursor.accept(','));
  cursor.expect(';');
}

}  // namespace softgpu::ptx
