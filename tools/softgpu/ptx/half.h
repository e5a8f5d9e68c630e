// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16: computed exactly enough in double and rounded once to nearest even.
// Pure; any thread.
#pragma once

#include "tools/softgpu/ptx/convert.h"

namespace softgpu::ptx {

inline constexpr std::uint16_t kCanonicalNan16 = 0x7fff;

template <class H>
inline H make_half(double value) {
  if constexpr (std::is_same_v<H, Half>) {
    return Half{pack_half(value)};
  } else {
    return BFloat{pack_bfloat(value)};
  }
}

// Sums and products of two are exact in double or round to odd there; so does the sum in fma, whose
// product is exact.
template <class H>
inline H half_add(H a, H b) {
  return make_half<H>(add_to_odd(double{widen(a)}, double{widen(b)}));
}
template <class H>
inline H half_sub(H a, H b) {
  return make_half<H>(add_to_odd(double{widen(a)}, -double{widen(b)}));
}
template <class H>
inline H half_mul(H a, H b) {
  return make_half<H>(double{widen(a)} * double{widen(b)});
}
template <class H>
inline H half_fma(H a, H b, H c) {
  return make_half<H>(add_to_odd(double{widen(a)} * double{widen(b)}, double{widen(c)}));
}
template <class H>
inline H half_neg(H a) {
  return H{static_cast<std::uint16_t>(a.bits ^ 0x8000u)};
}
template <class H>
inline H half_abs(H a) {
  return H{static_cast<std::uint16_t>(a.bits & 0x7fffu)};
}
template <class H, bool kMax, bool kNan>
inline H half_extreme(H a, H b) {
  return make_half<H>(double{float_extreme<kMax, kNan>(widen(a), widen(b))});
}
template <class H>
inline H half_flush(H a) {
  constexpr std::uint16_t kExponent = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
  return (a.bits & kExponent) == 0 ? H{static_cast<std::uint16_t>(a.bits & 0x8000u)} : a;
}
template <class H>
inline H half_saturate(H a) {
  return make_half<H>(double{saturate(widen(a))});
}
template <class H>
inline H half_relu(H a) {
  const float value = widen(a);
  if (value != value) return H{kCanonicalNan16};
  return value > 0 ? a : H{0};
}

}  // namespace softgpu::ptx
