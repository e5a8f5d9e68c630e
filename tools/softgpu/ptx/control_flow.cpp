// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/control_flow.h"

#include <algorithm>

namespace softgpu::ptx {
namespace {

bool is_jump(const Instruction& inst) {
  return inst.op == Opcode::kBra || inst.op == Opcode::kBrx;
}

bool leaves(const Instruction& inst) {
  return inst.op == Opcode::kRet || inst.op == Opcode::kExit || inst.op == Opcode::kTrap;
}

std::vector<std::uint32_t> targets_of(const Function& function, const Instruction& inst) {
  if (inst.op == Opcode::kBra) return {inst.target};
  if (inst.op == Opcode::kBrx) return function.tables[inst.target];
  return {};
}

std::vector<std::uint32_t> block_successors(const Function& function, const ControlFlow& flow,
                                            const Block& block) {
  const auto exit = static_cast<std::uint32_t>(flow.blocks.size());
  const Instruction& last = function.code[block.end - 1];
  std::vector<std::uint32_t> successors;
  for (std::uint32_t target : targets_of(function, last)) {
    successors.push_back(flow.block_of[target]);
  }
  const bool ends = (is_jump(last) || leaves(last)) && last.guard == kNoGuard;
  if (leaves(last)) successors.push_back(exit);
  if (!ends) {
    successors.push_back(block.end < function.code.size() ? flow.block_of[block.end] : exit);
  }
  std::sort(successors.begin(), successors.end());
  successors.erase(std::unique(successors.begin(), successors.end()), successors.end());
  return successors;
}

// Walks edges backwards from the exit.
class PostDominators {
 public:
  explicit PostDominators(const std::vector<Block>& blocks)
      : exit_(static_cast<std::uint32_t>(blocks.size())),
        successors_(blocks.size() + 1),
        predecessors_(blocks.size() + 1),
        number_(blocks.size() + 1, kUnseen) {
    for (std::uint32_t b = 0; b < exit_; ++b) {
      for (std::uint32_t s : blocks[b].successors) link(b, s);
    }
  }

  std::vector<std::uint32_t> run() {
    connect_endless();
    visit(exit_, &order_);
    for (std::uint32_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
    parent_.assign(exit_ + 1, kUnseen);
    parent_[exit_] = exit_;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = order_.size() - 1; i-- > 0;) changed |= update(order_[i]);
    }
    parent_.pop_back();
    return std::move(parent_);
  }

 private:
  static constexpr std::uint32_t kUnseen = 0xffffffff;

  void link(std::uint32_t from, std::uint32_t to) {
    successors_[from].push_back(to);
    predecessors_[to].push_back(from);
  }

  // Post-order of what reaches `root` and was not seen before.
  void visit(std::uint32_t root, std::vector<std::uint32_t>* order) {
    struct Step {
      std::uint32_t block;
      std::size_t next;
    };
    std::vector<Step> stack = {{root, 0}};
    number_[root] = 0;
    while (!stack.empty()) {
      Step& step = stack.back();
      if (step.next == predecessors_[step.block].size()) {
        order->push_back(step.block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t before = predecessors_[step.block][step.next++];
      if (number_[before] != kUnseen) continue;
      number_[before] = 0;
      stack.push_back({before, 0});
    }
  }

  void connect_endless() {
    std::vector<std::uint32_t> seen;
    visit(exit_, &seen);
    for (std::uint32_t b = exit_; b-- > 0;) {
      if (number_[b] != kUnseen) continue;
      link(b, exit_);
      visit(b, &seen);
    }
    std::fill(number_.begin(), number_.end(), kUnseen);
  }

  std::uint32_t meet(std::uint32_t a, std::uint32_t b) const {
    while (a != b) {
      while (number_[a] < number_[b]) a = parent_[a];
      while (number_[b] < number_[a]) b = parent_[b];
    }
    return a;
  }

  bool update(std::uint32_t block) {
    std::uint32_t parent = kUnseen;
    for (std::uint32_t s : successors_[block]) {
      if (parent_[s] == kUnseen) continue;
      parent = parent == kUnseen ? s : meet(parent, s);
    }
    if (parent_[block] == parent) return false;
    parent_[block] = parent;
    return true;
  }

  std::uint32_t exit_;
  std::vector<std::vector<std::uint32_t>> successors_, predecessors_;
  std::vector<std::uint32_t> number_;  // in order_
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> parent_;
};

}  // namespace

ControlFlow build_control_flow(const Function& function) {
  const std::size_t size = function.code.size();
  std::vector<bool> starts(size + 1, false);
  starts[0] = true;
  for (std::size_t i = 0; i < size; ++i) {
    const Instruction& inst = function.code[i];
    if (is_jump(inst) || leaves(inst)) starts[i + 1] = true;
    for (std::uint32_t target : targets_of(function, inst)) starts[target] = true;
  }
  ControlFlow flow;
  flow.block_of.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (starts[i]) flow.blocks.push_back({i, i, {}});
    flow.blocks.back().end = i + 1;
    flow.block_of[i] = static_cast<std::uint32_t>(flow.blocks.size() - 1);
  }
  for (Block& block : flow.blocks) block.successors = block_successors(function, flow, block);
  return flow;
}

std::vector<std::uint32_t> immediate_post_dominators(const std::vector<Block>& blocks) {
  return PostDominators(blocks).run();
}

void set_reconvergence(const ControlFlow& flow, Function* function) {
  const std::vector<std::uint32_t> next = immediate_post_dominators(flow.blocks);
  for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
    Instruction& last = function->code[flow.blocks[b].end - 1];
    if (!is_jump(last)) continue;
    last.reconverge = next[b] < flow.blocks.size()
                          ? flow.blocks[next[b]].first
                          : static_cast<std::uint32_t>(function->code.size());
  }
}

}  // namespace softgpu::ptx
