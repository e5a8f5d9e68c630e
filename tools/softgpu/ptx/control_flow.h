// SPDX-License-Identifier: Apache-2.0
// Basic blocks, and where diverged lanes meet again: the immediate post-dominator of each branch.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/ptx/ir.h"

namespace softgpu::ptx {

struct Block {
  std::uint32_t first = 0, end = 0;       // instructions [first, end)
  std::vector<std::uint32_t> successors;  // blocks; the exit is blocks.size()
};

struct ControlFlow {
  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_of;  // by instruction
};

ControlFlow build_control_flow(const Function& function);

// By block: the block every path to the exit passes next, or the exit. Blocks that never reach the
// exit (endless loops) count as leaving at their last block.
std::vector<std::uint32_t> immediate_post_dominators(const std::vector<Block>& blocks);

// Fills Instruction::reconverge.
void set_reconvergence(const ControlFlow& flow, Function* function);

}  // namespace softgpu::ptx
