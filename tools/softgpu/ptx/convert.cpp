// SPDX-License-Identifier: Apache-2.0
// Packs numbers into float formats by integer arithmetic, independent of the host's rounding mode.
// Pure; any thread.
#include "tools/softgpu/ptx/convert.h"

#include <algorithm>

namespace softgpu::ptx {

namespace {

// Whether the part shifted out makes the magnitude grow by one.
bool rounds_up(std::uint64_t kept, std::uint64_t rest, std::uint64_t half, bool negative,
               RoundTo round) {
  switch (round) {
    case RoundTo::kEven:
      return rest > half || (rest == half && (kept & 1) != 0);
    case RoundTo::kAway:
      return rest >= half;
    case RoundTo::kZero:
      return false;
    case RoundTo::kDown:
      return negative && rest != 0;
    case RoundTo::kUp:
      return !negative && rest != 0;
  }
  return false;
}

}  // namespace

std::uint64_t pack_float(FloatFormat format, bool negative, std::uint64_t magnitude, int exponent,
                         RoundTo round, bool finite) {
  const std::uint64_t sign =
      negative ? std::uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  if (magnitude == 0) return sign;
  // Normalise: bit 63 set, value = magnitude * 2^exponent.
  const int zeros = std::countl_zero(magnitude);
  magnitude <<= zeros;
  exponent -= zeros;
  const int top = exponent + 63;  // floor(log2(value))
  const int smallest = 1 - format.bias();
  const int below = top < smallest ? smallest - top : 0;  // subnormal: fewer bits are kept
  const int shift = 63 - static_cast<int>(format.mantissa_bits) + below;
  std::uint64_t kept = 0;
  if (shift < 64) {
    kept = magnitude >> shift;
    const std::uint64_t rest = magnitude & ((std::uint64_t{1} << shift) - 1);
    if (rounds_up(kept, rest, std::uint64_t{1} << (shift - 1), negative, round)) ++kept;
  } else {
    // Less than half of the smallest number, or exactly half or more when shift is 64.
    const bool up = shift == 64 ? rounds_up(0, magnitude, std::uint64_t{1} << 63, negative, round)
                                : rounds_up(0, 1, 2, negative, round);
    kept = up ? 1 : 0;
  }
  std::uint64_t bits = kept;
  if (below == 0) {
    const auto biased = static_cast<std::int64_t>(top) + format.bias();
    if (biased > (std::int64_t{1} << format.exponent_bits)) {
      bits = format.infinity();
    } else {
      // The hidden bit of `kept` carries into the exponent, also when rounding made it grow.
      bits = ((static_cast<std::uint64_t>(biased) - 1) << format.mantissa_bits) + kept;
    }
  }
  if (bits >= format.infinity()) {
    const bool towards_zero = round == RoundTo::kZero || (round == RoundTo::kDown && !negative) ||
                              (round == RoundTo::kUp && negative);
    bits = format.infinity() - (finite || towards_zero ? 1 : 0);
  }
  return sign | bits;
}

std::uint64_t pack_double(FloatFormat format, double value, RoundTo round, bool finite) {
  const std::uint64_t all = (std::uint64_t{1} << (format.exponent_bits + format.mantissa_bits)) - 1;
  if (std::isnan(value)) return all;
  const bool negative = std::signbit(value);
  if (std::isinf(value)) {
    return (negative ? all + 1 : 0) | (format.infinity() - (finite ? 1 : 0));
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto field = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & 0x000fffffffffffffu;
  if (field == 0) return pack_float(format, negative, fraction, -1074, round, finite);
  return pack_float(format, negative, fraction | 0x0010000000000000u, field - 1075, round, finite);
}

float unpack_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    return std::bit_cast<float>(sign | (mantissa != 0 ? kCanonicalNan32 : 0x7f800000u));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float unpack_e4m3(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::bit_cast<float>(kCanonicalNan32);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint16_t pack_half(double value, RoundTo round, bool finite) {
  return static_cast<std::uint16_t>(pack_double(kFormat16, value, round, finite));
}

std::uint16_t pack_bfloat(double value, RoundTo round, bool finite) {
  return static_cast<std::uint16_t>(pack_double(kFormatB16, value, round, finite));
}

}  // namespace softgpu::ptx
