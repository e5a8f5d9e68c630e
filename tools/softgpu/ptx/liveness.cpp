// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/liveness.h"

#include <algorithm>
#include <queue>

namespace softgpu::ptx {
namespace {

using Word = std::uint64_t;
constexpr std::uint32_t kNone = 0xffffffff;

// Instructions [low, high] in text order in which a value may be alive.
struct Interval {
  std::uint32_t low = kNone, high = 0;
  void extend(std::uint32_t at) {
    low = std::min(low, at);
    high = std::max(high, at);
  }
  bool is_empty() const { return low == kNone; }
};

void add_access(const Operand& operand, bool is_write, std::vector<Access>* list) {
  if (operand.kind == OperandKind::kReg || operand.kind == OperandKind::kAtReg) {
    list->push_back({false, is_write, operand.index});
  } else if (operand.kind == OperandKind::kPred) {
    list->push_back({true, is_write, operand.index});
  }
}

// Data flow over the values that cross block borders; the others need no bits.
class Liveness {
 public:
  Liveness(const Function& function, const FunctionInfo& info, const ControlFlow& flow)
      : function_(function),
        flow_(flow),
        registers_(static_cast<std::uint32_t>(info.registers.size())),
        intervals_(info.registers.size() + info.predicates),
        global_(intervals_.size(), kNone) {}

  std::vector<Interval> run() {
    find_crossing();
    words_ = (count_ + 63) / 64;
    const std::size_t size = flow_.blocks.size() * words_;
    used_.resize(size);
    killed_.resize(size);
    defined_.resize(size);
    live_in_.resize(size);
    defined_in_.resize(size);
    scan_blocks();
    solve_live();
    solve_defined();
    widen();
    return std::move(intervals_);
  }

 private:
  std::uint32_t id(const Access& access) const {
    return access.is_predicate ? registers_ + access.index : access.index;
  }
  static bool test(const Word* set, std::uint32_t bit) { return set[bit / 64] >> (bit % 64) & 1; }
  static void add(Word* set, std::uint32_t bit) { set[bit / 64] |= Word{1} << (bit % 64); }
  Word* row(std::vector<Word>& bits, std::size_t block) { return bits.data() + block * words_; }

  // A write under a guard keeps the old value in some lanes, so it ends no life.
  static bool ends_life(const Instruction& inst, const Access& access) {
    return access.is_write && inst.guard == kNoGuard;
  }

  // Gives a number to each value that is read in a block before the block has written it, and the
  // plain intervals.
  void find_crossing() {
    std::vector<std::uint32_t> written(intervals_.size(), kNone);  // last block that wrote it
    std::vector<Access> list;
    for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
      for (std::uint32_t i = flow_.blocks[b].first; i < flow_.blocks[b].end; ++i) {
        list.clear();
        list_accesses(function_, function_.code[i], &list);
        for (const Access& access : list) {
          const std::uint32_t value = id(access);
          intervals_[value].extend(i);
          if (!access.is_write && written[value] != b && global_[value] == kNone) {
            global_[value] = count_++;
          }
          if (ends_life(function_.code[i], access)) written[value] = b;
        }
      }
    }
  }

  void scan_blocks() {
    std::vector<Access> list;
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      for (std::uint32_t i = flow_.blocks[b].first; i < flow_.blocks[b].end; ++i) {
        list.clear();
        list_accesses(function_, function_.code[i], &list);
        for (const Access& access : list) {
          const std::uint32_t bit = global_[id(access)];
          if (bit == kNone) continue;
          if (!access.is_write && !test(row(killed_, b), bit)) add(row(used_, b), bit);
          if (access.is_write) add(row(defined_, b), bit);
          if (ends_life(function_.code[i], access)) add(row(killed_, b), bit);
        }
      }
    }
    for (const Formal& formal : function_.parameters) {
      std::vector<Access> formal_access;
      add_access(formal.place, true, &formal_access);
      for (const Access& access : formal_access) {
        intervals_[id(access)].extend(0);
        if (global_[id(access)] != kNone) add(row(defined_in_, 0), global_[id(access)]);
      }
    }
  }

  void solve_live() {
    std::vector<Word> out(words_);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = flow_.blocks.size(); b-- > 0;) {
        live_out(b, &out);
        Word* in = row(live_in_, b);
        for (std::size_t w = 0; w < words_; ++w) {
          const Word next = row(used_, b)[w] | (out[w] & ~row(killed_, b)[w]);
          changed |= next != in[w];
          in[w] = next;
        }
      }
    }
  }

  void live_out(std::size_t block, std::vector<Word>* out) {
    std::fill(out->begin(), out->end(), 0);
    for (std::uint32_t s : flow_.blocks[block].successors) {
      if (s == flow_.blocks.size()) continue;
      for (std::size_t w = 0; w < words_; ++w) (*out)[w] |= row(live_in_, s)[w];
    }
  }

  // What some path has written before the block. Without it a value whose only writes are guarded
  // would seem alive from the start of the function.
  void solve_defined() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
        for (std::uint32_t s : flow_.blocks[b].successors) {
          if (s == flow_.blocks.size()) continue;
          for (std::size_t w = 0; w < words_; ++w) {
            Word& in = row(defined_in_, s)[w];
            const Word next = in | row(defined_in_, b)[w] | row(defined_, b)[w];
            changed |= next != in;
            in = next;
          }
        }
      }
    }
  }

  // Intervals over the blocks in which a value is alive at the border.
  void widen() {
    std::vector<std::uint32_t> value_of(count_);
    for (std::uint32_t value = 0; value < global_.size(); ++value) {
      if (global_[value] != kNone) value_of[global_[value]] = value;
    }
    std::vector<Word> out(words_);
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      live_out(b, &out);
      for (std::uint32_t bit = 0; bit < count_; ++bit) {
        if (bit % 64 == 0 && row(live_in_, b)[bit / 64] == 0 && out[bit / 64] == 0) {
          bit += 63;
          continue;
        }
        const bool before = test(row(defined_in_, b), bit);
        Interval& interval = intervals_[value_of[bit]];
        if (before && test(row(live_in_, b), bit)) interval.extend(flow_.blocks[b].first);
        if ((before || test(row(defined_, b), bit)) && test(out.data(), bit)) {
          interval.extend(flow_.blocks[b].end - 1);
        }
      }
    }
  }

  const Function& function_;
  const ControlFlow& flow_;
  std::uint32_t registers_;
  std::vector<Interval> intervals_;    // by value: registers, then predicates
  std::vector<std::uint32_t> global_;  // by value: number of its bit
  std::uint32_t count_ = 0;
  std::size_t words_ = 0;
  std::vector<Word> used_, killed_, defined_, live_in_, defined_in_;
};

