// SPDX-License-Identifier: Apache-2.0
// FunctionParser: the instructions whose operands do not follow a simple plan.
#include "tools/softgpu/ptx/function_parser.h"

namespace softgpu::ptx {
namespace {

constexpr unsigned kMaxPack = 8;

Type bits_of(unsigned bytes) {
  switch (bytes) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    default:
      return Type::kB64;
  }
}

// The operands between braces, counted ahead.
unsigned count_braced(const Cursor& cursor, std::size_t at) {
  unsigned count = 1;
  for (std::size_t i = at + 1; !cursor.peek(i).is('}'); ++i) {
    if (cursor.peek(i).kind == TokenKind::kEnd || count > kMaxPack) return 0;
    count += cursor.peek(i).is(',');
  }
  return count;
}

}  // namespace

// How many elements a vector at this place has, in braces or as a vector register; 0: no vector.
unsigned FunctionParser::vector_ahead() {
  const Token& token = cursor_.peek();
  unsigned count = 0;
  if (token.is('{')) {
    count = count_braced(cursor_, 0);
  } else {
    if (token.kind != TokenKind::kWord || cursor_.peek(1).kind == TokenKind::kDotted) return 0;
    const Symbol* symbol = find(token.text);
    if (symbol == nullptr || symbol->kind != SymbolKind::kVector) return 0;
    count = symbol->size;
    if (type_size(info_->registers[symbol->index]) * count != type_size(inst_.type)) {
      cursor_.fail_here("bad vector size");
    }
  }
  if (count < 2 || type_size(inst_.type) % count != 0) cursor_.fail_here("bad vector size");
  return count;
}

// mov d, a; mov d, {a, b}; mov {a, b}, d.
void FunctionParser::move() {
  if (const unsigned count = vector_ahead()) {
    inst_.op = Opcode::kUnpack;
    destinations(bits_of(type_size(inst_.type) / count), count);
    cursor_.expect(',');
    return src(source(inst_.type));
  }
  dst(destination(inst_.type));
  cursor_.expect(',');
  const unsigned count = vector_ahead();
  if (count == 0) return src(source(inst_.type));
  inst_.op = Opcode::kPack;
  sources(bits_of(type_size(inst_.type) / count), count);
}

// mov.v2.u32 {a, b}, {c, d} is that many moves, done through new registers because they happen at
// once.
void FunctionParser::move_vector() {
  const unsigned count = inst_.vector;
  if (inst_.type == Type::kPred) cursor_.fail("bad vector type");
  inst_.vector = 1;
  destinations(inst_.type, count);
  cursor_.expect(',');
  sources(inst_.type, count);
  const std::vector<Operand> targets = std::move(dsts_);
  const std::vector<Operand> values = std::move(srcs_);
  std::vector<Operand> temporaries;
  for (const Operand& value : values) {
    temporaries.push_back({OperandKind::kReg, false, new_register(inst_.type), 0});
    dsts_ = {temporaries.back()};
    srcs_ = {value};
    emit();
  }
  for (unsigned i = 0; i < count; ++i) {
    if (targets[i].kind == OperandKind::kSink) continue;
    dsts_ = {targets[i]};
    srcs_ = {temporaries[i]};
    emit();
  }
}

void FunctionParser::load() {
  destinations(inst_.type, inst_.vector);
  cursor_.expect(',');
  src(address());
}

void FunctionParser::store() {
  src(address());
  cursor_.expect(',');
  sources(inst_.type, inst_.vector);
}

void FunctionParser::atomic() {
  if (inst_.op == Opcode::kAtom) {
    destinations(inst_.type, inst_.vector);
    cursor_.expect(',');
  }
  src(address());
  cursor_.expect(',');
  sources(inst_.type, inst_.vector);
  if (inst_.atom_op != AtomOp::kCas) return;
  cursor_.expect(',');
  src(source(inst_.type));
}

// shfl d[|p], a, b, c[, mask]
void FunctionParser::shuffle() {
  read_operands(inst_.sync ? "d:auuu" : "d:auu", inst_);
}

void FunctionParser::vote() {
  if (inst_.vote_mode == VoteMode::kBallot) {
    read_operands(inst_.sync ? "dPu" : "dP", inst_);
  } else {
    read_operands(inst_.sync ? "pPu" : "pP", inst_);
  }
}

