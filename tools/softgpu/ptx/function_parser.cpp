// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/function_parser.h"

#include <algorithm>

namespace softgpu::ptx {
namespace {

constexpr std::size_t kMaxScopes = 200;           // nested braces
constexpr std::uint64_t kMaxRegisters = 1 << 20;  // in one .reg range; ptxas gives up far earlier
constexpr std::size_t kMaxSuffixes = 16;
constexpr std::uint32_t kMaxFrameAlign = 1024;

}  // namespace

void FunctionParser::run(const std::vector<ParameterDeclaration>& results,
                         const std::vector<ParameterDeclaration>& parameters) {
  scopes_.emplace_back();
  std::uint32_t offset = 0;
  for (const ParameterDeclaration& parameter : parameters) {
    if (function_->entry) {
      offset = static_cast<std::uint32_t>(round_up(offset, parameter.align));
      declare(parameter.name, {SymbolKind::kEntryParam, offset, parameter.size});
      offset += parameter.size;
    } else {
      function_->parameters.push_back(declare_formal(parameter));
    }
  }
  for (const ParameterDeclaration& result : results) {
    function_->results.push_back(declare_formal(result));
  }
  open_scope();  // a body may reuse the name of a formal
  while (scopes_.size() > 1) statement();
  close_scope();
  inst_ = {};
  inst_.op = Opcode::kRet;
  inst_.line = cursor_.line();
  emit();  // where control would fall off the end
  info_->local_bytes = std::max(info_->local_bytes, local_top_);
}

Formal FunctionParser::declare_formal(const ParameterDeclaration& parameter) {
  Formal formal;
  formal.size = parameter.size;
  formal.align = parameter.align;
  if (parameter.is_register) {
    const bool predicate = parameter.type == Type::kPred;
    formal.place.kind = predicate ? OperandKind::kPred : OperandKind::kReg;
    formal.place.index = predicate ? new_predicate() : new_register(parameter.type);
    declare(parameter.name, {predicate ? SymbolKind::kPredicate : SymbolKind::kRegister,
                             formal.place.index, parameter.size});
    return formal;
  }
  param_top_ = static_cast<std::uint32_t>(round_up(param_top_, parameter.align));
  formal.place.kind = OperandKind::kFrame;
  formal.place.index = kFrameParams;
  formal.place.value = param_top_;
  if (parameter.name != "_") {
    declare(parameter.name, {SymbolKind::kFrameParam, param_top_, parameter.size});
  }
  function_->frame_align = std::max(function_->frame_align, parameter.align);
  param_top_ += parameter.size;
  info_->param_bytes = std::max(info_->param_bytes, param_top_);
  if (param_top_ > kMaxFrameBytes) cursor_.fail("too many parameters");
  return formal;
}

void FunctionParser::statement() {
  const Token& token = cursor_.peek();
  if (cursor_.accept('{')) return open_scope();
  if (cursor_.accept('}')) return close_scope();
  if (cursor_.accept(';')) return;
  if (token.is('@')) return guarded_instruction();
  if (token.kind == TokenKind::kDotted) return directive();
  if (token.kind == TokenKind::kWord && cursor_.peek(1).is(':')) return label();
  if (token.kind == TokenKind::kWord) return instruction(kNoGuard, false);
  cursor_.fail_expected("an instruction");
}

void FunctionParser::directive() {
  auto* names = &scopes_.back().names;
  if (cursor_.accept_dotted("reg")) return declare_registers();
  if (cursor_.accept_dotted("local")) return declare_local();
  if (cursor_.accept_dotted("param")) return declare_param();
  if (cursor_.accept_dotted("shared")) return parse_shared(cursor_, raw_, false, names);
  if (cursor_.accept_dotted("extern")) {
    if (cursor_.accept_dotted("shared")) return parse_shared(cursor_, raw_, true, names);
    cursor_.fail_expected(".shared");
  }
  if (cursor_.accept_dotted("global")) {
    return parse_variables(cursor_, raw_, VariableSpace::kGlobal, false, false, names);
  }
  if (cursor_.accept_dotted("const")) {
    return parse_variables(cursor_, raw_, VariableSpace::kConst, false, false, names);
  }
  if (cursor_.accept_dotted("pragma")) return cursor_.skip_statement();
  cursor_.fail_here("'." + std::string(cursor_.peek().text) + "' is not supported in a function");
}

void FunctionParser::declare(std::string_view name, Symbol symbol) {
  if (!scopes_.back().names.emplace(name, symbol).second) {
    cursor_.fail("'" + std::string(name) + "' is declared twice");
  }
}

std::uint32_t FunctionParser::new_register(Type type) {
  info_->registers.push_back(type);
  return static_cast<std::uint32_t>(info_->registers.size() - 1);
}

std::uint32_t FunctionParser::new_predicate() {
  return info_->predicates++;
}

void FunctionParser::declare_registers() {
  const TypePrefix prefix = parse_type_prefix(cursor_);
  do {
    const std::string_view name = cursor_.expect_word("a register");
    if (cursor_.accept('<')) {
      declare_range(name, prefix);
    } else if (prefix.type == Type::kPred) {
      declare(name, {SymbolKind::kPredicate, new_predicate(), 0});
    } else {
      const std::uint32_t first = new_register(prefix.type);
      for (std::uint32_t i = 1; i < prefix.vector; ++i) new_register(prefix.type);
      declare(name, {prefix.vector > 1 ? SymbolKind::kVector : SymbolKind::kRegister, first,
                     prefix.vector});
    }
  } while (cursor_.accept(','));
  cursor_.expect(';');
}

void FunctionParser::declare_range(std::string_view name, const TypePrefix& prefix) {
  if (prefix.vector > 1) cursor_.fail("ranges of vector registers are not supported");
  scopes_.back().ranges.push_back({name, prefix.type, range_count(), {}});
}

// After '<' of `name<count>`.
std::uint32_t FunctionParser::range_count() {
  if (cursor_.peek().kind != TokenKind::kNumber) cursor_.fail_expected("a number");
  Number count;
  if (!parse_number(cursor_.take().text, &count) || count.bits > kMaxRegisters) {
    cursor_.fail("count of names out of range");
  }
  cursor_.expect('>');
  return static_cast<std::uint32_t>(count.bits);
}

void FunctionParser::declare_local() {
  const TypePrefix prefix = parse_type_prefix(cursor_);
  if (type_size(prefix.type) == 0) cursor_.fail("bad variable type");
  do {
    const Declarator declarator = parse_declarator(cursor_);
    if (prefix.alignment() > kMaxFrameAlign) cursor_.fail("alignment out of range");
    const std::uint64_t size = declarator.bytes(cursor_, prefix, kMaxFrameBytes);
    const std::uint64_t offset = round_up(local_top_, prefix.alignment());
    if (offset + size > kMaxFrameBytes) cursor_.fail("too much local memory");
    declare(declarator.name,
            {SymbolKind::kLocal, static_cast<std::uint32_t>(offset), 0, prefix.element_bytes()});
    function_->frame_align = std::max(function_->frame_align, prefix.alignment());
    local_top_ = static_cast<std::uint32_t>(offset + size);
  } while (cursor_.accept(','));
  cursor_.expect(';');
}

void FunctionParser::declare_param() {
  const TypePrefix prefix = parse_type_prefix(cursor_);
  if (type_size(prefix.type) == 0) cursor_.fail("bad variable type");
  if (prefix.alignment() > kMaxFrameAlign) cursor_.fail("alignment out of range");
  do {
    const Declarator declarator = parse_declarator(cursor_);
    if (!cursor_.accept('<')) {
      declare_param(declarator, prefix);
      continue;
    }
    Declarator one = declarator;
    const std::uint32_t count = range_count();
    for (std::uint32_t i = 0; i < count; ++i) {
      one.name = range_names_.emplace_back(std::string(declarator.name) + std::to_string(i));
      declare_param(one, prefix);
    }
  } while (cursor_.accept(','));
  cursor_.expect(';');
}

void FunctionParser::declare_param(const Declarator& declarator, const TypePrefix& prefix) {
  const std::uint64_t size = declarator.bytes(cursor_, prefix, kMaxParamBytes);
  const std::uint64_t offset = round_up(param_top_, prefix.alignment());
  if (offset + size > kMaxFrameBytes) cursor_.fail("too many parameters");
  declare(declarator.name, {SymbolKind::kFrameParam, static_cast<std::uint32_t>(offset),
                            static_cast<std::uint32_t>(size), prefix.element_bytes()});
  function_->frame_align = std::max(function_->frame_align, prefix.alignment());
  param_top_ = static_cast<std::uint32_t>(offset + size);
  info_->param_bytes = std::max(info_->param_bytes, param_top_);
}

void FunctionParser::label() {
  const std::string_view name = cursor_.take().text;
  cursor_.expect(':');
  if (cursor_.accept_dotted("branchtargets")) return branch_targets(name);
  if (cursor_.peek().is_dotted("callprototype") || cursor_.peek().is_dotted("calltargets")) {
    return skip_prototype(name);
  }
  const auto at = static_cast<std::uint32_t>(function_->code.size());
  if (!scopes_.back().labels.emplace(name, at).second) {
    cursor_.fail("label '" + std::string(name) + "' is defined twice");
  }
}

void FunctionParser::branch_targets(std::string_view name) {
  const auto table = static_cast<std::uint32_t>(function_->tables.size());
  declare(name, {SymbolKind::kTable, table, 0});
  function_->tables.emplace_back();
  do {
    LabelUse use;
    use.line = cursor_.line();
    use.name = cursor_.expect_word("a label");
    use.in_table = true;
    use.table = table;
    use.position = static_cast<std::uint32_t>(function_->tables.back().size());
    function_->tables.back().push_back(0);
    scopes_.back().uses.push_back(use);
  } while (cursor_.accept(','));
  cursor_.expect(';');
}

void FunctionParser::skip_prototype(std::string_view name) {
  declare(name, {SymbolKind::kPrototype, 0, 0});
  cursor_.skip_statement();
}

void FunctionParser::open_scope() {
  if (scopes_.size() >= kMaxScopes) cursor_.fail("braces are nested too deeply");
  scopes_.emplace_back();
  param_marks_.push_back(param_top_);
}

// Labels are known in the scope that defines them and in those inside it.
void FunctionParser::close_scope() {
  NameScope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const LabelUse& use : scope.uses) {
    const auto found = scope.labels.find(use.name);
    if (found == scope.labels.end()) {
      if (scopes_.empty()) {
        throw SyntaxError{use.line, "unknown label '" + std::string(use.name) + "'"};
      }
      scopes_.back().uses.push_back(use);
    } else if (use.in_table) {
      function_->tables[use.table][use.position] = found->second;
    } else {
      function_->code[use.instruction].target = found->second;
    }
  }
  if (!param_marks_.empty()) {
    param_top_ = param_marks_.back();  // the .param variables of a finished call
    param_marks_.pop_back();
  }
}

