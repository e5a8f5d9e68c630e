// SPDX-License-Identifier: Apache-2.0
// Branches, exit, trap and nanosleep. Runs on the thread that steps the grid.
#include "tools/softgpu/ptx/calls.h"
#include "tools/softgpu/ptx/cta.h"
#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

namespace {

void branch(Exec& x, const Op& op, Mask mask) {
  const Mask rest = x.mask & ~mask;
  if (rest == 0) {
    x.pc = op.target;
    return;
  }
  const Group groups[2] = {{mask, op.target}, {rest, x.pc}};
  diverge(x, groups, 2, op.reconverge);
}

void branch_indexed(Exec& x, const Op& op, Mask mask) {
  const auto& table = x.frame->code->tables[op.target];
  const Row& indices = x.src(op.a);
  Group groups[kLanes + 1];
  unsigned count = 0;
  bool bad = false;
  const auto add = [&](Mask lanes, std::uint32_t pc) {
    for (unsigned k = 0; k < count; ++k) {
      if (groups[k].pc == pc) {
        groups[k].mask |= lanes;
        return;
      }
    }
    groups[count++] = {lanes, pc};
  };
  for_each_lane(mask, [&](unsigned lane) {
    const auto index = load_lane<std::uint32_t>(indices, lane);
    if (index < table.size()) {
      add(Mask{1} << lane, table[index]);
    } else if (!bad) {
      bad = true;
      x.fail(Fault::kInvalidPc, lane, "brx.idx index " + std::to_string(index) + " is too large");
    }
  });
  if (bad) return;
  if ((x.mask & ~mask) != 0) add(x.mask & ~mask, x.pc);
  if (count == 1) {
    x.pc = groups[0].pc;
    return;
  }
  diverge(x, groups, count, op.reconverge);
}

void run_exit(Exec& x, const Op&, Mask mask) {
  exit_lanes(x, mask);
}

void run_trap(Exec& x, const Op& op, Mask mask) {
  x.fail(Fault::kTrap, static_cast<unsigned>(std::countr_zero(mask)),
         op.source->op == Opcode::kBrkpt ? "breakpoint" : "trap");
}

void run_nop(Exec&, const Op&, Mask) {}

// Sleeping threads wait for somebody: let the others run.
void run_nanosleep(Exec& x, const Op&, Mask) {
  x.event = Event::kYield;
}

}  // namespace

Handler select_control(const Instruction& i) {
  switch (i.op) {
    case Opcode::kNop:
      return run_nop;
    case Opcode::kBra:
      return branch;
    case Opcode::kBrx:
      return branch_indexed;
    case Opcode::kExit:
      return run_exit;
    case Opcode::kTrap:
    case Opcode::kBrkpt:
      return run_trap;
    case Opcode::kNanosleep:
      return run_nanosleep;
    default:
      return select_barrier(i);
  }
}

}  // namespace softgpu::ptx