// Linear scan over intervals[first, first + count). `words` gives the size of each value.
class Scan {
 public:
  Scan(const Interval* intervals, std::uint32_t count, const std::vector<Type>* types)
      : intervals_(intervals), count_(count), types_(types) {}

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t value = 0; value < count_; ++value) {
      if (!intervals_[value].is_empty()) order.push_back(value);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return intervals_[a].low < intervals_[b].low;
    });
    std::vector<std::uint32_t> slot_of(count_, kNoSlot);
    for (std::uint32_t value : order) {
      release_before(intervals_[value].low, slot_of);
      slot_of[value] = take();
      active_.push({intervals_[value].high, value});
      words_ += words(value);
      peak_words_ = std::max(peak_words_, words_);
    }
    return slot_of;
  }

  std::uint32_t slots() const { return slots_; }
  unsigned peak_words() const { return peak_words_; }

 private:
  using Active = std::pair<std::uint32_t, std::uint32_t>;  // last instruction, value

  unsigned words(std::uint32_t value) const {
    return types_ == nullptr ? 0 : std::max(1u, type_size((*types_)[value]) / 4);
  }

  void release_before(std::uint32_t at, const std::vector<std::uint32_t>& slot_of) {
    while (!active_.empty() && active_.top().first < at) {
      const std::uint32_t value = active_.top().second;
      free_.push(slot_of[value]);
      words_ -= words(value);
      active_.pop();
    }
  }

  std::uint32_t take() {
    if (free_.empty()) return slots_++;
    const std::uint32_t slot = free_.top();
    free_.pop();
    return slot;
  }

  const Interval* intervals_;
  std::uint32_t count_;
  const std::vector<Type>* types_;
  std::priority_queue<Active, std::vector<Active>, std::greater<>> active_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::uint32_t slots_ = 0;
  unsigned words_ = 0, peak_words_ = 0;
};

void rewrite(const SlotAssignment& assignment, Operand* operand) {
  if (operand->kind == OperandKind::kReg || operand->kind == OperandKind::kAtReg) {
    operand->index = assignment.registers[operand->index];
  } else if (operand->kind == OperandKind::kPred) {
    operand->index = assignment.predicates[operand->index];
  }
}

}  // namespace

void list_accesses(const Function& function, const Instruction& inst, std::vector<Access>* list) {
  if (inst.guard != kNoGuard) {
    list->push_back({true, false, static_cast<std::uint32_t>(inst.guard)});
  }
  for (unsigned i = 0; i < inst.src_count; ++i) add_access(function.srcs(inst)[i], false, list);
  if (inst.op == Opcode::kRet) {
    for (const Formal& formal : function.results) add_access(formal.place, false, list);
  }
  if (inst.op == Opcode::kCall) {
    const Call& call = function.calls[inst.target];
    if (call.indirect) add_access(call.pointer, false, list);
    for (const CallOperand& argument : call.arguments) add_access(argument.place, false, list);
    for (const CallOperand& result : call.results) add_access(result.place, true, list);
  }
  for (unsigned i = 0; i < inst.dst_count; ++i) add_access(function.dsts(inst)[i], true, list);
}

SlotAssignment assign_slots(const Function& function, const FunctionInfo& info,
                            const ControlFlow& flow) {
  const std::vector<Interval> intervals = Liveness(function, info, flow).run();
  const auto registers = static_cast<std::uint32_t>(info.registers.size());
  Scan register_scan(intervals.data(), registers, &info.registers);
  Scan predicate_scan(intervals.data() + registers, info.predicates, nullptr);
  SlotAssignment assignment;
  assignment.registers = register_scan.run();
  assignment.predicates = predicate_scan.run();
  assignment.slots = register_scan.slots();
  assignment.predicate_slots = predicate_scan.slots();
  assignment.words = register_scan.peak_words();
  return assignment;
}

void apply_slots(const SlotAssignment& assignment, Function* function) {
  for (Operand& operand : function->operands) rewrite(assignment, &operand);
  for (Instruction& inst : function->code) {
    if (inst.guard == kNoGuard) continue;
    inst.guard =
        static_cast<std::int32_t>(assignment.predicates[static_cast<std::uint32_t>(inst.guard)]);
  }
  for (Call& call : function->calls) {
    rewrite(assignment, &call.pointer);
    for (CallOperand& argument : call.arguments) rewrite(assignment, &argument.place);
    for (CallOperand& result : call.results) rewrite(assignment, &result.place);
  }
  for (Formal& formal : function->parameters) rewrite(assignment, &formal.place);
  for (Formal& formal : function->results) rewrite(assignment, &formal.place);
  function->slots = assignment.slots;
  function->predicates = assignment.predicate_slots;
}

}  // namespace softgpu::ptx
