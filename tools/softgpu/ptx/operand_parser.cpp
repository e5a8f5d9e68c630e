// SPDX-License-Identifier: Apache-2.0
// FunctionParser: names, special registers, immediates and addresses.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "tools/softgpu/ptx/function_parser.h"
#include "tools/softgpu/ptx/memory.h"

namespace softgpu::ptx {
namespace {

struct SpecialName {
  Special first = Special::kTidX;
  bool is_vector = false;  // .x .y .z .w follow
};

const std::unordered_map<std::string_view, SpecialName>& special_table() {
  static const std::unordered_map<std::string_view, SpecialName> table = {
      {"%tid", {Special::kTidX, true}},
      {"%ntid", {Special::kNtidX, true}},
      {"%ctaid", {Special::kCtaidX, true}},
      {"%nctaid", {Special::kNctaidX, true}},
      {"%clusterid", {Special::kClusteridX, true}},
      {"%nclusterid", {Special::kNclusteridX, true}},
      {"%cluster_ctaid", {Special::kClusterCtaidX, true}},
      {"%cluster_nctaid", {Special::kClusterNctaidX, true}},
      {"%cluster_ctarank", {Special::kClusterCtarank}},
      {"%cluster_nctarank", {Special::kClusterNctarank}},
      {"%is_explicit_cluster", {Special::kIsExplicitCluster}},
      {"%laneid", {Special::kLaneId}},
      {"%warpid", {Special::kWarpId}},
      {"%nwarpid", {Special::kNwarpId}},
      {"%smid", {Special::kSmId}},
      {"%nsmid", {Special::kNsmId}},
      {"%gridid", {Special::kGridId}},
      {"%lanemask_eq", {Special::kLanemaskEq}},
      {"%lanemask_le", {Special::kLanemaskLe}},
      {"%lanemask_lt", {Special::kLanemaskLt}},
      {"%lanemask_ge", {Special::kLanemaskGe}},
      {"%lanemask_gt", {Special::kLanemaskGt}},
      {"%clock", {Special::kClock}},
      {"%clock_hi", {Special::kClockHi}},
      {"%clock64", {Special::kClock64}},
      {"%globaltimer", {Special::kGlobalTimer}},
      {"%globaltimer_lo", {Special::kGlobalTimerLo}},
      {"%globaltimer_hi", {Special::kGlobalTimerHi}},
      {"%dynamic_smem_size", {Special::kDynamicSmemSize}},
      {"%total_smem_size", {Special::kTotalSmemSize}},
      {"%aggr_smem_size", {Special::kAggrSmemSize}},
      {"%current_graph_exec", {Special::kCurrentGraphExec}},
  };
  return table;
}

constexpr std::string_view kParts = "xyzw";

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The number after `prefix`, if `name` is prefix + a decimal number without leading zeros.
bool numbered(std::string_view name, std::string_view prefix, std::uint32_t* number) {
  if (name.size() <= prefix.size() || !name.starts_with(prefix)) return false;
  const std::string_view digits = name.substr(prefix.size());
  if (digits.size() > 8 || !all_digits(digits) || (digits[0] == '0' && digits.size() > 1)) {
    return false;
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), *number);
  return true;
}

}  // namespace

const Symbol* FunctionParser::find_register(NameScope& scope, std::string_view name) {
  for (RegisterRange& range : scope.ranges) {
    std::uint32_t number = 0;
    if (!numbered(name, range.prefix, &number) || number >= range.count) continue;
    if (range.ids.size() <= number) {
      const std::size_t grown = std::max<std::size_t>(number + 1, range.ids.size() * 2);
      range.ids.resize(std::min<std::size_t>(grown, range.count));
    }
    const bool predicate = range.type == Type::kPred;
    std::uint32_t& id = range.ids[number];
    if (id == 0) id = 1 + (predicate ? new_predicate() : new_register(range.type));
    range_symbol_ = {predicate ? SymbolKind::kPredicate : SymbolKind::kRegister, id - 1, 0};
    return &range_symbol_;
  }
  return nullptr;
}

