// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of f16 and bf16 arithmetic, single and in pairs. The semantics are in half.h.
#include "tools/softgpu/ptx/alu_lanes.h"
#include "tools/softgpu/ptx/half.h"

namespace softgpu::ptx {

namespace {

// What the modifiers add around an operation; at run time, because packing dominates the cost.
template <class H>
struct Modifiers {
  bool ftz, sat, relu;
  explicit Modifiers(const Instruction& i) : ftz(i.ftz), sat(i.sat), relu(i.relu) {}
  H in(H a) const { return ftz ? half_flush(a) : a; }
  H out(H a) const {
    if (ftz) a = half_flush(a);
    if (sat) a = half_saturate(a);
    if (relu) a = half_relu(a);
    return a;
  }
};

template <class H>
H upper(std::uint32_t pair) {
  return H{static_cast<std::uint16_t>(pair >> 16)};
}
template <class H>
H lower(std::uint32_t pair) {
  return H{static_cast<std::uint16_t>(pair)};
}
template <class H>
std::uint32_t join(H low, H high) {
  return (std::uint32_t{high.bits} << 16) | low.bits;
}

template <class H, auto kFunction>
void unary_single(Exec& x, const Op& op, Mask mask) {
  const Modifiers<H> m(*op.source);
  map_lanes<false, H, H>(
      mask, [&](H a) { return m.out(kFunction(m.in(a))); }, x.dst(op.d), x.src(op.a));
}
template <class H, auto kFunction>
void unary_pair(Exec& x, const Op& op, Mask mask) {
  const Modifiers<H> m(*op.source);
  map_lanes<false, std::uint32_t, std::uint32_t>(
      mask,
      [&](std::uint32_t a) {
        return join(m.out(kFunction(m.in(lower<H>(a)))), m.out(kFunction(m.in(upper<H>(a)))));
      },
      x.dst(op.d), x.src(op.a));
}
template <class H, auto kFunction>
void binary_single(Exec& x, const Op& op, Mask mask) {
  const Modifiers<H> m(*op.source);
  map_lanes<false, H, H, H>(
      mask, [&](H a, H b) { return m.out(kFunction(m.in(a), m.in(b))); }, x.dst(op.d), x.src(op.a),
      x.src(op.b));
}
template <class H, auto kFunction>
void binary_pair(Exec& x, const Op& op, Mask mask) {
  const Modifiers<H> m(*op.source);
  map_lanes<false, std::uint32_t, std::uint32_t, std::uint32_t>(
      mask,
      [&](std::uint32_t a, std::uint32_t b) {
        return join(m.out(kFunction(m.in(lower<H>(a)), m.in(lower<H>(b)))),
                    m.out(kFunction(m.in(upper<H>(a)), m.in(upper<H>(b)))));
      },
      x.dst(op.d), x.src(op.a), x.src(op.b));
}
template <class H>
void fma_single(Exec& x, const Op& op, Mask mask) {
  const Modifiers<H> m(*op.source);
  map_lanes<false, H, H, H, H>(
      mask, [&](H a, H b, H c) { return m.out(half_fma(m.in(a), m.in(b), m.in(c))); }, x.dst(op.d),
      x.src(op.a), x.src(op.b), x.src(op.c));
}
template <class H>
void fma_pair(Exec& x, const Op& op, Mask mask) {
  using U32 = std::uint32_t;
  const Modifiers<H> m(*op.source);
  map_lanes<false, U32, U32, U32, U32>(
      mask,
      [&](U32 a, U32 b, U32 c) {
        return join(m.out(half_fma(m.in(lower<H>(a)), m.in(lower<H>(b)), m.in(lower<H>(c)))),
                    m.out(half_fma(m.in(upper<H>(a)), m.in(upper<H>(b)), m.in(upper<H>(c)))));
      },
      x.dst(op.d), x.src(op.a), x.src(op.b), x.src(op.c));
}

template <class H>
H half_ex2(H a) {
  return make_half<H>(std::exp2(double{widen(a)}));
}
template <class H>
H half_tanh(H a) {
  return make_half<H>(std::tanh(double{widen(a)}));
}
template <class H, bool kMax, bool kNan>
H half_extreme_sign(H a, H b) {
  const H extreme = half_extreme<H, kMax, kNan>(half_abs(a), half_abs(b));
  const auto sign = static_cast<std::uint16_t>((a.bits ^ b.bits) & 0x8000u);
  return H{static_cast<std::uint16_t>((extreme.bits & 0x7fffu) | sign)};
}

template <class H, auto kFunction>
Handler one(bool pair) {
  return pair ? unary_pair<H, kFunction> : unary_single<H, kFunction>;
}
template <class H, auto kFunction>
Handler two(bool pair) {
  return pair ? binary_pair<H, kFunction> : binary_single<H, kFunction>;
}

template <class H, bool kMax>
Handler extreme(const Instruction& i, bool pair) {
  if (i.xorsign_abs) {
    return i.nan ? two<H, half_extreme_sign<H, kMax, true>>(pair)
                 : two<H, half_extreme_sign<H, kMax, false>>(pair);
  }
  return i.nan ? two<H, half_extreme<H, kMax, true>>(pair)
               : two<H, half_extreme<H, kMax, false>>(pair);
}

template <class H>
Handler select_format(const Instruction& i, bool pair) {
  switch (i.op) {
    case Opcode::kAdd:
      return two<H, half_add<H>>(pair);
    case Opcode::kSub:
      return two<H, half_sub<H>>(pair);
    case Opcode::kMul:
      return two<H, half_mul<H>>(pair);
    case Opcode::kFma:
    case Opcode::kMad:
      return pair ? fma_pair<H> : fma_single<H>;
    case Opcode::kMin:
      return extreme<H, false>(i, pair);
    case Opcode::kMax:
      return extreme<H, true>(i, pair);
    case Opcode::kNeg:
      return one<H, half_neg<H>>(pair);
    case Opcode::kAbs:
      return one<H, half_abs<H>>(pair);
    case Opcode::kEx2:
      return one<H, half_ex2<H>>(pair);
    case Opcode::kTanh:
      return one<H, half_tanh<H>>(pair);
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_half(const Instruction& i) {
  switch (i.type) {
    case Type::kF16:
      return select_format<Half>(i, false);
    case Type::kF16x2:
      return select_format<Half>(i, true);
    case Type::kBf16:
      return select_format<BFloat>(i, false);
    case Type::kBf16x2:
      return select_format<BFloat>(i, true);
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
