// SPDX-License-Identifier: Apache-2.0
// Which virtual registers are alive where, and slots for them: registers that are never alive
// together share one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/softgpu/ptx/control_flow.h"
#include "tools/softgpu/ptx/symbols.h"

namespace softgpu::ptx {

inline constexpr std::uint32_t kNoSlot = 0xffffffff;  // of registers that are never used

struct SlotAssignment {
  std::vector<std::uint32_t> registers;   // slot by virtual register
  std::vector<std::uint32_t> predicates;  // slot by virtual predicate
  std::uint32_t slots = 0;
  std::uint32_t predicate_slots = 0;
  unsigned words = 0;  // most 32-bit words of registers alive at once
};

SlotAssignment assign_slots(const Function& function, const FunctionInfo& info,
                            const ControlFlow& flow);

// Rewrites the operands from virtual registers to slots.
void apply_slots(const SlotAssignment& assignment, Function* function);

// One register or predicate that an instruction touches. A value read from memory through a
// register counts as read.
struct Access {
  bool is_predicate = false;
  bool is_write = false;
  std::uint32_t index = 0;
};

// All of them, call arguments and, at ret, results included; reads first.
void list_accesses(const Function& function, const Instruction& inst, std::vector<Access>* list);

}  // namespace softgpu::ptx
