// SPDX-License-Identifier: Apache-2.0
// Makes the executable form of a function from its instructions: picks handlers, numbers rows,
// gathers constants. Runs once per function, on whichever thread first calls it.
#include <map>
#include <utility>

#include "tools/softgpu/ptx/calls.h"
#include "tools/softgpu/ptx/code.h"

namespace softgpu::ptx {

namespace {

Handler select_handler(const Function& function, const Instruction& i) {
  if (i.op == Opcode::kCall || i.op == Opcode::kRet) {
    return select_call(i, i.op == Opcode::kCall && function.calls[i.target].indirect);
  }
  using Selector = Handler (*)(const Instruction&);
  static constexpr Selector kSelectors[] = {
      select_integer, select_float,  select_half,   select_compare, select_move,
      select_convert, select_memory, select_atomic, select_warp,    select_control};
  for (const Selector select : kSelectors) {
    if (const Handler handler = select(i)) return handler;
  }
  return run_unsupported;
}

// Whether source `index` of an instruction is a predicate.
bool is_predicate_source(const Instruction& i, unsigned index) {
  switch (i.op) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kMov:
      return i.type == Type::kPred;
    case Opcode::kSelp:
    case Opcode::kSetp:
    case Opcode::kSet:
    case Opcode::kBarRed:
      return index == 2;
    case Opcode::kLop3:
      return index == 4;
    case Opcode::kVote:
      return index == 0;
    default:
      return false;
  }
}

bool is_predicate_destination(const Instruction& i, unsigned index) {
  switch (i.op) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kMov:
      return i.type == Type::kPred;
    case Opcode::kSetp:
    case Opcode::kTestp:
    case Opcode::kIsspacep:
      return true;
    case Opcode::kVote:
      return i.vote_mode != VoteMode::kBallot;
    case Opcode::kBarRed:
      return i.barrier_op != BarrierOp::kPopc;
    case Opcode::kLop3:
    case Opcode::kShfl:
    case Opcode::kMatchAll:
    case Opcode::kElect:
      return index == 1;
    default:
      return false;
  }
}

class FunctionTranslator {
 public:
  FunctionTranslator(const Module::Impl& module, const Function& function)
      : module_(module), function_(function), code_(std::make_unique<Code>()) {}

  std::unique_ptr<const Code> run() {
    code_->function = &function_;
    sink_ = function_.slots;
    next_row_ = function_.slots + 1;
    code_->predicates = function_.predicates + kFirstPredicate;
    constant(0);  // ~0: what an absent operand reads
    starts_.reserve(function_.code.size() + 1);
    for (const Instruction& i : function_.code) {
      starts_.push_back(static_cast<std::uint32_t>(code_->ops.size()));
      translate(i);
    }
    starts_.push_back(static_cast<std::uint32_t>(code_->ops.size()));
    link();
    code_->rows = next_row_;
    return std::move(code_);
  }

 private:
  Ref constant(std::uint64_t value) {
    const auto [at, added] =
        constants_.try_emplace(value, static_cast<Ref>(code_->constants.size()));
    if (added) {
      Row row;
      for (std::uint64_t& lane : row.lane) lane = value;
      code_->constants.push_back(row);
    }
    return ~at->second;
  }

  static Ref predicate(const Operand& operand) {
    if (operand.kind == OperandKind::kImm) {
      return (operand.value != 0) != operand.negate ? kTruePredicate : kFalsePredicate;
    }
    if (operand.kind != OperandKind::kPred) return kFalsePredicate;
    return static_cast<Ref>((operand.index + kFirstPredicate) << 1) | (operand.negate ? 1 : 0);
  }

  // An operation of our own ahead of `main` that brings a value into a fresh row.
  Ref prepare(const Op& main, Handler handler, std::uint32_t target, std::uint64_t displacement) {
    Op op;
    op.run = handler;
    op.source = main.source;
    op.guard = main.guard;
    op.guarded = main.guarded;
    op.target = target;
    op.displacement = displacement;
    op.d = static_cast<Ref>(next_row_++);
    code_->ops.push_back(op);
    return op.d;
  }

  std::uint64_t address_of(const Operand& operand) const {
    return module_.variables[operand.index].address + operand.value;
  }