const Symbol* FunctionParser::find(std::string_view name) {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].names.find(name);
    if (found != scopes_[i].names.end()) return &found->second;
    if (const Symbol* symbol = find_register(scopes_[i], name)) return symbol;
  }
  const auto found = raw_->names.find(name);
  return found == raw_->names.end() ? nullptr : &found->second;
}

Operand FunctionParser::destination(Type type) {
  if (type == Type::kPred) return destination_predicate();
  const std::string_view name = cursor_.expect_word("a register");
  if (name == "_") return {OperandKind::kSink, false, 0, 0};
  const Symbol* symbol = find(name);
  if (symbol != nullptr && symbol->kind == SymbolKind::kVector) return component(*symbol);
  if (symbol == nullptr || symbol->kind != SymbolKind::kRegister) {
    cursor_.fail("'" + std::string(name) + "' is not a register");
  }
  return {OperandKind::kReg, false, symbol->index, 0};
}

// %v.x of a vector register.
Operand FunctionParser::component(const Symbol& vector) {
  const Token& part = cursor_.peek();
  const std::size_t index = part.text.size() == 1 ? kParts.find(part.text[0]) : kParts.npos;
  if (part.kind != TokenKind::kDotted || index >= vector.size) {
    cursor_.fail_expected("a component of the vector");
  }
  const Operand operand{OperandKind::kReg, false, vector.index + static_cast<std::uint32_t>(index),
                        0};
  cursor_.take();
  return operand;
}

// %v where {a, b} could stand.
bool FunctionParser::whole_vector(unsigned count, std::vector<Operand>* operands) {
  if (cursor_.peek().kind != TokenKind::kWord) return false;
  const Symbol* symbol = find(cursor_.peek().text);
  if (symbol == nullptr || symbol->kind != SymbolKind::kVector || symbol->size != count) {
    return false;
  }
  cursor_.take();
  for (unsigned i = 0; i < count; ++i) {
    operands->push_back({OperandKind::kReg, false, symbol->index + i, 0});
  }
  return true;
}

Operand FunctionParser::destination_predicate() {
  const std::string_view name = cursor_.expect_word("a predicate");
  if (name == "_") return {OperandKind::kSink, false, 0, 0};
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != SymbolKind::kPredicate) {
    cursor_.fail("'" + std::string(name) + "' is not a predicate");
  }
  return {OperandKind::kPred, false, symbol->index, 0};
}

Operand FunctionParser::source_predicate() {
  const bool negate = cursor_.accept('!');
  if (cursor_.peek().kind != TokenKind::kWord) {
    Operand operand{OperandKind::kImm, false, 0, 0};
    if (!immediate_bits(cursor_.constant(), Type::kPred, &operand.value)) {
      cursor_.fail("bad predicate constant");
    }
    operand.value ^= negate;
    return operand;
  }
  const std::string_view name = cursor_.take().text;
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != SymbolKind::kPredicate) {
    cursor_.fail("'" + std::string(name) + "' is not a predicate");
  }
  return {OperandKind::kPred, negate, symbol->index, 0};
}

Operand FunctionParser::source(Type type) {
  if (type == Type::kPred) return source_predicate();
  const Token& token = cursor_.peek();
  if (token.kind == TokenKind::kWord && token.text != "WARP_SZ") return source_word(type);
  Operand operand{OperandKind::kImm, false, 0, 0};
  if (!immediate_bits(cursor_.constant(), type, &operand.value)) {
    cursor_.fail(std::string("the constant does not fit type .") + type_name(type));
  }
  return operand;
}

