// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of f32 and f64 arithmetic. The semantics are in float_ops.h; f16 and bf16 are
// in alu_half.cpp.
#include "tools/softgpu/ptx/alu_lanes.h"
#include "tools/softgpu/ptx/float_ops.h"

namespace softgpu::ptx {

namespace {

Round round_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRz:
      return Round::kZero;
    case Rounding::kRm:
      return Round::kDown;
    case Rounding::kRp:
      return Round::kUp;
    default:
      return Round::kNearest;
  }
}

// --- functors
// -----------------------------------------------------------------------------------------------------------

template <class Operation, class T, bool kFtz, bool kSat>
struct Nearest {
  template <class... A>
  T operator()(A... a) const {
    return float_out<kFtz, kSat>(Operation::apply(float_in<kFtz>(a)...));
  }
};

struct NearestFma {
  template <class T>
  static T apply(T a, T b, T c) {
    return fma_nearest(a, b, c);
  }
};

template <class T, auto kFunction, bool kFtz>
struct Approximate {
  template <class... A>
  T operator()(A... a) const {
    return float_out<kFtz, false>(kFunction(float_in<kFtz>(a)...));
  }
};

template <class T, bool kMax, bool kNan, bool kFtz, bool kXorSign>
struct Extreme {
  T operator()(T a, T b) const {
    a = float_in<kFtz>(a);
    b = float_in<kFtz>(b);
    if constexpr (kXorSign) {
      const T sign = std::signbit(a) != std::signbit(b) ? T(-1) : T(1);
      return std::copysign(float_extreme<kMax, kNan>(std::fabs(a), std::fabs(b)), sign);
    }
    return float_extreme<kMax, kNan>(a, b);
  }
};

template <class T, bool kFtz>
struct Negate {
  T operator()(T a) const { return -float_in<kFtz>(a); }
};
template <class T, bool kFtz>
struct Absolute {
  T operator()(T a) const { return std::fabs(float_in<kFtz>(a)); }
};

// --- fused multiply-add on hosts that have it
// ------------------------------------------------------------------------

#if defined(__x86_64__)

template <bool kFtz, bool kSat>
[[gnu::target("avx2,fma")]] void host_fma(Exec& x, const Op& op, Mask mask) {
  const auto* a = reinterpret_cast<const Words<float>::type*>(&x.src(op.a));
  const auto* b = reinterpret_cast<const Words<float>::type*>(&x.src(op.b));
  const auto* c = reinterpret_cast<const Words<float>::type*>(&x.src(op.c));
  auto* d = reinterpret_cast<Words<float>::type*>(&x.dst(op.d));
  if (mask == kFullMask) {
    SOFTGPU_INDEPENDENT_LANES
    for (unsigned i = 0; i < 2 * kLanes; ++i) {
      d[i] = float_out<kFtz, kSat>(
          __builtin_fmaf(float_in<kFtz>(a[i]), float_in<kFtz>(b[i]), float_in<kFtz>(c[i])));
    }
    return;
  }
  while (mask != 0) {
    const unsigned i = 2 * static_cast<unsigned>(std::countr_zero(mask));
    mask &= mask - 1;
    d[i] = float_out<kFtz, kSat>(
        __builtin_fmaf(float_in<kFtz>(a[i]), float_in<kFtz>(b[i]), float_in<kFtz>(c[i])));
  }
}

Handler select_host_fma(const Instruction& i) {
  if (i.type != Type::kF32 || round_of(i.rounding) != Round::kNearest) return nullptr;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return nullptr;
  if (i.ftz) return i.sat ? host_fma<true, true> : host_fma<true, false>;
  return i.sat ? host_fma<false, true> : host_fma<false, false>;
}
#else
Handler select_host_fma(const Instruction&) {
  return nullptr;
}
#endif

// --- directed rounding
// --------------------------------------------------------------------------------------------------

template <class Operation, class T, bool kFtz, bool kSat>
struct Directed {
  template <class... A>
  T operator()(A... a) const {
    return float_out<kFtz, kSat>(opaque(Operation::apply(opaque(float_in<kFtz>(a))...)));
  }
};

template <class Functor, class T, unsigned kCount>
void run_directed(Exec& x, const Op& op, Mask mask) {
  DirectedRounding scope(round_of(op.source->rounding));
  Row& d = x.dst(op.d);
  for_each_lane(mask, [&](unsigned lane) {
    const T a = load_lane<T>(x.src(op.a), lane);
    if constexpr (kCount == 1) {
      store_lane<T>(d, lane, Functor{}(a));
    } else if constexpr (kCount == 2) {
      store_lane<T>(d, lane, Functor{}(a, load_lane<T>(x.src(op.b), lane)));
    } else {
      store_lane<T>(d, lane,
                    Functor{}(a, load_lane<T>(x.src(op.b), lane), load_lane<T>(x.src(op.c), lane)));
    }
  });
}

// --- selection
// ----------------------------------------------------------------------------------------------------------

template <class F, class T, unsigned kCount, bool kPure>
constexpr Handler map_handler() {
  if constexpr (kCount == 1) {
    return unary<kPure, T, T, F>;
  } else if constexpr (kCount == 2) {
    return binary<kPure, T, T, T, F>;
  } else {
    return ternary<kPure, T, T, T, T, F>;
  }
}

// `Fast` is used for round to nearest, `Exact` under a directed mode.
template <class Fast, class Exact, class T, unsigned kCount, bool kFtz, bool kSat>
Handler pick_round(const Instruction& i) {
  if (round_of(i.rounding) == Round::kNearest)
    return map_handler<Nearest<Fast, T, kFtz, kSat>, T, kCount, true>();
  return run_directed<Directed<Exact, T, kFtz, kSat>, T, kCount>;
}