// bar.sync a[, b]; bar.arrive a, b; bar.red d, a[, b], p
void FunctionParser::barrier() {
  if (inst_.op == Opcode::kBarRed) {
    dst(destination(inst_.type));
    cursor_.expect(',');
  }
  src(source(Type::kU32));
  Operand count;
  if (inst_.op == Opcode::kBarRed) {
    cursor_.expect(',');
    const Token& token = cursor_.peek();
    const Symbol* symbol = token.kind == TokenKind::kWord ? find(token.text) : nullptr;
    const bool is_predicate =
        token.is('!') || (symbol != nullptr && symbol->kind == SymbolKind::kPredicate);
    if (!is_predicate) {
      count = source(Type::kU32);
      if (cursor_.peek().is(',')) {
        cursor_.expect(',');
      } else {  // it was the predicate after all, a constant
        if (count.kind != OperandKind::kImm) cursor_.fail_expected("a predicate");
        src({});
        return src({OperandKind::kImm, false, 0, count.value != 0});
      }
    }
    src(count);
    return src(source_predicate());
  }
  if (cursor_.accept(',')) count = source(Type::kU32);
  if (inst_.op == Opcode::kBarArrive && count.kind == OperandKind::kNone) {
    cursor_.fail_expected("the thread count");
  }
  src(count);
}

void FunctionParser::branch() {
  LabelUse use;
  use.line = cursor_.line();
  use.name = cursor_.expect_word("a label");
  use.instruction = static_cast<std::uint32_t>(function_->code.size());
  scopes_.back().uses.push_back(use);
}

void FunctionParser::indexed_branch() {
  src(source(Type::kU32));
  cursor_.expect(',');
  const std::string_view name = cursor_.expect_word("a branch table");
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != SymbolKind::kTable) {
    cursor_.fail("'" + std::string(name) + "' is not a branch table");
  }
  inst_.target = symbol->index;
}

// call [(results),] target[, (arguments)][, prototype]
void FunctionParser::call() {
  const std::uint32_t line = cursor_.line();
  Call call;
  if (cursor_.peek().is('(')) {
    call.results = call_list(true);
    cursor_.expect(',');
  }
  call_target(&call);
  bool has_list = false;
  while (cursor_.accept(',')) {
    if (cursor_.peek().is('(') && !has_list) {
      call.arguments = call_list(false);
      has_list = true;
      continue;
    }
    const std::string_view name = cursor_.expect_word("a prototype");
    const Symbol* symbol = find(name);
    if (!call.indirect || symbol == nullptr || symbol->kind != SymbolKind::kPrototype) {
      cursor_.fail("'" + std::string(name) + "' is not a prototype");
    }
  }
  inst_.target = static_cast<std::uint32_t>(function_->calls.size());
  function_->calls.push_back(std::move(call));
  info_->call_lines.push_back(line);
}

std::vector<CallOperand> FunctionParser::call_list(bool results) {
  std::vector<CallOperand> list;
  cursor_.expect('(');
  while (!cursor_.accept(')')) {
    CallOperand operand;
    const Token& token = cursor_.peek();
    const Symbol* symbol = token.kind == TokenKind::kWord ? find(token.text) : nullptr;
    if (symbol != nullptr && symbol->kind == SymbolKind::kFrameParam) {
      operand.place = {OperandKind::kFrame, false, kFrameParams, symbol->index};
      operand.size = symbol->size;
      cursor_.take();
    } else if (symbol != nullptr && symbol->kind == SymbolKind::kPredicate) {
      operand.place = results ? destination_predicate() : source_predicate();
    } else {
      operand.place = results ? destination(Type::kB64) : source(Type::kB64);
      const OperandKind kind = operand.place.kind;
      if (kind != OperandKind::kReg && kind != OperandKind::kImm && kind != OperandKind::kSink) {
        cursor_.fail("bad call argument");
      }
    }
    list.push_back(operand);
    if (!cursor_.accept(',') && !cursor_.peek().is(')')) cursor_.fail_expected("',' or ')'");
  }
  return list;
}

void FunctionParser::call_target(Call* call) {
  const std::string_view name = cursor_.expect_word("a function");
  const Symbol* symbol = find(name);
  if (symbol == nullptr) cursor_.fail("unknown function '" + std::string(name) + "'");
  if (symbol->kind == SymbolKind::kRegister) {
    call->indirect = true;
    call->pointer = {OperandKind::kReg, false, symbol->index, 0};
    info_->calls_pointers = true;
    return;
  }
  if (symbol->kind != SymbolKind::kFunction) {
    cursor_.fail("'" + std::string(name) + "' is not a function");
  }
  call->function = symbol->index;
}

}  // namespace softgpu::ptx
