// SPDX-License-Identifier: Apache-2.0
// Warp-wide operations: shfl, vote, match, redux, elect, activemask, bar.warp.sync. The .sync forms
// wait until every living lane of the member mask has come, at whatever instruction of the same
// kind it waits. Runs on the thread that steps the grid.
#include <algorithm>

#include "tools/softgpu/ptx/convert.h"
#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

namespace {

// What the participating lanes brought.
struct Exchange {
  Mask lanes = 0;
  Mask predicate = 0;
  std::uint64_t value[kLanes];  // only of `lanes`
};

// The rows of one split, without its being the current one.
struct View {
  Frame& frame;
  const Row& src(Ref ref) const {
    return ref >= 0 ? frame.rows[static_cast<std::size_t>(ref)]
                    : frame.code->constants[static_cast<std::size_t>(~ref)];
  }
  Row& dst(Ref ref) const { return frame.rows[static_cast<std::size_t>(ref)]; }
  Mask predicate(Ref ref) const {
    return frame.predicates[static_cast<std::size_t>(ref >> 1)] ^ (ref & 1 ? kFullMask : 0);
  }
  void set_predicate(Ref ref, Mask active, Mask value) const {
    Mask& slot = frame.predicates[static_cast<std::size_t>(ref >> 1)];
    slot = (slot & ~active) | (value & active);
  }
};

// Where each family keeps its member mask.
Ref member_mask_of(const Op& op) {
  switch (op.source->op) {
    case Opcode::kShfl:
      return op.e;
    case Opcode::kElect:
    case Opcode::kBarWarpSync:
      return op.a;
    default:
      return op.b;
  }
}

void collect(const View& view, const Op& op, Mask lanes, Exchange* exchange) {
  exchange->lanes |= lanes;
  switch (op.source->op) {
    case Opcode::kVote:
      exchange->predicate |= view.predicate(op.a) & lanes;
      return;
    case Opcode::kShfl:
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
    case Opcode::kRedux: {
      const Row& row = view.src(op.a);
      for_each_lane(lanes, [&](unsigned lane) { exchange->value[lane] = row.lane[lane]; });
      return;
    }
    default:
      return;
  }
}

// --- results, for the lanes of one split
// -----------------------------------------------------------------------------

struct Shuffle {
  unsigned source;
  bool in_range;
};

Shuffle shuffle_source(ShuffleMode mode, unsigned lane, std::uint32_t b, std::uint32_t c) {
  const unsigned offset = b & 31;
  const unsigned clamp = c & 31;
  const unsigned segment = (c >> 8) & 31;
  const int last = static_cast<int>((lane & segment) | (clamp & ~segment));
  const unsigned first = lane & segment;
  int source = 0;
  bool in_range = false;
  switch (mode) {
    case ShuffleMode::kUp:
      source = static_cast<int>(lane) - static_cast<int>(offset);
      in_range = source >= last;
      break;
    case ShuffleMode::kDown:
      source = static_cast<int>(lane + offset);
      in_range = source <= last;
      break;
    case ShuffleMode::kBfly:
      source = static_cast<int>(lane ^ offset);
      in_range = source <= last;
      break;
    case ShuffleMode::kIdx:
      source = static_cast<int>(first | (offset & ~segment));
      in_range = source <= last;
      break;
  }
  return {in_range ? static_cast<unsigned>(source) : lane, in_range};
}

void deliver_shuffle(const View& view, const Op& op, Mask lanes, const Exchange& exchange) {
  const Row& b = view.src(op.b);
  const Row& c = view.src(op.c);
  Row& d = view.dst(op.d);
  Mask in_range = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const Shuffle from =
        shuffle_source(op.source->shuffle_mode, lane, load_lane<std::uint32_t>(b, lane),
                       load_lane<std::uint32_t>(c, lane));
    if (from.in_range) in_range |= Mask{1} << lane;
    // Reading a lane that takes no part is undefined; it gives the reader's own value here.
    const unsigned source = (exchange.lanes >> from.source) & 1 ? from.source : lane;
    store_lane<std::uint32_t>(d, lane, static_cast<std::uint32_t>(exchange.value[source]));
  });
  if (op.has_p) view.set_predicate(op.p, lanes, in_range);
}