void FunctionParser::guarded_instruction() {
  cursor_.expect('@');
  const bool negate = cursor_.accept('!');
  const std::string_view name = cursor_.expect_word("a predicate");
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != SymbolKind::kPredicate) {
    cursor_.fail("'" + std::string(name) + "' is not a predicate");
  }
  instruction(static_cast<std::int32_t>(symbol->index), negate);
}

const Form& FunctionParser::read_form() {
  const Token& opcode = cursor_.peek();
  if (opcode.kind != TokenKind::kWord) cursor_.fail_expected("an instruction");
  std::string_view suffixes[kMaxSuffixes];
  std::size_t count = 0;
  const char* end = opcode.text.data() + opcode.text.size();
  while (cursor_.peek(count + 1).kind == TokenKind::kDotted) {
    if (count == kMaxSuffixes) cursor_.fail("too many suffixes");
    suffixes[count] = cursor_.peek(count + 1).text;
    end = suffixes[count].data() + suffixes[count].size();
    ++count;
  }
  const std::string_view spelling(opcode.text.data(),
                                  static_cast<std::size_t>(end - opcode.text.data()));
  auto found = forms_->find(spelling);
  if (found == forms_->end()) {
    Form form;
    std::string error;
    if (!decode_form(opcode.text, suffixes, count, &form, &error))
      cursor_.fail_here(std::move(error));
    found = forms_->emplace(spelling, form).first;
  }
  for (std::size_t i = 0; i <= count; ++i) cursor_.take();
  return found->second;
}

