// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of cvt. The semantics are in convert.h and float_ops.h.
#include "tools/softgpu/ptx/alu_lanes.h"
#include "tools/softgpu/ptx/convert.h"

namespace softgpu::ptx {

namespace {

template <class T>
struct Tag {
  using type = T;
};

RoundTo round_to(const Instruction& i) {
  switch (i.rounding) {
    case Rounding::kRz:
    case Rounding::kRzi:
      return RoundTo::kZero;
    case Rounding::kRm:
    case Rounding::kRmi:
      return RoundTo::kDown;
    case Rounding::kRp:
    case Rounding::kRpi:
      return RoundTo::kUp;
    case Rounding::kRna:
      return RoundTo::kAway;
    default:
      return RoundTo::kEven;
  }
}

// --- values of any float type as double or float, and back
// ------------------------------------------------------------

template <class D>
D narrow(double value, RoundTo round, bool finite) {
  if constexpr (std::is_same_v<D, Half>) {
    return Half{pack_half(value, round, finite)};
  } else if constexpr (std::is_same_v<D, BFloat>) {
    return BFloat{pack_bfloat(value, round, finite)};
  } else if constexpr (std::is_same_v<D, float>) {
    if (round == RoundTo::kEven && !finite) return canonical(static_cast<float>(value));
    return std::bit_cast<float>(
        static_cast<std::uint32_t>(pack_double(kFormat32, value, round, finite)));
  } else {
    return value;
  }
}

template <class T>
T saturate_any(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return saturate(value);
  } else {
    // Only 0 and 1 can be new here, and both are exact.
    return narrow<T>(double{saturate(widen(value))}, RoundTo::kEven, false);
  }
}
template <class T>
T relu_any(T value) {
  const auto wide = widen(value);
  if (wide != wide)
    return narrow<T>(std::numeric_limits<double>::quiet_NaN(), RoundTo::kEven, false);
  return wide > 0 ? value : T{};
}

// --- integer to integer
// ---------------------------------------------------------------------------------------------------

template <class D, class S, bool kSat>
struct IntToInt {
  D operator()(S v) const { return kSat ? clamp_int<D>(v) : static_cast<D>(v); }
};

// --- integer to float
// -----------------------------------------------------------------------------------------------------

template <class D, class S>
struct IntToFloat {
  D operator()(S v) const { return static_cast<D>(v); }
};

template <class D>
constexpr FloatFormat kFormatOf = std::is_same_v<D, Half>     ? kFormat16
                                  : std::is_same_v<D, BFloat> ? kFormatB16
                                  : std::is_same_v<D, float>  ? kFormat32
                                                              : kFormat64;
template <class D>
D from_bits(std::uint64_t bits) {
  D value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Any rounding, any format.
template <class D, class S>
void int_to_float_slow(Exec& x, const Op& op, Mask mask) {
  const Instruction& i = *op.source;
  const RoundTo round = round_to(i);
  map_lanes<false, D, S>(
      mask,
      [&](S v) {
        const D packed = from_bits<D>(pack_int(kFormatOf<D>, v, round));
        return i.sat ? saturate_any(packed) : packed;
      },
      x.dst(op.d), x.src(op.a));
}

// --- float to integer
// -----------------------------------------------------------------------------------------------------

template <class D, class S, RoundInt kRound, bool kFtz>
struct FloatToInt {
  D operator()(S v) const {
    const auto wide = widen(v);
    return float_to_int<D, kRound>(float_in<kFtz>(wide));
  }
};

template <class D, class S, bool kFtz>
Handler float_to_int_handler(const Instruction& i) {
  switch (round_to(i)) {
    case RoundTo::kZero:
      return unary<false, D, S, FloatToInt<D, S, RoundInt::kZero, kFtz>>;
    case RoundTo::kDown:
      return unary<false, D, S, FloatToInt<D, S, RoundInt::kDown, kFtz>>;
    case RoundTo::kUp:
      return unary<false, D, S, FloatToInt<D, S, RoundInt::kUp, kFtz>>;
    default:
      return unary<false, D, S, FloatToInt<D, S, RoundInt::kNearest, kFtz>>;
  }
}

// --- float to float
// -------------------------------------------------------------------------------------------------------

bool rounds_to_integral(Rounding r) {
  return r == Rounding::kRni || r == Rounding::kRzi || r == Rounding::kRmi || r == Rounding::kRpi;
}

double to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kRzi:
      return std::trunc(value);
    case Rounding::kRmi:
      return std::floor(value);
    case Rounding::kRpi:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

// Every modifier at run time: these forms are rare or dominated by the packing.
template <class D, class S>
struct FloatConverter {
  const Instruction& i;
  RoundTo round;
  D operator()(S v) const {
    double value = widen(v);
    if (i.ftz && std::is_same_v<S, float>) value = flush(static_cast<float>(value));
    if (rounds_to_integral(i.rounding)) value = to_integral(value, i.rounding);
    D result = narrow<D>(value, round, i.satfinite);
    if constexpr (std::is_same_v<D, float>) {
      if (i.ftz) result = flush(result);
    }
    if (i.sat) result = saturate_any(result);
    if (i.relu) result = relu_any(result);
    return result;
  }
};

template <class D, class S>
void float_to_float(Exec& x, const Op& op, Mask mask) {
  const FloatConverter<D, S> convert{*op.source, round_to(*op.source)};
  map_lanes<false, D, S>(mask, convert, x.dst(op.d), x.src(op.a));
}

struct HalfToFloat {
  float operator()(Half v) const { return unpack_half(v.bits); }
};
struct FloatToHalf {
  Half operator()(float v) const { return Half{pack_half(double{v})}; }
};
struct FloatToDouble {
  double operator()(float v) const { return v; }
};
struct DoubleToFloat {
  float operator()(double v) const { return canonical(static_cast<float>(v)); }
};

bool is_bare(const Instruction& i) {
  return !i.ftz && !i.sat && !i.relu && !i.satfinite &&
         (i.rounding == Rounding::kNone || i.rounding == Rounding::kRn);
}

// tf32 is an f32 with a short mantissa.
void float_to_tf32(Exec& x, const Op& op, Mask mask) {
  const Instruction& i = *op.source;
  const RoundTo round = round_to(i);
  map_lanes<false, std::uint32_t, float>(
      mask,
      [&](float v) {
        const auto packed =
            static_cast<std::uint32_t>(pack_double(kFormatTf32, double{v}, round, i.satfinite));
        const std::uint32_t bits = ((packed & 0x40000u) << 13) | ((packed & 0x3ffffu) << 13);
        if (v != v) return kCanonicalNan32;
        return i.relu && (bits >> 31) != 0 ? 0u : bits;
      },
      x.dst(op.d), x.src(op.a));
}

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <class H>
void floats_to_pair(Exec& x, const Op& op, Mask mask) {
  const FloatConverter<H, float> convert{*op.source, round_to(*op.source)};
  map_lanes<false, std::uint32_t, float, float>(
      mask,
      [&](float a, float b) { return (std::uint32_t{convert(a).bits} << 16) | convert(b).bits; },
      x.dst(op.d), x.src(op.a), x.src(op.b));
}

// --- pairs of 8-bit floats: the first operand, or the upper half, is the upper byte
// --------------------------------------

struct Narrow8 {
  FloatFormat format;
  bool relu;
  std::uint32_t operator()(float v) const {
    // These conversions exist with .satfinite only.
    if (relu && v <= 0) return 0;
    return static_cast<std::uint32_t>(pack_double(format, double{v}, RoundTo::kEven, true));
  }
};

Narrow8 narrow8(const Instruction& i) {
  return {i.type == Type::kE4m3x2 ? kFormatE4m3 : kFormatE5m2, i.relu};
}

void floats_to_bytes(Exec& x, const Op& op, Mask mask) {
  const Narrow8 convert = narrow8(*op.source);
  map_lanes<false, std::uint32_t, float, float>(
      mask, [&](float a, float b) { return convert(a) << 8 | convert(b); }, x.dst(op.d),
      x.src(op.a), x.src(op.b));
}
void halves_to_bytes(Exec& x, const Op& op, Mask mask) {
  const Narrow8 convert = narrow8(*op.source);
  map_lanes<false, std::uint32_t, std::uint32_t>(
      mask,
      [&](std::uint32_t pair) {
        const float high = unpack_half(static_cast<std::uint16_t>(pair >> 16));
        const float low = unpack_half(static_cast<std::uint16_t>(pair));
        return convert(high) << 8 | convert(low);
      },
      x.dst(op.d), x.src(op.a));
}
template <float (*kUnpack)(std::uint8_t)>
void bytes_to_halves(Exec& x, const Op& op, Mask mask) {
  const bool relu = op.source->relu;
  map_lanes<false, std::uint32_t, std::uint16_t>(
      mask,
      [&](std::uint16_t bytes) {
        const auto half = [&](std::uint8_t byte) {
          const Half value{pack_half(double{kUnpack(byte)})};
          return std::uint32_t{relu ? relu_any(value).bits : value.bits};
        };
        return half(static_cast<std::uint8_t>(bytes >> 8)) << 16 |
               half(static_cast<std::uint8_t>(bytes));
      },
      x.dst(op.d), x.src(op.a));
}

Handler select_bytes(const Instruction& i) {
  const bool to_bytes = i.type == Type::kE4m3x2 || i.type == Type::kE5m2x2;
  if (to_bytes && i.source_type == Type::kF32 && i.src_count == 2) return floats_to_bytes;
  if (to_bytes && i.source_type == Type::kF16x2) return halves_to_bytes;
  if (i.type != Type::kF16x2) return nullptr;
  if (i.source_type == Type::kE4m3x2) return bytes_to_halves<unpack_e4m3>;
  if (i.source_type == Type::kE5m2x2) return bytes_to_halves<unpack_e5m2>;
  return nullptr;
}

// cvt.pack.sat.type.s32 d, a, b[, c]: a above b, and for narrow types the low bits of c above
// neither but below.
template <class T, unsigned kBitsEach>
void pack_pair(Exec& x, const Op& op, Mask mask) {
  const bool has_c = op.source->src_count == 3;
  constexpr std::uint32_t kOnes = (1u << kBitsEach) - 1;
  map_lanes<false, std::uint32_t, std::int32_t, std::int32_t, std::uint32_t>(
      mask,
      [&](std::int32_t a, std::int32_t b, std::uint32_t c) {
        const std::uint32_t high = static_cast<std::uint32_t>(clamp_int<T>(a)) & kOnes;
        const std::uint32_t low = static_cast<std::uint32_t>(clamp_int<T>(b)) & kOnes;
        const std::uint32_t pair = (high << kBitsEach) | low;
        if constexpr (kBitsEach == 16) {
          return pair;
        } else {
          return has_c ? (c << 16) | pair : pair;
        }
      },
      x.dst(op.d), x.src(op.a), x.src(op.b), x.src(has_c ? op.c : op.a));
}

// --- selection
// --------------------------------------------------------------------------------------------------------------

template <class F>
Handler with_any(Type type, F f) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return f(Tag<std::uint8_t>{});
    case Type::kS8:
      return f(Tag<std::int8_t>{});
    case Type::kU16:
    case Type::kB16:
      return f(Tag<std::uint16_t>{});
    case Type::kS16:
      return f(Tag<std::int16_t>{});
    case Type::kU32:
    case Type::kB32:
      return f(Tag<std::uint32_t>{});
    case Type::kS32:
      return f(Tag<std::int32_t>{});
    case Type::kU64:
    case Type::kB64:
      return f(Tag<std::uint64_t>{});
    case Type::kS64:
      return f(Tag<std::int64_t>{});
    case Type::kF16:
      return f(Tag<Half>{});
    case Type::kBf16:
      return f(Tag<BFloat>{});
    case Type::kF32:
      return f(Tag<float>{});
    case Type::kF64:
      return f(Tag<double>{});
    default:
      return nullptr;
  }
}