void deliver_vote(const View& view, const Op& op, Mask lanes, const Exchange& exchange,
                  Mask members) {
  const Mask yes = exchange.predicate & members;
  const Mask all = exchange.lanes & members;
  switch (op.source->vote_mode) {
    case VoteMode::kAll:
      view.set_predicate(op.d, lanes, yes == all ? kFullMask : 0);
      return;
    case VoteMode::kAny:
      view.set_predicate(op.d, lanes, yes != 0 ? kFullMask : 0);
      return;
    case VoteMode::kUni:
      view.set_predicate(op.d, lanes, yes == all || yes == 0 ? kFullMask : 0);
      return;
    case VoteMode::kBallot: {
      Row& d = view.dst(op.d);
      for_each_lane(lanes, [&](unsigned lane) { store_lane<std::uint32_t>(d, lane, yes); });
      return;
    }
  }
}

std::uint64_t match_value(const Op& op, const Exchange& exchange, unsigned lane) {
  return type_size(op.source->type) == 8 ? exchange.value[lane]
                                         : exchange.value[lane] & 0xffffffffu;
}

void deliver_match(const View& view, const Op& op, Mask lanes, const Exchange& exchange,
                   Mask members) {
  Row& d = view.dst(op.d);
  const Mask all = exchange.lanes & members;
  Mask every = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    Mask same = 0;
    for_each_lane(all, [&](unsigned other) {
      if (match_value(op, exchange, other) == match_value(op, exchange, lane))
        same |= Mask{1} << other;
    });
    if (same == all) every |= Mask{1} << lane;
    const bool any = op.source->op == Opcode::kMatchAny;
    if (op.has_d) store_lane<std::uint32_t>(d, lane, any || same == all ? same : 0);
  });
  if (op.has_p) view.set_predicate(op.p, lanes, every);
}

template <class T>
T reduce(AtomOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == AtomOp::kAnd) return a & b;
    if (op == AtomOp::kOr) return a | b;
    if (op == AtomOp::kXor) return a ^ b;
    if (op == AtomOp::kAdd)
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  return op == AtomOp::kMin ? std::min(a, b) : std::max(a, b);
}

float reduce_float(const Instruction& i, float a, float b) {
  if (i.atom_op == AtomOp::kMin) {
    return i.nan ? float_extreme<false, true>(a, b) : float_extreme<false, false>(a, b);
  }
  return i.nan ? float_extreme<true, true>(a, b) : float_extreme<true, false>(a, b);
}

std::uint32_t reduce_all(const Instruction& i, const Exchange& exchange, Mask members) {
  Mask rest = exchange.lanes & members;
  const auto take = [&] {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    rest &= rest - 1;
    return static_cast<std::uint32_t>(exchange.value[lane]);
  };
  std::uint32_t result = take();
  if (i.type == Type::kF32) {
    const auto value = [&](std::uint32_t bits) {
      return std::bit_cast<float>(i.redux_abs ? bits & 0x7fffffffu : bits);
    };
    float sum = value(result);
    while (rest != 0) sum = reduce_float(i, sum, value(take()));
    return std::bit_cast<std::uint32_t>(canonical(sum));
  }
  while (rest != 0) {
    const std::uint32_t next = take();
    result = is_signed(i.type)
                 ? static_cast<std::uint32_t>(reduce(i.atom_op, static_cast<std::int32_t>(result),
                                                     static_cast<std::int32_t>(next)))
                 : reduce(i.atom_op, result, next);
  }
  return result;
}

void deliver_redux(const View& view, const Op& op, Mask lanes, const Exchange& exchange,
                   Mask members) {
  const std::uint32_t result = reduce_all(*op.source, exchange, members);
  Row& d = view.dst(op.d);
  for_each_lane(lanes, [&](unsigned lane) { store_lane<std::uint32_t>(d, lane, result); });
}

void deliver_elect(const View& view, const Op& op, Mask lanes, const Exchange& exchange,
                   Mask members) {
  const auto leader = static_cast<unsigned>(std::countr_zero(exchange.lanes & members));
  if (op.has_d) {
    Row& d = view.dst(op.d);
    for_each_lane(lanes, [&](unsigned lane) { store_lane<std::uint32_t>(d, lane, leader); });
  }
  if (op.has_p) view.set_predicate(op.p, lanes, Mask{1} << leader);
}

void deliver(const View& view, const Op& op, Mask lanes, const Exchange& exchange, Mask members) {
  switch (op.source->op) {
    case Opcode::kShfl:
      return deliver_shuffle(view, op, lanes, exchange);
    case Opcode::kVote:
      return deliver_vote(view, op, lanes, exchange, members);
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
      return deliver_match(view, op, lanes, exchange, members);
    case Opcode::kRedux:
      return deliver_redux(view, op, lanes, exchange, members);
    case Opcode::kElect:
      return deliver_elect(view, op, lanes, exchange, members);
    default:
      return;
  }
}

