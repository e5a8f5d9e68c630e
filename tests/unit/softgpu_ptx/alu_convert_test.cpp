// SPDX-License-Identifier: Apache-2.0
// Conversions between all types, and f16, bf16 and 8-bit float arithmetic. References: long double
// under the host's rounding modes, and searches over all values of a short format.
#include "tests/unit/softgpu_ptx/float_cases.h"

using namespace softgpu::ptx::test;

TEST_CASE("float to integer clamps", "[alu]") {
  std::vector<AluCase> cases;
  struct Target {
    const char* name;
    unsigned width, reg;
    bool is_signed;
  };
  const Target targets[] = {{"u8", 8, 32, false},   {"s8", 8, 32, true},    {"u16", 16, 16, false},
                            {"s16", 16, 16, true},  {"u32", 32, 32, false}, {"s32", 32, 32, true},
                            {"u64", 64, 64, false}, {"s64", 64, 64, true}};
  struct Way {
    const char* name;
    int host;
  };
  const Way ways[] = {
      {"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};
  for (const Target& t : targets) {
    for (const Way& w : ways) {
      for (const bool from_wide : {false, true}) {
        cases.push_back(
            {std::string("cvt.") + w.name + "." + t.name + (from_wide ? ".f64" : ".f32") +
                 " %d, %a;",
             t.reg, from_wide ? 64u : 32u, 32, 32, [=](Bits bits, Bits, Bits) -> Bits {
               const long double v = from_wide ? static_cast<long double>(f64(bits)) : f32(bits);
               const Bits top = Bits{1} << (t.width - 1);
               if (std::isnan(v)) {
                 if (!from_wide && t.width < 64) return 0;
                 return t.is_signed && t.reg > t.width ? ~Bits{0} << (t.width - 1) : top;
               }
               const int saved = std::fegetround();
               std::fesetround(w.host);
               const long double r = rintl(v);
               std::fesetround(saved);
               const long double high =
                   std::ldexp(1.0L, static_cast<int>(t.width - (t.is_signed ? 1 : 0))) - 1;
               const long double low = t.is_signed ? -high - 1 : 0;
               if (r >= high) return t.is_signed ? top - 1 : top - 1 + top;
               if (r <= low) return t.is_signed ? ~Bits{0} << (t.width - 1) : 0;
               return r < 0 ? Bits{0} - static_cast<Bits>(-r) : static_cast<Bits>(r);
             }});
      }
    }
  }
  check_cases(cases, floats);
}

TEST_CASE("integer to integer and to float", "[alu]") {
  std::vector<AluCase> cases = {
      {"cvt.s64.s32 %d, %a;", 64, 32, 32, 32,
       [](Bits a, Bits, Bits) { return a & 0x80000000 ? a | 0xffffffff00000000 : a; }},
      {"cvt.u64.u32 %d, %a;", 64, 32, 32, 32, [](Bits a, Bits, Bits) { return a; }},
      {"cvt.u32.u8 %d, %a;", 32, 32, 32, 32, [](Bits a, Bits, Bits) { return a & 0xff; }},
      {"cvt.s32.s8 %d, %a;", 32, 32, 32, 32,
       [](Bits a, Bits, Bits) { return a & 0x80 ? a | 0xffffff00 : a & 0xff; }},
      {"cvt.s32.s16 %d, %a;", 32, 16, 32, 32,
       [](Bits a, Bits, Bits) { return a & 0x8000 ? a | 0xffff0000 : a; }},
      {"cvt.u16.u64 %d, %a;", 16, 64, 32, 32, [](Bits a, Bits, Bits) { return a; }},
      {"cvt.u8.u32 %d, %a;", 32, 32, 32, 32, [](Bits a, Bits, Bits) { return a & 0xff; }},
      {"cvt.sat.s8.s32 %d, %a;", 32, 32, 32, 32,
       [](Bits a, Bits, Bits) {
         const auto v = static_cast<std::int32_t>(a);
         return static_cast<Bits>(static_cast<std::int64_t>(v > 127 ? 127 : v < -128 ? -128 : v));
       }},
      {"cvt.sat.u8.s32 %d, %a;", 32, 32, 32, 32,
       [](Bits a, Bits, Bits) {
         const auto v = static_cast<std::int32_t>(a);
         return static_cast<Bits>(v > 255 ? 255 : v < 0 ? 0 : v);
       }},
      {"cvt.sat.s32.u32 %d, %a;", 32, 32, 32, 32,
       [](Bits a, Bits, Bits) { return a > 0x7fffffff ? Bits{0x7fffffff} : a; }},
      {"cvt.sat.u32.s64 %d, %a;", 32, 64, 32, 32, [](Bits a, Bits, Bits) {
         return a >> 63 ? Bits{0} : a > 0xffffffff ? Bits{0xffffffff} : a;
       }}};
  const Mode modes[] = {{"rn", FE_TONEAREST}, kDirected[0], kDirected[1], kDirected[2]};
  for (const Mode& m : modes) {
    const int mode = m.host;
    // Long double holds every 64-bit integer; one rounding to the target under the host's mode.
    const auto rounded = [mode](long double v, bool wide) {
      const int saved = std::fegetround();
      std::fesetround(mode);
      volatile long double in = v;
      volatile float narrow = static_cast<float>(in);
      volatile double broad = static_cast<double>(in);
      std::fesetround(saved);
      return wide ? bits64(broad) : bits32(narrow);
    };
    for (const bool wide : {false, true}) {
      const std::string to = std::string("cvt.") + m.suffix + (wide ? ".f64." : ".f32.");
      const unsigned d = wide ? 64 : 32;
      cases.push_back({to + "s32 %d, %a;", d, 32, 32, 32, [=](Bits a, Bits, Bits) {
                         return rounded(static_cast<std::int32_t>(a), wide);
                       }});
      cases.push_back({to + "u32 %d, %a;", d, 32, 32, 32, [=](Bits a, Bits, Bits) {
                         return rounded(static_cast<std::uint32_t>(a), wide);
                       }});
      cases.push_back({to + "s64 %d, %a;", d, 64, 32, 32, [=](Bits a, Bits, Bits) {
                         return rounded(static_cast<std::int64_t>(a), wide);
                       }});
      cases.push_back({to + "u64 %d, %a;", d, 64, 32, 32,
                       [=](Bits a, Bits, Bits) { return rounded(a, wide); }});
    }
  }
  check_cases(cases, integers);
}

TEST_CASE("float to float", "[alu]") {
  std::vector<AluCase> cases = {
      {"cvt.f64.f32 %d, %a;", 64, 32, 32, 32,
       [](Bits a, Bits, Bits) { return bits64(double{f32(a)}); }},
      {"cvt.ftz.f64.f32 %d, %a;", 64, 32, 32, 32,
       [](Bits a, Bits, Bits) { return bits64(double{flushed(f32(a))}); }},
      single("cvt.sat.f32.f32 %d, %a;",
             [](float a, float, float) {
               return std::isnan(a) || a <= 0 ? 0.0f : a > 1 ? 1.0f : a;
             }),
      single("cvt.rni.f32.f32 %d, %a;", [](float a, float, float) { return std::nearbyintf(a); }),
      single("cvt.rzi.f32.f32 %d, %a;", [](float a, float, float) { return std::trunc(a); }),
      single("cvt.rmi.ftz.f32.f32 %d, %a;",
             [](float a, float, float) { return std::floor(flushed(a)); }),
      single("cvt.rpi.f32.f32 %d, %a;", [](float a, float, float) { return std::ceil(a); })};
  const Mode modes[] = {{"rn", FE_TONEAREST}, kDirected[0], kDirected[1], kDirected[2]};
  for (const Mode& m : modes) {
    const int mode = m.host;
    cases.push_back({std::string("cvt.") + m.suffix + ".f32.f64 %d, %a;", 32, 64, 32, 32,
                     [=](Bits a, Bits, Bits) {
                       const int saved = std::fegetround();
                       std::fesetround(mode);
                       volatile double in = f64(a);
                       volatile float out = static_cast<float>(in);
                       std::fesetround(saved);
                       return bits32(out);
                     }});
  }
  check_cases(cases, [](const AluCase& test) {
    Operands in = floats(test);
    for (Bits& v : in.a) {
      // Values around the range of f32, where packing is hard. NaN payloads are not compared.
      if (test.a == 64 && v % 3 == 0)
        v = bits64(std::ldexp(1.0 + 0x1p-30 * static_cast<double>(v % 1000000),
                              static_cast<int>(v % 300) - 152));
      if (test.d == 64 && std::isnan(f32(v))) v = 0;
    }
    return in;
  });
}

// --- f16 and bf16
// ----------------------------------------------------------------------------------------------------------

namespace {

// The value of f16 or bf16 bits, computed from the definition.
double half_value(Bits bits, unsigned exponent_bits) {
  const unsigned mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const Bits mantissa = bits & ((1u << mantissa_bits) - 1);
  const Bits exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1u << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign *
           std::ldexp(static_cast<double>(mantissa), 1 - bias - static_cast<int>(mantissa_bits));
  return sign * std::ldexp(1.0 + std::ldexp(static_cast<double>(mantissa),
                                            -static_cast<int>(mantissa_bits)),
                           static_cast<int>(exponent) - bias);
}

// Nearest, ties to even, by search: positive formats are ordered like their bits.
Bits nearest_half(Quad value, unsigned exponent_bits) {
  if (value != value) return 0x7fff;
  const Bits sign =
      value < 0 || (value == 0 && std::signbit(static_cast<double>(value))) ? 0x8000 : 0;
  if (value < 0) value = -value;
  const Bits infinity = ((Bits{1} << exponent_bits) - 1) << (15 - exponent_bits);
  Bits low = 0, high = infinity;  // value in [low, high)
  while (high - low > 1) {
    const Bits middle = (low + high) / 2;
    (Quad(half_value(middle, exponent_bits)) <= value ? low : high) = middle;
  }
  // Infinity stands for the number one step above the largest.
  const double below = half_value(low, exponent_bits);
  const double above = high == infinity ? 2 * below - half_value(low - 1, exponent_bits)
                                        : half_value(high, exponent_bits);
  if (value > Quad(above)) return sign | infinity;
  const Quad to_low = value - Quad(below), to_high = Quad(above) - value;
  const bool up = to_high < to_low || (to_high == to_low && (low & 1));
  return sign | (up ? high : low);
}

Operands halves(const AluCase& test) {
  std::mt19937_64 random(31);
  Operands in;
  for (std::vector<Bits>* values : {&in.a, &in.b, &in.c}) {
    for (unsigned i = 0; i < kAluCount; ++i) {
      Bits v = random();
      const unsigned bits = test.text.find("bf16") != std::string::npos ? 8 : 5;
      for (const unsigned shift : {0u, 16u})
        if (std::isnan(half_value(v >> shift & 0xffff, bits)))
          v = (v & ~(Bits{0xffff} << shift)) | Bits{0x7fff} << shift;
      // The exact bf16 fma must fit in quad precision.
      if (test.text.find("fma.rn.bf16") == 0) v = (v & ~Bits{0x70007000}) | 0x30003000;
      values->push_back(v);
    }
  }
  return in;
}

}  // namespace

TEST_CASE("f16 and bf16 arithmetic rounds once", "[alu]") {
  std::vector<AluCase> cases;
  for (const unsigned e : {5u, 8u}) {
    const std::string type = e == 5 ? "f16" : "bf16";
    using Formula = Quad (*)(Quad, Quad, Quad);
    const std::pair<std::string, Formula> formulas[] = {
        {"add." + type + " %d, %a, %b;", [](Quad a, Quad b, Quad) { return a + b; }},
        {"sub." + type + " %d, %a, %b;", [](Quad a, Quad b, Quad) { return a - b; }},
        {"mul." + type + " %d, %a, %b;", [](Quad a, Quad b, Quad) { return a * b; }},
        {"fma.rn." + type + " %d, %a, %b, %c;", [](Quad a, Quad b, Quad c) { return a * b + c; }}};
    for (const auto& [text, f] : formulas) {
      const auto one = [e, f = f](Bits a, Bits b, Bits c) {
        return nearest_half(
            f(half_value(a & 0xffff, e), half_value(b & 0xffff, e), half_value(c & 0xffff, e)), e);
      };
      cases.push_back({text, 16, 16, 16, 16, one});
      std::string pair = text;
      pair.insert(pair.find(type) + type.size(), "x2");
      cases.push_back({pair, 32, 32, 32, 32, [one](Bits a, Bits b, Bits c) {
                         return one(a, b, c) | one(a >> 16, b >> 16, c >> 16) << 16;
                       }});
    }
  }
  check_cases(cases, halves);
}

TEST_CASE("comparison of pairs of halves", "[alu]") {
  const auto less = [](Bits a, Bits b) {
    return half_value(a & 0xffff, 5) < half_value(b & 0xffff, 5);
  };
  check_cases(
      {{"setp.lt.f16x2 %p|%q, %a, %b; selp.b32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", 32, 32, 32,
        32, [=](Bits a, Bits b, Bits) { return Bits{less(a, b)} + 2 * less(a >> 16, b >> 16); }},
       {"set.lt.f16x2.f16x2 %d, %a, %b;", 32, 32, 32, 32,
        [=](Bits a, Bits b, Bits) {
          return (less(a, b) ? Bits{0x3c00} : 0) | (less(a >> 16, b >> 16) ? Bits{0x3c000000} : 0);
        }},
       {"set.lt.f16.f16 %d, %a, %b;", 16, 16, 16, 16,
        [=](Bits a, Bits b, Bits) { return less(a, b) ? Bits{0x3c00} : 0; }}},
      halves);
}

TEST_CASE("conversions of f16 and bf16", "[alu]") {
  std::vector<AluCase> cases = {
      {"cvt.f32.f16 %d, %a;", 32, 16, 32, 32,
       [](Bits a, Bits, Bits) { return bits32(static_cast<float>(half_value(a, 5))); }},
      {"cvt.f32.bf16 %d, %a;", 32, 16, 32, 32,
       [](Bits a, Bits, Bits) { return bits32(static_cast<float>(half_value(a, 8))); }}};
  check_cases(cases, halves);
  check_cases({{"cvt.rn.f16.f32 %d, %a;", 16, 32, 32, 32,
                [](Bits a, Bits, Bits) { return nearest_half(f32(a), 5); }},
               {"cvt.rn.bf16.f32 %d, %a;", 16, 32, 32, 32,
                [](Bits a, Bits, Bits) { return nearest_half(f32(a), 8); }},
               {"cvt.rn.f16x2.f32 %d, %a, %b;", 32, 32, 32, 32,
                [](Bits a, Bits b, Bits) {
                  return nearest_half(f32(a), 5) << 16 | nearest_half(f32(b), 5);
                }},
               {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", 32, 32, 32, 32,
                [](Bits a, Bits b, Bits) {
                  const auto one = [](float v) { return v <= 0 ? Bits{0} : nearest_half(v, 8); };
                  return one(f32(a)) << 16 | one(f32(b));
                }}},
              floats);
  check_cases({{"cvt.rn.f16.s32 %d, %a;", 16, 32, 32, 32,
                [](Bits a, Bits, Bits) { return nearest_half(static_cast<std::int32_t>(a), 5); }}},
              integers);
}

TEST_CASE("pairs of 8-bit floats", "[alu]") {
  // All 256 codes of a format as numbers; the nearest by search, ties to the even code, never past
  // the largest.
  const auto value = [](unsigned code, bool e4m3) -> double {
    const unsigned mantissa_bits = e4m3 ? 3 : 2;
    const unsigned magnitude = code & 0x7f;
    if (e4m3 ? magnitude == 0x7f : magnitude > 0x7c) return NAN;
    if (!e4m3 && magnitude == 0x7c) return code & 0x80 ? -INFINITY : INFINITY;
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const int bias = e4m3 ? 7 : 15;
    const double fraction =
        std::ldexp(magnitude & ((1u << mantissa_bits) - 1), -static_cast<int>(mantissa_bits));
    const double v =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return code & 0x80 ? -v : v;
  };
  const auto nearest = [value](double v, bool e4m3) -> Bits {
    if (std::isnan(v)) return 0x7f;
    const unsigned largest = e4m3 ? 0x7e : 0x7b;
    const double wanted =
        std::min(std::fabs(v), 1e6);  // past the range differences would round away
    unsigned best = 0;
    for (unsigned code = 0; code <= largest; ++code) {
      const double d = std::fabs(value(code, e4m3) - wanted),
                   b = std::fabs(value(best, e4m3) - wanted);
      if (d < b || (d == b && code % 2 == 0)) best = code;
    }
    return best | (std::signbit(v) ? 0x80u : 0u);
  };
  std::vector<AluCase> narrow, wide;
  for (const bool e4m3 : {true, false}) {
    const std::string type = e4m3 ? "e4m3x2" : "e5m2x2";
    narrow.push_back(
        {"cvt.rn.satfinite." + type + ".f32 %d, %a, %b;", 16, 32, 32, 32,
         [=](Bits a, Bits b, Bits) { return nearest(f32(a), e4m3) << 8 | nearest(f32(b), e4m3); }});
    wide.push_back(
        {"cvt.rn.f16x2." + type + " %d, %a;", 32, 16, 32, 32, [=](Bits a, Bits, Bits) {
           const auto half = [&](unsigned code) { return nearest_half(value(code, e4m3), 5); };
           return half(static_cast<unsigned>(a >> 8)) << 16 | half(static_cast<unsigned>(a & 0xff));
         }});
  }
  check_cases(narrow, [](const AluCase& test) {
    Operands in = floats(test);
    std::mt19937 random(77);
    for (Bits& v : in.a)
      v = bits32(std::ldexp(static_cast<float>(random() % 4096) - 2048,
                            static_cast<int>(random() % 24) - 20));
    return in;
  });
  check_cases(wide, halves);
}
