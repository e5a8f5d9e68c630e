// SPDX-License-Identifier: Apache-2.0
// Moves, packing, address conversions and special registers. Any thread that steps a grid.
#include <algorithm>

#include "tools/softgpu/ptx/alu_lanes.h"

namespace softgpu::ptx {

namespace {

void move(Exec& x, const Op& op, Mask mask) {
  const Row& a = x.src(op.a);
  Row& d = x.dst(op.d);
  if (mask == kFullMask) {
    d = a;
    return;
  }
  for_each_lane(mask, [&](unsigned lane) { d.lane[lane] = a.lane[lane]; });
}

void move_predicate(Exec& x, const Op& op, Mask mask) {
  x.set_predicate(op.d, mask, x.predicate(op.a));
}

std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// The first element is the least significant.
void pack(Exec& x, const Op& op, Mask mask) {
  const Instruction& i = *op.source;
  const unsigned bits = type_size(i.type) * 8 / i.src_count;
  const Ref* sources = x.frame->code->refs.data() + op.list + i.dst_count;
  Row& d = x.dst(op.d);
  for_each_lane(mask, [&](unsigned lane) {
    std::uint64_t value = 0;
    for (unsigned k = 0; k < i.src_count; ++k)
      value |= (x.src(sources[k]).lane[lane] & low_bits(bits)) << (k * bits);
    d.lane[lane] = value;
  });
}

void unpack(Exec& x, const Op& op, Mask mask) {
  const Instruction& i = *op.source;
  const unsigned bits = type_size(i.type) * 8 / i.dst_count;
  const Ref* targets = x.frame->code->refs.data() + op.list;
  const Row& a = x.src(op.a);
  for_each_lane(mask, [&](unsigned lane) {
    const std::uint64_t value = a.lane[lane];
    for (unsigned k = 0; k < i.dst_count; ++k)
      x.dst(targets[k]).lane[lane] = (value >> (k * bits)) & low_bits(bits);
  });
}

std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

template <bool kTo>
void convert_address(Exec& x, const Op& op, Mask mask) {
  const std::uint64_t window = window_of(op.source->space);
  map_lanes<true, std::uint64_t, std::uint64_t>(
      mask, [window](std::uint64_t a) { return kTo ? a - window : a + window; }, x.dst(op.d),
      x.src(op.a));
}

void is_in_space(Exec& x, const Op& op, Mask mask) {
  const Space space = op.source->space;
  const Mask in = test_lanes<std::uint64_t>(
      mask,
      [space](std::uint64_t a) {
        const auto within = [a](std::uint64_t window) { return a - window < kWindowSize; };
        if (window_of(space) != 0) return within(window_of(space));
        return !within(kSharedWindow) && !within(kLocalWindow) && !within(kParamWindow);
      },
      x.src(op.a));
  x.set_predicate(op.d, mask, in);
}

// --- special registers
// ----------------------------------------------------------------------------------------------------

// CTAs are dealt to the multiprocessors in turn.
constexpr unsigned kMaxWarps = 64;

std::uint32_t lane_mask(Special special, unsigned lane) {
  const std::uint32_t self = 1u << lane;
  const std::uint32_t below = self - 1;
  switch (special) {
    case Special::kLanemaskEq:
      return self;
    case Special::kLanemaskLe:
      return below | self;
    case Special::kLanemaskLt:
      return below;
    case Special::kLanemaskGe:
      return ~below;
    default:
      return ~(below | self);
  }
}

bool varies_by_lane(Special special) {
  switch (special) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
    case Special::kLaneId:
    case Special::kLanemaskEq:
    case Special::kLanemaskLe:
    case Special::kLanemaskLt:
    case Special::kLanemaskGe:
    case Special::kLanemaskGt:
      return true;
    default:
      return false;
  }
}

std::uint64_t lane_special(Exec& x, Special special, unsigned lane) {
  switch (special) {
    case Special::kTidX:
      return x.grid->thread_index[0][x.warp->index].lane[lane];
    case Special::kTidY:
      return x.grid->thread_index[1][x.warp->index].lane[lane];
    case Special::kTidZ:
      return x.grid->thread_index[2][x.warp->index].lane[lane];
    case Special::kLaneId:
      return lane;
    default:
      return lane_mask(special, lane);
  }
}

// cuda::cooperative_groups takes envreg1 as the upper and envreg2 as the lower half of the
// workspace's address.
std::uint64_t environment(const Grid& grid, std::uint64_t number) {
  if (!grid.config.cooperative) return 0;
  if (number == 1) return kGridWorkspace >> 32;
  if (number == 2) return kGridWorkspace & 0xffffffffu;
  return 0;
}

// Axis 0, 1 or 2 of the special registers that come in threes.
unsigned axis_of(Special special, Special first) {
  return static_cast<unsigned>(special) - static_cast<unsigned>(first);
}

unsigned on_axis(const Dim3& size, unsigned axis) {
  return axis == 0 ? size.x : axis == 1 ? size.y : size.z;
}

// A launch without a cluster is one of one CTA each.
unsigned cluster_size(const LaunchConfig& config, unsigned axis) {
  return std::max(on_axis(config.cluster, axis), 1u);
}

std::uint64_t cluster_special(const LaunchConfig& config, const Dim3& cta, Special special) {
  const auto size = [&](unsigned axis) { return cluster_size(config, axis); };
  const auto place = [&](unsigned axis) { return on_axis(cta, axis) % size(axis); };
  switch (special) {
    case Special::kClusteridX:
    case Special::kClusteridY:
    case Special::kClusteridZ: {
      const unsigned axis = axis_of(special, Special::kClusteridX);
      return on_axis(cta, axis) / size(axis);
    }
    case Special::kNclusteridX:
    case Special::kNclusteridY:
    case Special::kNclusteridZ: {
      const unsigned axis = axis_of(special, Special::kNclusteridX);
      return on_axis(config.grid, axis) / size(axis);
    }
    case Special::kClusterCtaidX:
    case Special::kClusterCtaidY:
    case Special::kClusterCtaidZ:
      return place(axis_of(special, Special::kClusterCtaidX));
    case Special::kClusterNctaidX:
    case Special::kClusterNctaidY:
    case Special::kClusterNctaidZ:
      return size(axis_of(special, Special::kClusterNctaidX));
    case Special::kClusterCtarank:
      return place(0) + std::uint64_t{size(0)} * (place(1) + std::uint64_t{size(1)} * place(2));
    case Special::kClusterNctarank:
      return std::uint64_t{size(0)} * size(1) * size(2);
    default:
      return config.cluster.x != 0 ? 1 : 0;  // kIsExplicitCluster
  }
}

std::uint64_t uniform_special(Exec& x, Special special, std::uint64_t number) {
  const LaunchConfig& config = x.grid->config;
  const Dim3& cta = x.cta->index;
  switch (special) {
    case Special::kNtidX:
      return config.block.x;
    case Special::kNtidY:
      return config.block.y;
    case Special::kNtidZ:
      return config.block.z;
    case Special::kCtaidX:
      return cta.x;
    case Special::kCtaidY:
      return cta.y;
    case Special::kCtaidZ:
      return cta.z;
    case Special::kNctaidX:
      return config.grid.x;
    case Special::kNctaidY:
      return config.grid.y;
    case Special::kNctaidZ:
      return config.grid.z;
    case Special::kWarpId:
      return x.warp->index;
    case Special::kNwarpId:
      return kMaxWarps;
    case Special::kSmId:
      return (cta.x +
              std::uint64_t{config.grid.x} * (cta.y + std::uint64_t{config.grid.y} * cta.z)) %
             kSmCount;
    case Special::kNsmId:
      return kSmCount;
    case Special::kGridId:
      return x.grid->number;
    case Special::kClock:
      return x.grid->executed & 0xffffffffu;
    case Special::kClockHi:
      return x.grid->executed >> 32;
    case Special::kClock64:
      return x.grid->executed;
    case Special::kGlobalTimer:
      return x.grid->device.global_timer();
    case Special::kGlobalTimerLo:
      return x.grid->device.global_timer() & 0xffffffffu;
    case Special::kGlobalTimerHi:
      return x.grid->device.global_timer() >> 32;
    case Special::kDynamicSmemSize:
      return config.dynamic_shared_bytes;
    case Special::kTotalSmemSize:
    case Special::kAggrSmemSize:
      return x.grid->shared_bytes;
    case Special::kEnvReg:
      return environment(*x.grid, number);
    default:
      break;
  }
  const bool is_of_cluster =
      special >= Special::kClusteridX && special <= Special::kIsExplicitCluster;
  return is_of_cluster ? cluster_special(config, cta, special) : 0;  // 0: performance counters
}

}  // namespace