template <class D, class S>
Handler between_floats(const Instruction& i) {
  if constexpr (std::is_same_v<D, float> && std::is_same_v<S, Half>) {
    if (is_bare(i)) return unary<false, D, S, HalfToFloat>;
  } else if constexpr (std::is_same_v<D, Half> && std::is_same_v<S, float>) {
    if (is_bare(i)) return unary<false, D, S, FloatToHalf>;
  } else if constexpr (std::is_same_v<D, double> && std::is_same_v<S, float>) {
    if (is_bare(i)) return unary<false, D, S, FloatToDouble>;
  } else if constexpr (std::is_same_v<D, float> && std::is_same_v<S, double>) {
    if (is_bare(i)) return unary<false, D, S, DoubleToFloat>;
  }
  return float_to_float<D, S>;
}

template <class D, class S>
Handler convert_handler(const Instruction& i) {
  if constexpr (std::is_integral_v<D> && std::is_integral_v<S>) {
    return i.sat ? unary<false, D, S, IntToInt<D, S, true>>
                 : unary<false, D, S, IntToInt<D, S, false>>;
  } else if constexpr (std::is_integral_v<D>) {
    if constexpr (std::is_same_v<S, float>) {
      if (i.ftz) return float_to_int_handler<D, S, true>(i);
    }
    return float_to_int_handler<D, S, false>(i);
  } else if constexpr (std::is_integral_v<S>) {
    if constexpr (std::is_arithmetic_v<D>) {
      if (round_to(i) == RoundTo::kEven && !i.sat) return unary<false, D, S, IntToFloat<D, S>>;
    }
    return int_to_float_slow<D, S>;
  } else {
    return between_floats<D, S>(i);
  }
}

}  // namespace

Handler select_convert(const Instruction& i) {
  if (i.op == Opcode::kCvtPack) {
    switch (i.type) {
      case Type::kS16:
        return pack_pair<std::int16_t, 16>;
      case Type::kU16:
        return pack_pair<std::uint16_t, 16>;
      case Type::kS8:
        return pack_pair<std::int8_t, 8>;
      case Type::kU8:
        return pack_pair<std::uint8_t, 8>;
      default:
        return nullptr;
    }
  }
  if (i.op != Opcode::kCvt) return nullptr;
  if (i.type == Type::kTf32 && i.source_type == Type::kF32) return float_to_tf32;
  if (const Handler bytes = select_bytes(i)) return bytes;
  if (i.source_type == Type::kF32 && i.src_count == 2) {
    if (i.type == Type::kF16x2) return floats_to_pair<Half>;
    if (i.type == Type::kBf16x2) return floats_to_pair<BFloat>;
    return nullptr;
  }
  return with_any(i.type, [&](auto d) -> Handler {
    return with_any(i.source_type, [&](auto s) -> Handler {
      return convert_handler<typename decltype(d)::type, typename decltype(s)::type>(i);
    });
  });
}

}  // namespace softgpu::ptx
