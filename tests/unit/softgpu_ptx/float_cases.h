// SPDX-License-Identifier: Apache-2.0
// Operands and small functions shared by the floating-point and conversion tests.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <string>

#include "tests/unit/softgpu_ptx/alu_cases.h"

namespace softgpu::ptx::test {

__extension__ typedef __float128 Quad;

inline float f32(Bits bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
inline double f64(Bits bits) {
  return std::bit_cast<double>(bits);
}
inline Bits bits32(float v) {
  return std::isnan(v) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(v);
}
inline Bits bits64(double v) {
  return std::bit_cast<std::uint64_t>(v);
}
inline float flushed(float v) {
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
}

inline std::vector<Bits> float_operands(unsigned seed, bool wide) {
  std::mt19937_64 random(seed);
  const float edges[] = {0.0f,
                         -0.0f,
                         1.0f,
                         -1.0f,
                         0.5f,
                         2.5f,
                         -2.5f,
                         3.5f,
                         1e-40f,
                         -1e-45f,
                         1.17549435e-38f,
                         3.4028235e38f,
                         -3.4028235e38f,
                         INFINITY,
                         -INFINITY,
                         NAN,
                         2147483648.0f,
                         -2147483648.0f,
                         4294967296.0f,
                         9.2233720e18f,
                         1.8446744e19f,
                         255.5f,
                         127.5f,
                         -128.5f,
                         65535.5f,
                         65519.9f};
  std::vector<Bits> values(kAluCount);
  for (Bits& v : values) {
    const float edge = edges[random() % (sizeof edges / sizeof *edges)];
    const auto small = static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-58;
    switch (random() % 4) {
      case 0:
        v = wide ? bits64(static_cast<double>(edge)) : bits32(edge);
        break;
      case 1:
        v = wide ? bits64(small) : bits32(static_cast<float>(small));
        break;
      default:
        v = random();
        if (wide && std::isnan(f64(v))) v = 0x7ff8000000000000;
        if (!wide && std::isnan(f32(v))) v = 0x7fffffff;
    }
  }
  return values;
}

inline Operands floats(const AluCase& test) {
  return {float_operands(11, test.a == 64), float_operands(12, test.b == 64),
          float_operands(13, test.c == 64)};
}
inline Operands integers(const AluCase&) {
  return {integer_operands(21), integer_operands(22), integer_operands(23)};
}

inline AluCase single(const std::string& text, std::function<float(float, float, float)> f) {
  return {text, 32, 32,
          32,   32, [f](Bits a, Bits b, Bits c) { return bits32(f(f32(a), f32(b), f32(c))); }};
}
inline AluCase twofold(const std::string& text, std::function<double(double, double, double)> f) {
  return {text, 64, 64, 64, 64, [f](Bits a, Bits b, Bits c) {
            const double v = f(f64(a), f64(b), f64(c));
            return bits64(v);
          }};
}

struct Mode {
  const char* suffix;
  int host;
};
inline const Mode kDirected[] = {{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

}  // namespace softgpu::ptx::test