void FunctionParser::instruction(std::int32_t guard, bool negate) {
  const std::uint32_t line = cursor_.line();
  const Form& form = read_form();
  inst_ = form.instruction;
  inst_.guard = guard;
  inst_.guard_negate = negate;
  inst_.line = line;
  if (form.own_syntax) {
    own_syntax();
  } else {
    read_operands(form.operands, inst_);
    if (inst_.op == Opcode::kAdd || inst_.op == Opcode::kSub) split_sum();
  }
  if (form.cache_hint) {
    cursor_.expect(',');
    source(Type::kB64);
  }
  if (form.destination_only) {  // createpolicy: no cache here, so any value will do
    inst_.source_type = inst_.type;
    src({OperandKind::kImm, false, 0, 0});
  }
  cursor_.expect(';');
  if (!dsts_.empty() || inst_.op != Opcode::kMov) emit();
}

void FunctionParser::read_operands(const char* plan, const Instruction& inst) {
  bool first = true;
  for (const char* letter = plan; *letter != '\0'; ++letter) {
    if (*letter == '*') {
      while (!cursor_.peek().is(';') && !cursor_.at_end()) cursor_.take();
      return;
    }
    if (*letter == ':') {
      if (cursor_.accept('|')) dst(destination_predicate());
      continue;
    }
    if (!first) cursor_.expect(',');
    first = false;
    switch (*letter) {
      case 'd':
        dst(destination(inst.type));
        break;
      case 'D':
        dst(destination(Type::kB64));
        break;
      case 'p':
        dst(destination_predicate());
        break;
      case 'a':
        src(source(inst.type));
        break;
      case 's':
        src(source(inst.source_type));
        break;
      case 'w':
        src(source(type_size(inst.type) == 4 ? Type::kB64 : Type::kB32));
        break;
      case 'u':
        src(source(Type::kU32));
        break;
      case 'l':
        src(source(Type::kU64));
        break;
      default:
        src(source_predicate());
        break;
    }
  }
}