  Ref source(Op* op, const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::kReg:
        return static_cast<Ref>(operand.index);
      case OperandKind::kPred:
        return predicate(operand);
      case OperandKind::kNone:
      case OperandKind::kSink:
        return constant(0);
      case OperandKind::kImm:
        return constant(operand.value);
      case OperandKind::kVariable:
        return constant(address_of(operand));
      case OperandKind::kSpecial:
        return prepare(*op, read_special, operand.index, operand.value);
      case OperandKind::kFrame:
        return prepare(*op, read_frame_address, 0, operand.value);
      case OperandKind::kDynShared:
        return prepare(*op, read_dynamic_shared, 0, operand.value);
      case OperandKind::kAtReg:
        op->displacement = operand.value;
        return static_cast<Ref>(operand.index);
      case OperandKind::kAtAbs:
        return constant(operand.value);
      case OperandKind::kAtVariable:
        return constant(address_of(operand));
      case OperandKind::kAtFrame:
        op->base = Base::kFrame;
        op->displacement = operand.value;
        return constant(0);
      case OperandKind::kAtDynShared:
        op->base = Base::kDynShared;
        op->displacement = operand.value;
        return constant(0);
    }
    return constant(0);
  }

  void translate(const Instruction& i) {
    Op op;
    op.source = &i;
    op.run = select_handler(function_, i);
    op.target = i.target;
    op.reconverge = i.reconverge;
    if (i.guard != kNoGuard) {
      op.guarded = true;
      op.guard = static_cast<Ref>((static_cast<std::uint32_t>(i.guard) + kFirstPredicate) << 1) |
                 (i.guard_negate ? 1 : 0);
    }
    const Operand* dsts = function_.dsts(i);
    const Operand* srcs = function_.srcs(i);
    if (reads_directly(i, dsts, srcs, &op)) {
      code_->ops.push_back(op);
      return;
    }
    std::vector<Ref> refs;
    for (unsigned k = 0; k < i.dst_count; ++k) refs.push_back(destination(i, k, dsts[k]));
    for (unsigned k = 0; k < i.src_count; ++k) {
      refs.push_back(is_predicate_source(i, k) ? predicate(srcs[k]) : source(&op, srcs[k]));
    }
    op.list = static_cast<std::uint32_t>(code_->refs.size());
    code_->refs.insert(code_->refs.end(), refs.begin(), refs.end());
    const Ref none = constant(0);
    const auto ref = [&](unsigned k) { return k < refs.size() ? refs[k] : none; };
    op.has_d = i.dst_count > 0 && is_wanted(dsts[0]);
    op.has_p = i.dst_count > 1 && is_wanted(dsts[1]) && is_predicate_destination(i, 1);
    op.d = i.dst_count > 0 ? refs[0] : static_cast<Ref>(sink_);
    if (op.has_p) op.p = refs[1];
    op.a = ref(i.dst_count);
    op.b = ref(i.dst_count + 1u);
    op.c = ref(i.dst_count + 2u);
    op.e = ref(i.dst_count + 3u);
    code_->ops.push_back(op);
  }

  // mov from a special register, the frame or dynamic shared memory needs no extra row.
  static bool reads_directly(const Instruction& i, const Operand* dsts, const Operand* srcs,
                             Op* op) {
    if (i.op != Opcode::kMov || i.dst_count != 1 || dsts[0].kind != OperandKind::kReg) return false;
    switch (srcs[0].kind) {
      case OperandKind::kSpecial:
        op->run = read_special;
        op->target = srcs[0].index;
        break;
      case OperandKind::kFrame:
        op->run = read_frame_address;
        break;
      case OperandKind::kDynShared:
        op->run = read_dynamic_shared;
        break;
      default:
        return false;
    }
    op->displacement = srcs[0].value;
    op->d = static_cast<Ref>(dsts[0].index);
    return true;
  }

  static bool is_wanted(const Operand& operand) {
    return operand.kind == OperandKind::kReg || operand.kind == OperandKind::kPred;
  }

  Ref destination(const Instruction& i, unsigned index, const Operand& operand) const {
    if (is_predicate_destination(i, index)) {
      if (operand.kind == OperandKind::kPred) return predicate(operand);
      return kPredicateSink;
    }
    return static_cast<Ref>(operand.kind == OperandKind::kReg ? operand.index : sink_);
  }

  // Instruction indices become op indices.
  void link() {
    for (Op& op : code_->ops) {
      const Opcode code = op.source->op;
      const bool branches = code == Opcode::kBra || code == Opcode::kBrx;
      if (!branches || op.run == read_special) continue;
      op.reconverge = starts_[std::min<std::size_t>(op.source->reconverge, starts_.size() - 1)];
      if (code == Opcode::kBra) op.target = starts_[op.source->target];
    }
    for (const auto& table : function_.tables) {
      code_->tables.emplace_back();
      for (const std::uint32_t target : table) code_->tables.back().push_back(starts_[target]);
    }
  }

  const Module::Impl& module_;
  const Function& function_;
  std::unique_ptr<Code> code_;
  std::map<std::uint64_t, Ref> constants_;
  std::vector<std::uint32_t> starts_;
  std::uint32_t sink_ = 0;
  std::uint32_t next_row_ = 0;
};

}  // namespace

Translation::Translation(const Module::Impl& module)
    : module_(module), entries_(std::make_unique<Entry[]>(module.functions.size())) {}

const Code& Translation::code(std::uint32_t function) {
  Entry& entry = entries_[function];
  std::call_once(entry.once, [&] {
    entry.code = FunctionTranslator(module_, *module_.functions[function]).run();
  });
  return *entry.code;
}

Translation& Translation::of(const Module& module) {
  const Module::Impl& impl = module.impl();
  std::call_once(impl.translate_once,
                 [&] { impl.translation = std::make_shared<Translation>(impl); });
  return *impl.translation;
}

}  // namespace softgpu::ptx
