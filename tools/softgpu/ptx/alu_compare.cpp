// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of setp, set, selp and slct. Any thread that steps a grid.
#include "tools/softgpu/ptx/alu_lanes.h"
#include "tools/softgpu/ptx/convert.h"

namespace softgpu::ptx {

namespace {

// Integers as they are; floats of any size widened.
template <class T>
auto comparable(T v) {
  if constexpr (std::is_integral_v<T>) {
    return v;
  } else {
    return widen(v);
  }
}

template <class T, Compare kCompare, bool kFtz>
struct Comparison {
  bool operator()(T left, T right) const {
    auto a = comparable(left);
    auto b = comparable(right);
    if constexpr (kFtz) {
      a = flush(a);
      b = flush(b);
    }
    // The ..u forms are true when an operand is NaN: the negation of the opposite ordered
    // comparison.
    switch (kCompare) {
      case Compare::kEq:
        return a == b;
      case Compare::kNe:
        // Ordered: false with NaN.
        return a < b || a > b;
      case Compare::kLt:
        return a < b;
      case Compare::kLe:
        return a <= b;
      case Compare::kGt:
        return a > b;
      case Compare::kGe:
        return a >= b;
      case Compare::kEqu:
        return !(a < b || a > b);
      case Compare::kNeu:
        return a != b;
      case Compare::kLtu:
        return !(a >= b);
      case Compare::kLeu:
        return !(a > b);
      case Compare::kGtu:
        return !(a <= b);
      case Compare::kGeu:
        return !(a < b);
      case Compare::kNum:
        return a == a && b == b;
      case Compare::kNan:
        return a != a || b != b;
    }
    return false;
  }
};

Mask combine(Boolean boolean, Mask value, Mask other) {
  switch (boolean) {
    case Boolean::kAnd:
      return value & other;
    case Boolean::kOr:
      return value | other;
    case Boolean::kXor:
      return value ^ other;
    case Boolean::kNone:
      return value;
  }
  return value;
}

Mask third_predicate(Exec& x, const Op& op) {
  return op.source->boolean == Boolean::kNone ? 0 : x.predicate(op.c);
}

template <class T, class F>
void setp(Exec& x, const Op& op, Mask mask) {
  const Mask value = test_lanes<T, T>(mask, F{}, x.src(op.a), x.src(op.b));
  const Mask other = third_predicate(x, op);
  if (op.has_p) x.set_predicate(op.p, mask, combine(op.source->boolean, ~value, other));
  if (op.has_d) x.set_predicate(op.d, mask, combine(op.source->boolean, value, other));
}

// setp.f16x2: p is the lower, q the upper comparison.
template <class H, Compare kCompare, bool kFtz>
void setp_pair(Exec& x, const Op& op, Mask mask) {
  const Comparison<H, kCompare, kFtz> compare;
  const Mask other = third_predicate(x, op);
  const auto half = [&](unsigned shift) {
    return test_lanes<std::uint32_t, std::uint32_t>(
        mask,
        [&](std::uint32_t a, std::uint32_t b) {
          return compare(H{static_cast<std::uint16_t>(a >> shift)},
                         H{static_cast<std::uint16_t>(b >> shift)});
        },
        x.src(op.a), x.src(op.b));
  };
  const Mask low = combine(op.source->boolean, half(0), other);
  const Mask high = combine(op.source->boolean, half(16), other);
  if (op.has_d) x.set_predicate(op.d, mask, low);
  if (op.has_p) x.set_predicate(op.p, mask, high);
}

template <class T, Compare kCompare, bool kFtz>
Handler handler_for(const Instruction& i) {
  using F = Comparison<T, kCompare, kFtz>;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    if (i.source_type == Type::kF16x2 || i.source_type == Type::kBf16x2)
      return setp_pair<T, kCompare, kFtz>;
  }
  return setp<T, F>;
}

template <class T, bool kFtz>
Handler pick_compare(const Instruction& i) {
  switch (i.compare) {
    case Compare::kEq:
      return handler_for<T, Compare::kEq, kFtz>(i);
    case Compare::kNe:
      return handler_for<T, Compare::kNe, kFtz>(i);
    case Compare::kLt:
      return handler_for<T, Compare::kLt, kFtz>(i);
    case Compare::kLe:
      return handler_for<T, Compare::kLe, kFtz>(i);
    case Compare::kGt:
      return handler_for<T, Compare::kGt, kFtz>(i);
    case Compare::kGe:
      return handler_for<T, Compare::kGe, kFtz>(i);
    default:
      break;
  }
  if constexpr (!std::is_integral_v<T>) {
    switch (i.compare) {
      case Compare::kEqu:
        return handler_for<T, Compare::kEqu, kFtz>(i);
      case Compare::kNeu:
        return handler_for<T, Compare::kNeu, kFtz>(i);
      case Compare::kLtu:
        return handler_for<T, Compare::kLtu, kFtz>(i);
      case Compare::kLeu:
        return handler_for<T, Compare::kLeu, kFtz>(i);
      case Compare::kGtu:
        return handler_for<T, Compare::kGtu, kFtz>(i);
      case Compare::kGeu:
        return handler_for<T, Compare::kGeu, kFtz>(i);
      case Compare::kNum:
        return handler_for<T, Compare::kNum, kFtz>(i);
      case Compare::kNan:
        return handler_for<T, Compare::kNan, kFtz>(i);
      default:
        break;
    }
  }
  return nullptr;
}

template <class T>
Handler pick_ftz(const Instruction& i) {
  return i.ftz ? pick_compare<T, true>(i) : pick_compare<T, false>(i);
}

Handler pick_type(const Instruction& i) {
  switch (i.source_type) {
    case Type::kU16:
    case Type::kB16:
      return pick_compare<std::uint16_t, false>(i);
    case Type::kS16:
      return pick_compare<std::int16_t, false>(i);
    case Type::kU32:
    case Type::kB32:
      return pick_compare<std::uint32_t, false>(i);
    case Type::kS32:
      return pick_compare<std::int32_t, false>(i);
    case Type::kU64:
    case Type::kB64:
      return pick_compare<std::uint64_t, false>(i);
    case Type::kS64:
      return pick_compare<std::int64_t, false>(i);
    case Type::kF32:
      return pick_ftz<float>(i);
    case Type::kF64:
      return pick_compare<double, false>(i);
    case Type::kF16:
    case Type::kF16x2:
      return pick_compare<Half, false>(i);
    case Type::kBf16:
    case Type::kBf16x2:
      return pick_compare<BFloat, false>(i);
    default:
      return nullptr;
  }
}

// What `set` stores for true: 1.0 for float results, all ones for integers.
std::uint64_t true_value(Type type) {
  switch (type) {
    case Type::kF32:
      return 0x3f800000u;
    case Type::kF16:
    case Type::kF16x2:
      return 0x3c00u;
    case Type::kBf16:
    case Type::kBf16x2:
      return 0x3f80u;
    default:
      return type_size(type) == 2 ? 0xffffu : 0xffffffffu;
  }
}

// set is rare: it compares into two predicates of its own and expands them.
void set(Exec& x, const Op& op, Mask mask) {
  const Type type = op.source->type;
  const Type source = op.source->source_type;
  const bool pair = source == Type::kF16x2 || source == Type::kBf16x2;
  Op compare = op;
  compare.has_d = compare.has_p = true;
  compare.d = kPredicateSink;
  compare.p = kSecondSink;
  pick_type (*op.source)(x, compare, mask);
  const Mask low = x.predicates[kPredicateSink >> 1];
  const Mask high = x.predicates[kSecondSink >> 1];
  const std::uint64_t yes = true_value(type);
  const bool both = pair && type_size(type) == 4 && (is_float(type) && type != Type::kF32);
  Row& d = x.dst(op.d);
  for_each_lane(mask, [&](unsigned lane) {
    std::uint64_t value = (low >> lane) & 1 ? yes : 0;
    if (both && ((high >> lane) & 1) != 0) value |= yes << 16;
    d.lane[lane] = value;
  });
}

// Whole lanes move, whatever their type.
void selp(Exec& x, const Op& op, Mask mask) {
  const Mask chosen = x.predicate(op.c);
  const Row& a = x.src(op.a);
  const Row& b = x.src(op.b);
  Row& d = x.dst(op.d);
  if (mask == kFullMask) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t pick = 0 - std::uint64_t{(chosen >> lane) & 1};
      d.lane[lane] = (a.lane[lane] & pick) | (b.lane[lane] & ~pick);
    }
    return;
  }
  for_each_lane(mask, [&](unsigned lane) {
    d.lane[lane] = (chosen >> lane) & 1 ? a.lane[lane] : b.lane[lane];
  });
}

// d = c >= 0 ? a : b. A NaN chooses b; -0 chooses a.
template <class C, bool kFtz>
void slct(Exec& x, const Op& op, Mask mask) {
  const Row& a = x.src(op.a);
  const Row& b = x.src(op.b);
  const Row& c = x.src(op.c);
  Row& d = x.dst(op.d);
  for_each_lane(mask, [&](unsigned lane) {
    C value = load_lane<C>(c, lane);
    if constexpr (kFtz) value = flush(value);
    d.lane[lane] = value >= 0 ? a.lane[lane] : b.lane[lane];
  });
}

}  // namespace

Handler select_compare(const Instruction& i) {
  switch (i.op) {
    case Opcode::kSetp:
      return pick_type(i);
    case Opcode::kSet:
      return pick_type(i) != nullptr ? set : nullptr;
    case Opcode::kSelp:
      return selp;
    case Opcode::kSlct:
      if (i.source_type == Type::kF32) return i.ftz ? slct<float, true> : slct<float, false>;
      return slct<std::int32_t, false>;
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
