// SPDX-License-Identifier: Apache-2.0
// Scalar floating-point semantics of PTX for f32 and f64: rounding, flush to zero, saturation, NaN
// rules and the special cases of the approximate instructions. Pure functions for any thread.
// Directed rounding changes the calling thread's rounding mode, so those forms run inside a
// DirectedRounding scope and never outside one.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tools/softgpu/ptx/float_environment.h"

namespace softgpu::ptx {

enum class Round : std::uint8_t { kNearest, kZero, kDown, kUp };

inline constexpr std::uint32_t kCanonicalNan32 = 0x7fffffffu;

// The thread's rounding mode for the directed forms. Values must pass through opaque() so that the
// compiler, which assumes round to nearest, neither folds nor moves the arithmetic out of the
// scope.
class DirectedRounding {
 public:
  explicit DirectedRounding(Round round)
      : scope_(round == Round::kZero   ? FE_TOWARDZERO
               : round == Round::kDown ? FE_DOWNWARD
               : round == Round::kUp   ? FE_UPWARD
                                       : FE_TONEAREST) {}

 private:
  RoundingScope scope_;
};

template <class T>
inline T opaque(T value) {
  volatile T copy = value;
  return copy;
}

// Subnormals become zero of the same sign. f64 has no .ftz forms except the gross approximations.
inline float flush(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
inline double flush(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return std::bit_cast<double>((bits & 0x7ff0000000000000u) == 0 ? bits & 0x8000000000000000u
                                                                 : bits);
}

// f32 results that are NaN are always 0x7fffffff; f64 keeps payloads, as the host does.
inline float canonical(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>(value != value ? kCanonicalNan32 : bits);
}
inline double canonical(double value) {
  return value;
}

template <class T>
inline T saturate(T value) {
  // NaN becomes +0: both comparisons fail.
  const T low = value > T(0) ? value : T(0);
  return low < T(1) ? low : T(1);
}

template <bool kFtz, class T>
inline T float_in(T value) {
  if constexpr (kFtz) return flush(value);
  return value;
}

template <bool kFtz, bool kSat, class T>
inline T float_out(T value) {
  if constexpr (kFtz) value = flush(value);
  if constexpr (kSat) return saturate(value);
  return canonical(value);
}

// s = a + b rounded to odd: the inexact result keeps a set last bit, so that one more rounding to a
// format with at least two bits less is the correctly rounded sum. Used where a product is exact in
// double.
inline double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool adjust = error != 0 && (bits & 1) == 0 && std::isfinite(sum);
  if (!adjust) return sum;
  const bool away = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

struct FloatAdd {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct FloatSub {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct FloatMul {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};
struct FloatDiv {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
// Round to nearest only; the product of two floats is exact in double.
inline float fma_nearest(float a, float b, float c) {
  return static_cast<float>(add_to_odd(double{a} * double{b}, double{c}));
}
inline double fma_nearest(double a, double b, double c) {
  return std::fma(a, b, c);
}

struct FloatFma {
  template <class T>
  static T apply(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
struct FloatSqrt {
  template <class T>
  static T apply(T a) {
    return std::sqrt(a);
  }
};
struct FloatRcp {
  template <class T>
  static T apply(T a) {
    return T(1) / a;
  }
};

// min/max: a NaN operand loses to a number unless `kNan`; -0 is less than +0.
template <bool kMax, bool kNan, class T>
inline T float_extreme(T a, T b) {
  if (a != a || b != b) {
    if constexpr (kNan) return canonical(a != a ? a : b);
    if (a != a) return canonical(b);
    return a;
  }
  if (a == b) return std::signbit(a) == kMax ? b : a;
  return (a > b) == kMax ? a : b;
}

template <class T>
inline T float_abs(T a) {
  return std::fabs(a);
}
template <class T>
inline T float_copysign(T sign, T magnitude) {
  return std::copysign(magnitude, sign);
}

enum class TestProperty : std::uint8_t {
  kFinite,
  kInfinite,
  kNumber,
  kNotANumber,
  kNormal,
  kSubnormal
};

template <class T>
inline bool float_test(TestProperty property, T a) {
  switch (property) {
    case TestProperty::kFinite:
      return std::isfinite(a);
    case TestProperty::kInfinite:
      return std::isinf(a);
    case TestProperty::kNumber:
      return !std::isnan(a);
    case TestProperty::kNotANumber:
      return std::isnan(a);
    case TestProperty::kNormal:
      // PTX counts zero as normal.
      return std::isnormal(a) || a == T(0);
    case TestProperty::kSubnormal:
      return std::fpclassify(a) == FP_SUBNORMAL;
  }
  return false;
}

// Approximate forms. PTX bounds their error but does not define their bits; these are as accurate
// as f32 allows, and keep the documented special cases.
float approx_ex2(float a);
float approx_lg2(float a);
float approx_sin(float a);
float approx_cos(float a);
float approx_tanh(float a);
float approx_rsqrt(float a);
double approx_rsqrt(double a);
float approx_div(float a, float b);
float full_div(float a, float b);
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: only the high word of operand and result count.
double gross_rcp(double a);
double gross_rsqrt(double a);

}  // namespace softgpu::ptx