Operand FunctionParser::source_word(Type type) {
  const std::string_view name = cursor_.take().text;
  if (const Symbol* symbol = find(name)) {
    if (symbol->kind == SymbolKind::kRegister) {
      return {OperandKind::kReg, false, symbol->index, 0};
    }
    if (symbol->kind == SymbolKind::kVector) return component(*symbol);
    if (type_size(type) < 4 || is_float(type)) {
      cursor_.fail("'" + std::string(name) + "' is not a register");
    }
    const std::uint32_t element_bytes = symbol->element_bytes;
    Operand operand = symbol_value(*symbol);
    append_index(element_bytes, &operand);
    append_offset(&operand);
    return operand;
  }
  Operand operand;
  if (special(name, &operand)) return operand;
  cursor_.fail("unknown symbol '" + std::string(name) + "'");
}

// The address of a symbol as a value.
Operand FunctionParser::symbol_value(const Symbol& symbol) {
  Operand operand{OperandKind::kImm, false, 0, symbol.index};
  switch (symbol.kind) {
    case SymbolKind::kVariable:
      return {OperandKind::kVariable, false, symbol.index, 0};
    case SymbolKind::kShared:
      note_shared(symbol.index);
      if (raw_->shared[symbol.index].external) return {OperandKind::kDynShared, false, 0, 0};
      return {OperandKind::kImm, false, symbol.index + 1, 0};
    case SymbolKind::kFunction:
      raw_->info[symbol.index].address_taken = true;
      operand.value = kCodeWindow + symbol.index;
      return operand;
    case SymbolKind::kLocal:
      return {OperandKind::kFrame, false, kFrameLocals, symbol.index};
    case SymbolKind::kFrameParam:
      return {OperandKind::kFrame, false, kFrameParams, symbol.index};
    case SymbolKind::kEntryParam:
      return operand;
    default:
      cursor_.fail("the symbol has no address");
  }
}

void FunctionParser::note_shared(std::uint32_t index) {
  auto& shared = info_->shared;
  if (std::find(shared.begin(), shared.end(), index) == shared.end()) shared.push_back(index);
}

bool FunctionParser::special(std::string_view name, Operand* operand) {
  *operand = {OperandKind::kSpecial, false, 0, 0};
  std::uint32_t number = 0;
  if (numbered(name, "%envreg", &number) && number < 32) {
    operand->index = static_cast<std::uint32_t>(Special::kEnvReg);
    operand->value = number;
    return true;
  }
  if (name.starts_with("%reserved_smem_offset_")) return reserved_shared(name, operand);
  const bool wide = name.ends_with("_64");
  if (numbered(wide ? name.substr(0, name.size() - 3) : name, "%pm", &number) && number < 8) {
    operand->index = static_cast<std::uint32_t>(Special::kPm);
    operand->value = number;
    return true;
  }
  const auto found = special_table().find(name);
  if (found == special_table().end()) return false;
  operand->index = static_cast<std::uint32_t>(found->second.first);
  if (!found->second.is_vector) return true;
  const Token& part = cursor_.peek();
  if (part.kind != TokenKind::kDotted || part.text.size() != 1 ||
      kParts.find(part.text[0]) == std::string_view::npos) {
    cursor_.fail_expected(".x, .y or .z");
  }
  const std::size_t index = kParts.find(cursor_.take().text[0]);
  if (index == 3) {  // .w is always 0
    *operand = {OperandKind::kImm, false, 0, 0};
  } else {
    operand->index += static_cast<std::uint32_t>(index);
  }
  return true;
}

bool FunctionParser::reserved_shared(std::string_view name, Operand* operand) {
  name.remove_prefix(std::string_view("%reserved_smem_offset_").size());
  info_->uses_reserved_shared = true;
  *operand = {OperandKind::kDynShared, false, 0, 0};
  if (name == "begin" || name == "0" || name == "1") {
    operand->value = std::uint64_t{0} - kReservedSharedBytes;
    return true;
  }
  if (name == "cap") *operand = {OperandKind::kImm, false, 0, kReservedSharedBytes};
  return name == "cap" || name == "end";
}

