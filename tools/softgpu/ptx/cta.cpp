// SPDX-License-Identifier: Apache-2.0
// A CTA: its warps take turns, its barriers count threads. Owned by the thread that steps the grid.
#include "tools/softgpu/ptx/cta.h"

#include <algorithm>

namespace softgpu::ptx {

namespace {

// Warp instructions before another warp of the CTA gets its turn. Smaller costs dispatch state per
// switch; larger makes a warp that spins on another burn more.
constexpr std::uint64_t kWarpQuantum = 1024;

bool waits_at(const Split& split, std::uint32_t barrier) {
  return split.state == SplitState::kAtBarrier && split.barrier == barrier;
}

// Threads a warp brings to a barrier with a count: a warp that is there with all its living lanes
// counts whole.
unsigned counted_threads(const Warp& warp, std::uint32_t barrier) {
  Mask lanes = 0;
  for (const Split& split : warp.splits) {
    if (waits_at(split, barrier)) lanes |= split.mask;
  }
  if (lanes == 0) return 0;
  return lanes == warp.alive ? kLanes : static_cast<unsigned>(std::popcount(lanes));
}

bool is_complete(const Cta& cta, std::uint32_t id) {
  const Barrier& barrier = cta.barriers[id];
  if (cta.waiting[id] == 0 && barrier.arrived == 0) return false;
  if (barrier.threads == 0) return cta.waiting[id] == cta.alive;
  unsigned threads = barrier.arrived;
  for (const Warp& warp : cta.warps) threads += counted_threads(warp, id);
  return threads >= barrier.threads;
}

Mask predicate_of(const Split& split) {
  const Ref ref = split.waiting->c;
  const Mask value = split.frame->predicates[static_cast<std::size_t>(ref >> 1)];
  return (ref & 1 ? ~value : value) & split.mask;
}

struct Reduction {
  unsigned yes = 0;
  unsigned all = 0;
};

void deliver(const Split& split, const Reduction& reduction) {
  const Op& op = *split.waiting;
  if (op.source->op != Opcode::kBarRed) return;
  if (op.source->barrier_op == BarrierOp::kPopc) {
    Row& d = split.frame->rows[static_cast<std::size_t>(op.d)];
    for_each_lane(split.mask,
                  [&](unsigned lane) { store_lane<std::uint32_t>(d, lane, reduction.yes); });
    return;
  }
  const bool result = op.source->barrier_op == BarrierOp::kAnd ? reduction.yes == reduction.all
                                                               : reduction.yes != 0;
  Mask& slot = split.frame->predicates[static_cast<std::size_t>(op.d >> 1)];
  slot = result ? slot | split.mask : slot & ~split.mask;
}

void release(Cta& cta, std::uint32_t id) {
  Reduction reduction;
  for (const Warp& warp : cta.warps) {
    for (const Split& split : warp.splits) {
      if (!waits_at(split, id) || split.waiting->source->op != Opcode::kBarRed) continue;
      reduction.yes += static_cast<unsigned>(std::popcount(predicate_of(split)));
      reduction.all += static_cast<unsigned>(std::popcount(split.mask));
    }
  }
  for (Warp& warp : cta.warps) {
    for (Split& split : warp.splits) {
      if (!waits_at(split, id)) continue;
      deliver(split, reduction);
      split.state = SplitState::kReady;
      split.waiting = nullptr;
    }
    warp.merge = warp.splits.size() > 1;
  }
  cta.barriers[id] = Barrier{};
  cta.waiting[id] = 0;
}

// The barrier id and thread count of an instruction; false after a fault.
bool read_barrier(Exec& x, const Op& op, Mask mask, std::uint32_t* id, std::uint32_t* threads) {
  const auto lane = static_cast<unsigned>(std::countr_zero(mask));
  *id = load_lane<std::uint32_t>(x.src(op.a), lane);
  const bool counted = op.source->src_count > 1 &&
                       x.frame->code->function->srcs(*op.source)[1].kind != OperandKind::kNone;
  *threads = counted ? load_lane<std::uint32_t>(x.src(op.b), lane) : 0;
  if (*id < kBarriers) return true;
  x.fail(Fault::kIllegalInstruction, lane, "barrier " + std::to_string(*id) + " does not exist");
  return false;
}

void wait_at_barrier(Exec& x, const Op& op, Mask mask) {
  std::uint32_t id = 0;
  std::uint32_t threads = 0;
  if (!read_barrier(x, op, mask, &id, &threads)) return;
  Cta& cta = *x.cta;
  separate(x, mask);
  Split& split = suspend(x);
  split.state = SplitState::kAtBarrier;
  split.waiting = &op;
  split.barrier = id;
  cta.waiting[id] += static_cast<unsigned>(std::popcount(mask));
  if (threads != 0) cta.barriers[id].threads = threads;
  finish_barriers(cta);
}

void arrive_at_barrier(Exec& x, const Op& op, Mask mask) {
  std::uint32_t id = 0;
  std::uint32_t threads = 0;
  if (!read_barrier(x, op, mask, &id, &threads)) return;
  Barrier& barrier = x.cta->barriers[id];
  barrier.arrived += mask == x.warp->alive ? kLanes : static_cast<unsigned>(std::popcount(mask));
  if (threads != 0) barrier.threads = threads;
  finish_barriers(*x.cta);
}

// Something in the CTA that waits for lanes which cannot come: lets them go on alone.
bool unblock(Cta& cta) {
  bool released = false;
  for (Warp& warp : cta.warps) released |= release_early(warp);
  return released;
}

// The next warp that can run, from `start` on; false when none can.
bool find_ready(Cta& cta, std::size_t start) {
  const std::size_t count = cta.warps.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t index = (start + k) % count;
    if (!has_ready_split(cta.warps[index])) continue;
    cta.current = index;
    cta.quantum_left = kWarpQuantum;
    return true;
  }
  return false;
}

}  // namespace