// Lanes may name different masks: each set of lanes with one mask is an operation of its own.
template <class F>
void for_each_member_mask(const View& view, const Op& op, Mask lanes, F f) {
  const Ref ref = member_mask_of(op);
  const Row& masks = view.src(ref);
  if (ref < 0) {  // a constant
    f(lanes, load_lane<std::uint32_t>(masks, 0) | lanes);
    return;
  }
  while (lanes != 0) {
    const Mask members =
        load_lane<std::uint32_t>(masks, static_cast<unsigned>(std::countr_zero(lanes)));
    Mask same = 0;
    for_each_lane(lanes, [&](unsigned lane) {
      if (load_lane<std::uint32_t>(masks, lane) == members) same |= Mask{1} << lane;
    });
    lanes &= ~same;
    // A lane that is not in its own mask is an error of the kernel; it is treated as if it were.
    f(same, members | same);
  }
}

Mask wanted_lanes(const View& view, const Op& op, Mask lanes) {
  Mask wanted = 0;
  for_each_member_mask(view, op, lanes, [&](Mask, Mask members) { wanted |= members; });
  return wanted;
}

void deliver_groups(const View& view, const Op& op, Mask lanes, const Exchange& exchange) {
  for_each_member_mask(view, op, lanes, [&](Mask same, Mask members) {
    deliver(view, op, same, exchange, members);
  });
}

bool waits(const Split& split) {
  return split.state == SplitState::kAtWarpSync;
}

// The blocked splits that must be released together with `first`, or none when somebody is still
// missing.
std::vector<Split*> complete_set(Warp& warp, Split& first) {
  std::vector<Split*> set{&first};
  Mask wanted = first.wanted;
  Mask present = first.mask;
  for (std::size_t k = 0; k < set.size() || (wanted & warp.alive & ~present) != 0; ++k) {
    if (k >= set.size()) return {};
    for (Split& other : warp.splits) {
      if (!waits(other) || (other.mask & wanted & ~present) == 0) continue;
      if (other.waiting->source->op != first.waiting->source->op) continue;
      wanted |= other.wanted;
      present |= other.mask;
      set.push_back(&other);
    }
  }
  return set;
}

void release(Warp& warp, const std::vector<Split*>& set) {
  Exchange exchange;
  for (Split* split : set) collect(View{*split->frame}, *split->waiting, split->mask, &exchange);
  for (Split* split : set) {
    deliver_groups(View{*split->frame}, *split->waiting, split->mask, exchange);
    split->state = SplitState::kReady;
    split->waiting = nullptr;
  }
  warp.merge = true;
}

void run_collective(Exec& x, const Op& op, Mask mask) {
  const View view{*x.frame};
  // Only shfl and vote have a form without member mask: that of the lanes that run together.
  const Opcode family = op.source->op;
  if (!op.source->sync && (family == Opcode::kShfl || family == Opcode::kVote)) {
    Exchange exchange;
    collect(view, op, mask, &exchange);
    deliver(view, op, mask, exchange, kFullMask);
    return;
  }
  const Mask wanted = wanted_lanes(view, op, mask);
  if ((wanted & x.warp->alive & ~mask) == 0) {
    Exchange exchange;
    collect(view, op, mask, &exchange);
    deliver_groups(view, op, mask, exchange);
    return;
  }
  separate(x, mask);
  Split& split = suspend(x);
  split.state = SplitState::kAtWarpSync;
  split.waiting = &op;
  split.wanted = wanted;
  finish_warp_syncs(*x.warp);
}

void activemask(Exec& x, const Op& op, Mask mask) {
  Row& d = x.dst(op.d);
  for_each_lane(mask, [&](unsigned lane) { store_lane<std::uint32_t>(d, lane, mask); });
}

}  // namespace

void finish_warp_syncs(Warp& warp) {
  for (bool again = true; again;) {
    again = false;
    for (Split& split : warp.splits) {
      if (!waits(split)) continue;
      const std::vector<Split*> set = complete_set(warp, split);
      if (set.empty()) continue;
      release(warp, set);
      again = true;
      break;
    }
  }
}

Handler select_warp(const Instruction& i) {
  switch (i.op) {
    case Opcode::kActivemask:
      return activemask;
    case Opcode::kShfl:
    case Opcode::kVote:
    case Opcode::kMatchAny:
    case Opcode::kMatchAll:
    case Opcode::kRedux:
    case Opcode::kElect:
    case Opcode::kBarWarpSync:
      return run_collective;
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
