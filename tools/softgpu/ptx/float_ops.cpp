// SPDX-License-Identifier: Apache-2.0
// The approximate f32 and f64 functions. Pure; any thread.
#include "tools/softgpu/ptx/float_ops.h"

namespace softgpu::ptx {

float approx_ex2(float a) {
  return canonical(static_cast<float>(std::exp2(double{a})));
}

float approx_lg2(float a) {
  return canonical(static_cast<float>(std::log2(double{a})));
}

float approx_sin(float a) {
  return canonical(static_cast<float>(std::sin(double{a})));
}

float approx_cos(float a) {
  return canonical(static_cast<float>(std::cos(double{a})));
}

float approx_tanh(float a) {
  return canonical(static_cast<float>(std::tanh(double{a})));
}

float approx_rsqrt(float a) {
  if (a == 0) return std::copysign(std::numeric_limits<float>::infinity(), a);
  return canonical(static_cast<float>(1.0 / std::sqrt(double{a})));
}

double approx_rsqrt(double a) {
  if (a == 0) return std::copysign(std::numeric_limits<double>::infinity(), a);
  return 1.0 / std::sqrt(a);
}

float approx_div(float a, float b) {
  // The hardware multiplies by a reciprocal that is flushed to zero for |b| above 2^126.
  const float magnitude = std::fabs(b);
  if (magnitude > 0x1p126f && std::isfinite(b)) {
    if (std::isinf(a)) return std::bit_cast<float>(kCanonicalNan32);
    if (!std::isnan(a)) return std::copysign(0.0f, std::signbit(a) == std::signbit(b) ? 1.f : -1.f);
  }
  return canonical(a / b);
}

float full_div(float a, float b) {
  return canonical(a / b);
}

namespace {

double keep_high_word(double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & 0xffffffff00000000u);
}

}  // namespace

double gross_rcp(double a) {
  return keep_high_word(flush(1.0 / flush(keep_high_word(a))));
}

double gross_rsqrt(double a) {
  return keep_high_word(flush(approx_rsqrt(flush(keep_high_word(a)))));
}

}  // namespace softgpu::ptx
