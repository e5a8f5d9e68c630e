// SPDX-License-Identifier: Apache-2.0
// Scalar conversions of PTX: packing a binary number into any of the float formats under any
// rounding, and float to integer with clamping. Pure functions for any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tools/softgpu/ptx/float_ops.h"
#include "tools/softgpu/ptx/lanes.h"

namespace softgpu::ptx {

// A binary float format with the usual layout: sign, exponent, mantissa.
struct FloatFormat {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  bool has_infinity = true;  // e4m3 has none: its largest exponent holds numbers, and one NaN
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  // The code after the largest finite number.
  constexpr std::uint64_t infinity() const {
    if (!has_infinity) return (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
    return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
};
inline constexpr FloatFormat kFormat16{5, 10};
inline constexpr FloatFormat kFormatB16{8, 7};
inline constexpr FloatFormat kFormatTf32{8, 10};
inline constexpr FloatFormat kFormatE4m3{4, 3, false};
inline constexpr FloatFormat kFormatE5m2{5, 2};
inline constexpr FloatFormat kFormat32{8, 23};
inline constexpr FloatFormat kFormat64{11, 52};

enum class RoundTo : std::uint8_t { kEven, kAway, kZero, kDown, kUp };

// magnitude * 2^exponent as bits of `format`, without the NaN cases. Overflow gives infinity or the
// largest number, as the rounding says; `finite` asks for the largest number always.
std::uint64_t pack_float(FloatFormat format, bool negative, std::uint64_t magnitude, int exponent,
                         RoundTo round, bool finite = false);
// Any double. NaN becomes the format's canonical NaN, 0x7fff for 16 bits and 0x7fffffff for 32.
std::uint64_t pack_double(FloatFormat format, double value, RoundTo round, bool finite = false);

float unpack_half(std::uint16_t bits);
inline float unpack_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
std::uint16_t pack_half(double value, RoundTo round = RoundTo::kEven, bool finite = false);
std::uint16_t pack_bfloat(double value, RoundTo round = RoundTo::kEven, bool finite = false);

float unpack_e4m3(std::uint8_t bits);
inline float unpack_e5m2(std::uint8_t bits) {
  return unpack_half(static_cast<std::uint16_t>(bits << 8));
}

// Values of any float type as float or double.
inline float widen(float v) {
  return v;
}
inline double widen(double v) {
  return v;
}
inline float widen(Half v) {
  return unpack_half(v.bits);
}
inline float widen(BFloat v) {
  return unpack_bfloat(v.bits);
}

enum class RoundInt : std::uint8_t { kNearest, kZero, kDown, kUp };

template <RoundInt kRound, class T>
inline T round_integral(T value) {
  switch (kRound) {
    case RoundInt::kNearest:
      return std::nearbyint(value);
    case RoundInt::kZero:
      return std::trunc(value);
    case RoundInt::kDown:
      return std::floor(value);
    case RoundInt::kUp:
      return std::ceil(value);
  }
  return value;
}

// Clamps to the range of D. NaN is 0, except where f64 or a 64-bit result is involved: then only
// the top bit is set.
template <class D, RoundInt kRound, class S>
inline D float_to_int(S value) {
  if (value != value) {
    if (sizeof(S) < 8 && sizeof(D) < 8) return 0;
    return static_cast<D>(std::make_unsigned_t<D>{1} << (sizeof(D) * 8 - 1));
  }
  const S rounded = round_integral<kRound>(value);
  // 2^N is exact in every float type; the largest D may not be.
  constexpr int kDigits = std::numeric_limits<D>::digits;
  const S above = std::ldexp(S(1), kDigits);
  if (rounded >= above) return std::numeric_limits<D>::max();
  if constexpr (std::is_signed_v<D>) {
    if (rounded < -above) return std::numeric_limits<D>::min();
  } else {
    if (rounded < S(0)) return 0;
  }
  return static_cast<D>(rounded);
}

template <class D, class S>
inline D clamp_int(S value) {
  if constexpr (std::is_signed_v<S>) {
    if constexpr (std::is_signed_v<D>) {
      if (value < static_cast<std::int64_t>(std::numeric_limits<D>::min()))
        return std::numeric_limits<D>::min();
    } else {
      if (value < 0) return 0;
    }
    if (value > 0 && static_cast<std::uint64_t>(value) >
                         static_cast<std::uint64_t>(std::numeric_limits<D>::max()))
      return std::numeric_limits<D>::max();
  } else {
    if (std::uint64_t{value} > static_cast<std::uint64_t>(std::numeric_limits<D>::max()))
      return std::numeric_limits<D>::max();
  }
  return static_cast<D>(value);
}

// An integer under a directed rounding; to nearest the host's own conversion is the same.
template <class S>
inline std::uint64_t pack_int(FloatFormat format, S value, RoundTo round) {
  bool negative = false;
  auto magnitude = static_cast<std::uint64_t>(value);
  if constexpr (std::is_signed_v<S>) {
    negative = value < 0;
    if (negative) magnitude = 0 - magnitude;
  }
  return pack_float(format, negative, magnitude, 0, round);
}

}  // namespace softgpu::ptx