template <class Fast, class Exact, unsigned kCount>
Handler arithmetic(const Instruction& i) {
  if (i.type == Type::kF64) {
    return i.sat ? nullptr : pick_round<Fast, Exact, double, kCount, false, false>(i);
  }
  if (i.ftz) {
    return i.sat ? pick_round<Fast, Exact, float, kCount, true, true>(i)
                 : pick_round<Fast, Exact, float, kCount, true, false>(i);
  }
  return i.sat ? pick_round<Fast, Exact, float, kCount, false, true>(i)
               : pick_round<Fast, Exact, float, kCount, false, false>(i);
}

template <auto kFunction, unsigned kCount>
Handler approximate32(const Instruction& i) {
  if (i.type != Type::kF32) return nullptr;
  return i.ftz ? map_handler<Approximate<float, kFunction, true>, float, kCount, false>()
               : map_handler<Approximate<float, kFunction, false>, float, kCount, false>();
}

template <class T, bool kMax, bool kNan, bool kFtz>
Handler extreme_sign(const Instruction& i) {
  return i.xorsign_abs ? binary<true, T, T, T, Extreme<T, kMax, kNan, kFtz, true>>
                       : binary<true, T, T, T, Extreme<T, kMax, kNan, kFtz, false>>;
}
template <class T, bool kMax>
Handler extreme(const Instruction& i) {
  if constexpr (sizeof(T) == 4) {
    if (i.ftz)
      return i.nan ? extreme_sign<T, kMax, true, true>(i) : extreme_sign<T, kMax, false, true>(i);
  }
  return i.nan ? extreme_sign<T, kMax, true, false>(i) : extreme_sign<T, kMax, false, false>(i);
}

template <template <class, bool> class F>
Handler sign_change(const Instruction& i) {
  if (i.type == Type::kF64) return unary<true, double, double, F<double, false>>;
  return i.ftz ? unary<true, float, float, F<float, true>>
               : unary<true, float, float, F<float, false>>;
}

float nearest_rcp(float a) {
  return 1.0f / a;
}
float nearest_sqrt(float a) {
  return std::sqrt(a);
}

Handler select_div(const Instruction& i) {
  if (i.approx) return approximate32<approx_div, 2>(i);
  if (i.full) return approximate32<full_div, 2>(i);
  return arithmetic<FloatDiv, FloatDiv, 2>(i);
}

Handler select_root(const Instruction& i) {
  if (i.op == Opcode::kRsqrt) {
    if (i.type == Type::kF64) {
      return i.ftz ? unary<true, double, double, Fn<gross_rsqrt>>
                   : unary<true, double, double, Fn<static_cast<double (*)(double)>(approx_rsqrt)>>;
    }
    return approximate32<static_cast<float (*)(float)>(approx_rsqrt), 1>(i);
  }
  if (i.op == Opcode::kRcp) {
    if (i.approx && i.type == Type::kF64) return unary<true, double, double, Fn<gross_rcp>>;
    return i.approx ? approximate32<nearest_rcp, 1>(i) : arithmetic<FloatRcp, FloatRcp, 1>(i);
  }
  return i.approx ? approximate32<nearest_sqrt, 1>(i) : arithmetic<FloatSqrt, FloatSqrt, 1>(i);
}

template <class T>
void test_property(Exec& x, const Op& op, Mask mask) {
  const auto property = static_cast<TestProperty>(op.source->testp);
  x.set_predicate(op.d, mask,
                  test_lanes<T>(
                      mask, [property](T a) { return float_test(property, a); }, x.src(op.a)));
}

}  // namespace

Handler select_float(const Instruction& i) {
  if (i.type != Type::kF32 && i.type != Type::kF64) return nullptr;
  const bool wide = i.type == Type::kF64;
  switch (i.op) {
    case Opcode::kAdd:
      return arithmetic<FloatAdd, FloatAdd, 2>(i);
    case Opcode::kSub:
      return arithmetic<FloatSub, FloatSub, 2>(i);
    case Opcode::kMul:
      return arithmetic<FloatMul, FloatMul, 2>(i);
    case Opcode::kFma:
    case Opcode::kMad:
      if (const Handler host = select_host_fma(i)) return host;
      return arithmetic<NearestFma, FloatFma, 3>(i);
    case Opcode::kDiv:
      return select_div(i);
    case Opcode::kMin:
      return wide ? extreme<double, false>(i) : extreme<float, false>(i);
    case Opcode::kMax:
      return wide ? extreme<double, true>(i) : extreme<float, true>(i);
    case Opcode::kNeg:
      return sign_change<Negate>(i);
    case Opcode::kAbs:
      return sign_change<Absolute>(i);
    case Opcode::kRcp:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
      return select_root(i);
    case Opcode::kSin:
      return approximate32<approx_sin, 1>(i);
    case Opcode::kCos:
      return approximate32<approx_cos, 1>(i);
    case Opcode::kLg2:
      return approximate32<approx_lg2, 1>(i);
    case Opcode::kEx2:
      return approximate32<approx_ex2, 1>(i);
    case Opcode::kTanh:
      return approximate32<approx_tanh, 1>(i);
    case Opcode::kCopysign:
      return wide ? binary<true, double, double, double, Fn<float_copysign<double>>>
                  : binary<true, float, float, float, Fn<float_copysign<float>>>;
    case Opcode::kTestp:
      return wide ? test_property<double> : test_property<float>;
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