// `name[index]`: the address of an element.
void FunctionParser::append_index(std::uint32_t element_bytes, Operand* operand) {
  if (!cursor_.accept('[')) return;
  const Number index = cursor_.constant();
  if (index.kind != Number::Kind::kInteger) cursor_.fail("the index is not an integer");
  operand->value += index.bits * element_bytes;
  cursor_.expect(']');
}

void FunctionParser::append_offset(Operand* operand) {
  while (cursor_.peek().is('+') || cursor_.peek().is('-')) {
    const bool minus = cursor_.take().is('-');
    const Number offset = cursor_.constant_term();
    if (offset.kind != Number::Kind::kInteger) cursor_.fail("the offset is not an integer");
    operand->value += minus ? 0 - offset.bits : offset.bits;
  }
}

Operand FunctionParser::address() {
  cursor_.expect('[');
  Operand operand{OperandKind::kAtAbs, false, 0, 0};
  if (cursor_.peek().kind == TokenKind::kWord && cursor_.peek().text != "WARP_SZ") {
    const std::string_view name = cursor_.take().text;
    const Symbol* symbol = find(name);
    if (symbol == nullptr) cursor_.fail("unknown symbol '" + std::string(name) + "'");
    address_of(*symbol, &operand);
    append_offset(&operand);
  } else {
    const Number number = cursor_.constant();
    if (number.kind != Number::Kind::kInteger) cursor_.fail("the address is not an integer");
    operand.value = number.bits;
  }
  cursor_.expect(']');
  return operand;
}

void FunctionParser::need_space(Space space) {
  if (inst_.space == Space::kGeneric) inst_.space = space;
  if (inst_.space != space) cursor_.fail("the variable is in another state space");
}

void FunctionParser::address_of(const Symbol& symbol, Operand* operand) {
  switch (symbol.kind) {
    case SymbolKind::kRegister:
      *operand = {OperandKind::kAtReg, false, symbol.index, 0};
      // The formals of a .func are in its frame.
      if (inst_.space == Space::kParam && !function_->entry) inst_.space = Space::kLocal;
      return;
    case SymbolKind::kVariable:
      *operand = {OperandKind::kAtVariable, false, symbol.index, 0};
      return need_space(raw_->impl->variables[symbol.index].space == VariableSpace::kConst
                            ? Space::kConst
                            : Space::kGlobal);
    case SymbolKind::kShared:
      note_shared(symbol.index);
      *operand = {OperandKind::kAtAbs, false, symbol.index + 1, 0};
      if (raw_->shared[symbol.index].external) *operand = {OperandKind::kAtDynShared, false, 0, 0};
      return need_space(Space::kShared);
    case SymbolKind::kLocal:
      *operand = {OperandKind::kAtFrame, false, kFrameLocals, symbol.index};
      return need_space(Space::kLocal);
    case SymbolKind::kFrameParam:
      *operand = {OperandKind::kAtFrame, false, kFrameParams, symbol.index};
      need_space(Space::kParam);
      inst_.space = Space::kLocal;
      return;
    case SymbolKind::kEntryParam:
      operand->value = symbol.index;
      return need_space(Space::kParam);
    default:
      cursor_.fail("the symbol has no address");
  }
}

// One operand, or {a, b, ..} when count > 1.
void FunctionParser::destinations(Type type, unsigned count) {
  if (count == 1) return dst(destination(type));
  if (whole_vector(count, &dsts_)) return;
  cursor_.expect('{');
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) cursor_.expect(',');
    dst(destination(type));
  }
  cursor_.expect('}');
}

void FunctionParser::sources(Type type, unsigned count) {
  if (count == 1) return src(source(type));
  if (whole_vector(count, &srcs_)) return;
  cursor_.expect('{');
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) cursor_.expect(',');
    src(source(type));
  }
  cursor_.expect('}');
}

}  // namespace softgpu::ptx