// vadd and vsub with a third operand: a first sum into a new register.
void FunctionParser::split_sum() {
  if (srcs_.size() < 3) return;
  const Operand target = dsts_[0];
  const Operand third = srcs_[2];
  const Operand temporary{OperandKind::kReg, false, new_register(inst_.type), 0};
  dsts_ = {temporary};
  srcs_.pop_back();
  emit();
  inst_.op = Opcode::kAdd;
  dsts_ = {target};
  srcs_ = {temporary, third};
}

void FunctionParser::own_syntax() {
  switch (inst_.op) {
    case Opcode::kMov:
      return inst_.vector > 1 ? move_vector() : move();
    case Opcode::kLd:
      return load();
    case Opcode::kSt:
      return store();
    case Opcode::kAtom:
    case Opcode::kRed:
      return atomic();
    case Opcode::kShfl:
      return shuffle();
    case Opcode::kVote:
      return vote();
    case Opcode::kBarSync:
    case Opcode::kBarArrive:
    case Opcode::kBarRed:
      return barrier();
    case Opcode::kBra:
      return branch();
    case Opcode::kBrx:
      return indexed_branch();
    default:
      return call();
  }
}

void FunctionParser::emit() {
  inst_.operands = static_cast<std::uint32_t>(function_->operands.size());
  inst_.dst_count = static_cast<std::uint8_t>(dsts_.size());
  inst_.src_count = static_cast<std::uint8_t>(srcs_.size());
  function_->operands.insert(function_->operands.end(), dsts_.begin(), dsts_.end());
  function_->operands.insert(function_->operands.end(), srcs_.begin(), srcs_.end());
  function_->code.push_back(inst_);
  dsts_.clear();
  srcs_.clear();
}

}  // namespace softgpu::ptx