void finish_barriers(Cta& cta) {
  for (std::uint32_t id = 0; id < kBarriers; ++id) {
    if (is_complete(cta, id)) release(cta, id);
  }
}

std::unique_ptr<Cta> make_cta(Grid& grid, std::uint64_t number) {
  auto cta = std::make_unique<Cta>();
  cta->grid = &grid;
  const Dim3& size = grid.config.grid;
  cta->index.x = static_cast<unsigned>(number % size.x);
  cta->index.y = static_cast<unsigned>(number / size.x % size.y);
  cta->index.z = static_cast<unsigned>(number / size.x / size.y);
  // Vector loads need 16-byte alignment of what is 16-byte aligned in the window.
  constexpr std::size_t kAlign = 128;
  cta->shared.resize(grid.shared_bytes + kAlign);
  const auto start = reinterpret_cast<std::uintptr_t>(cta->shared.data());
  cta->shared_start = cta->shared.data() + (kAlign - start % kAlign) % kAlign;
  cta->alive = grid.block_threads;
  cta->warps.resize(grid.block_warps);
  for (unsigned index = 0; index < grid.block_warps; ++index) {
    Warp& warp = cta->warps[index];
    warp.cta = cta.get();
    warp.index = index;
    const unsigned left = grid.block_threads - index * kLanes;
    warp.launched = left >= kLanes ? kFullMask : (Mask{1} << left) - 1;
    reserve_local(warp, grid.entry.function->frame_bytes);
    start_warp(warp);
  }
  return cta;
}

CtaState run_cta(Cta& cta, std::uint64_t* budget) {
  while (*budget > 0) {
    if (cta.alive == 0) return CtaState::kDone;
    if (cta.quantum_left == 0) {
      if (!find_ready(cta, cta.current + 1)) {
        if (unblock(cta)) continue;
        return CtaState::kDeadlock;
      }
    }
    Warp& warp = cta.warps[cta.current];
    const Slice slice = run_warp(warp, std::min(*budget, cta.quantum_left));
    *budget -= slice.used;
    cta.quantum_left -= slice.used;
    if (cta.grid->fault != Fault::kNone) return CtaState::kRunning;
    if (slice.stopped) cta.quantum_left = 0;
    if (cta.quantum_left == 0) rotate_splits(warp);
  }
  return cta.alive == 0 ? CtaState::kDone : CtaState::kRunning;
}

Handler select_barrier(const Instruction& i) {
  switch (i.op) {
    case Opcode::kBarSync:
    case Opcode::kBarRed:
      return wait_at_barrier;
    case Opcode::kBarArrive:
      return arrive_at_barrier;
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