void read_special(Exec& x, const Op& op, Mask mask) {
  const auto special = static_cast<Special>(op.target);
  Row& d = x.dst(op.d);
  if (varies_by_lane(special)) {
    for_each_lane(mask, [&](unsigned lane) { d.lane[lane] = lane_special(x, special, lane); });
    return;
  }
  const std::uint64_t value = uniform_special(x, special, op.displacement);
  for_each_lane(mask, [&](unsigned lane) { d.lane[lane] = value; });
}

void read_frame_address(Exec& x, const Op& op, Mask mask) {
  Row& d = x.dst(op.d);
  const std::uint64_t value = x.frame->local_base + op.displacement;
  for_each_lane(mask, [&](unsigned lane) { d.lane[lane] = value; });
}

void read_dynamic_shared(Exec& x, const Op& op, Mask mask) {
  Row& d = x.dst(op.d);
  const std::uint64_t value = x.grid->entry.function->dynamic_shared_offset + op.displacement;
  for_each_lane(mask, [&](unsigned lane) { d.lane[lane] = value; });
}

void run_unsupported(Exec& x, const Op& op, Mask mask) {
  x.fail(Fault::kIllegalInstruction, static_cast<unsigned>(std::countr_zero(mask)),
         "unsupported instruction at PTX line " + std::to_string(op.source->line));
}

Handler select_move(const Instruction& i) {
  switch (i.op) {
    case Opcode::kMov:
      return i.type == Type::kPred ? move_predicate : move;
    case Opcode::kPack:
      return pack;
    case Opcode::kUnpack:
      return unpack;
    case Opcode::kCvta:
      return i.cvta_to ? convert_address<true> : convert_address<false>;
    case Opcode::kIsspacep:
      return is_in_space;
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
