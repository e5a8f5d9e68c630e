// SPDX-License-Identifier: Apache-2.0
// Floating-point instructions over random bits and special values. References: wider host
// arithmetic rounded once, and quad precision brackets for directed rounding.
#include "tests/unit/softgpu_ptx/float_cases.h"

using namespace softgpu::ptx::test;

namespace {

// The float next to the exact value in the direction of the mode, from the nearest one and the
// exact sign of its error.
float directed(float nearest, Quad error, int mode) {
  if (!(error != 0) || std::isnan(nearest)) return nearest;
  const bool too_high = error < 0;  // exact < nearest
  const bool want_low =
      mode == FE_DOWNWARD ||
      (mode == FE_TOWARDZERO && (nearest > 0 || (nearest == 0 && !std::signbit(nearest))));
  if (too_high == want_low) return std::nextafter(nearest, want_low ? -INFINITY : INFINITY);
  return nearest;
}

template <class F>
double host_rounding(int mode, F f) {
  const int saved = std::fegetround();
  std::fesetround(mode);
  volatile double result = f();
  std::fesetround(saved);
  return result;
}

}  // namespace

TEST_CASE("f32 arithmetic to nearest, flushing and saturating", "[alu]") {
  const auto wide_add = [](float a, float b) { return static_cast<float>(double{a} + double{b}); };
  const auto sat = [](float v) { return std::isnan(v) || v <= 0 ? 0.0f : v > 1 ? 1.0f : v; };
  check_cases(
      {single("add.f32 %d, %a, %b;", [=](float a, float b, float) { return wide_add(a, b); }),
       single("sub.f32 %d, %a, %b;", [=](float a, float b, float) { return wide_add(a, -b); }),
       single("mul.f32 %d, %a, %b;",
              [](float a, float b, float) { return static_cast<float>(double{a} * b); }),
       single("fma.rn.f32 %d, %a, %b, %c;",
              [](float a, float b, float c) { return std::fmaf(a, b, c); }),
       single("div.rn.f32 %d, %a, %b;",
              [](float a, float b, float) { return static_cast<float>(double{a} / b); }),
       single("sqrt.rn.f32 %d, %a;",
              [](float a, float, float) { return static_cast<float>(std::sqrt(double{a})); }),
       single("rcp.rn.f32 %d, %a;",
              [](float a, float, float) { return static_cast<float>(1.0 / double{a}); }),
       single("add.ftz.f32 %d, %a, %b;",
              [=](float a, float b, float) { return flushed(wide_add(flushed(a), flushed(b))); }),
       single("mul.ftz.f32 %d, %a, %b;",
              [](float a, float b, float) {
                return flushed(static_cast<float>(double{flushed(a)} * flushed(b)));
              }),
       single("fma.rn.ftz.f32 %d, %a, %b, %c;",
              [](float a, float b, float c) {
                return flushed(std::fmaf(flushed(a), flushed(b), flushed(c)));
              }),
       single("add.sat.f32 %d, %a, %b;",
              [=](float a, float b, float) { return sat(wide_add(a, b)); }),
       single("fma.rn.ftz.sat.f32 %d, %a, %b, %c;",
              [=](float a, float b, float c) {
                return sat(flushed(std::fmaf(flushed(a), flushed(b), flushed(c))));
              }),
       single("neg.f32 %d, %a;", [](float a, float, float) { return -a; }),
       single("abs.ftz.f32 %d, %a;",
              [](float a, float, float) { return flushed(a < 0 || std::signbit(a) ? -a : a); }),
       single("copysign.f32 %d, %a, %b;",
              [](float a, float b, float) { return std::signbit(a) == std::signbit(b) ? b : -b; })},
      [](const AluCase& test) {
        Operands in = floats(test);
        // The sign of a NaN is no part of the contract of neg and copysign.
        for (Bits& v : in.a)
          if (std::isnan(f32(v)) && (test.text.find("neg") == 0 || test.text.find("copysign") == 0))
            v = 0;
        for (Bits& v : in.b)
          if (std::isnan(f32(v)) && test.text.find("copysign") == 0) v = 0;
        return in;
      });
}

TEST_CASE("f32 arithmetic with directed rounding", "[alu]") {
  std::vector<AluCase> cases;
  for (const Mode& m : kDirected) {
    const int mode = m.host;
    const std::string s = std::string(".") + m.suffix + ".f32 %d, %a";
    // Operands are limited below so that quad precision holds every exact result.
    cases.push_back(single("add" + s + ", %b;", [=](float a, float b, float) {
      if (a + b == 0 && a != 0) return mode == FE_DOWNWARD ? -0.0f : 0.0f;
      if (a == 0 && b == 0 && std::signbit(a) != std::signbit(b))
        return mode == FE_DOWNWARD ? -0.0f : 0.0f;
      const float n = a + b;
      return directed(n, Quad(a) + Quad(b) - Quad(n), mode);
    }));
    cases.push_back(single("mul" + s + ", %b;", [=](float a, float b, float) {
      const float n = a * b;
      return directed(n, Quad(a) * Quad(b) - Quad(n), mode);
    }));
    cases.push_back(single("div" + s + ", %b;", [=](float a, float b, float) {
      const float n = a / b;
      if (!std::isfinite(n)) return n;
      const Quad error = (Quad(a) - Quad(n) * Quad(b)) * (b < 0 ? -1 : 1);
      return directed(n, error, mode);
    }));
    cases.push_back(single("sqrt" + s + ";", [=](float a, float, float) {
      const float n = std::sqrt(a);
      return std::isnan(n) ? n : directed(n, Quad(a) - Quad(n) * Quad(n), mode);
    }));
    cases.push_back(single("fma" + s + ", %b, %c;", [=](float a, float b, float c) {
      const float n = std::fmaf(a, b, c);
      const Quad exact = Quad(a) * Quad(b) + Quad(c);
      if (exact == 0 && a * b != 0) return mode == FE_DOWNWARD ? -0.0f : 0.0f;
      if (exact == 0 && std::signbit(a * b) != std::signbit(c))
        return mode == FE_DOWNWARD ? -0.0f : 0.0f;
      return directed(n, exact - Quad(n), mode);
    }));
  }
  check_cases(cases, [](const AluCase&) {
    std::mt19937_64 random(5);
    Operands in;
    for (std::vector<Bits>* values : {&in.a, &in.b, &in.c}) {
      for (unsigned i = 0; i < kAluCount; ++i) {
        const double unit = static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63;
        const auto v = static_cast<float>(std::ldexp(unit, static_cast<int>(random() % 40) - 20));
        values->push_back(random() % 16 == 0
                              ? bits32(static_cast<float>(static_cast<int>(random() % 5) - 2))
                              : bits32(v));
      }
    }
    return in;
  });
}

TEST_CASE("f64 arithmetic in every rounding", "[alu]") {
  std::vector<AluCase> cases;
  const Mode modes[] = {{"rn", FE_TONEAREST}, kDirected[0], kDirected[1], kDirected[2]};
  for (const Mode& m : modes) {
    const int mode = m.host;
    const std::string s = std::string(".") + m.suffix + ".f64 %d, %a";
    const auto add = [&](const std::string& text, double (*f)(double, double, double)) {
      cases.push_back(twofold(text, [=](double a, double b, double c) {
        volatile double x = a, y = b, z = c;
        return host_rounding(mode, [&] { return f(x, y, z); });
      }));
    };
    add("add" + s + ", %b;", [](double a, double b, double) { return a + b; });
    add("mul" + s + ", %b;", [](double a, double b, double) { return a * b; });
    add("div" + s + ", %b;", [](double a, double b, double) { return a / b; });
    add("sqrt" + s + ";", [](double a, double, double) { return std::sqrt(a); });
    add("rcp" + s + ";", [](double a, double, double) { return 1.0 / a; });
    add("fma" + s + ", %b, %c;", [](double a, double b, double c) { return std::fma(a, b, c); });
  }
  check_cases(cases, [](const AluCase& test) {
    Operands in = floats(test);
    // Which NaN comes out is the host's business when several go in.
    for (std::vector<Bits>* values : {&in.a, &in.b, &in.c})
      for (Bits& v : *values)
        if (std::isnan(f64(v)) || std::isinf(f64(v))) v = bits64(3.25);
    if (test.text.find("sqrt") == 0)
      for (Bits& v : in.a) v &= ~(Bits{1} << 63);
    for (Bits& v : in.b)
      if (f64(v) == 0) v = bits64(1e-300);
    return in;
  });
}

TEST_CASE("minimum and maximum with NaN and signed zero", "[alu]") {
  const auto extreme = [](float a, float b, bool max, bool nan) {
    if (std::isnan(a) || std::isnan(b)) {
      if (nan || (std::isnan(a) && std::isnan(b))) return NAN;
      return std::isnan(a) ? b : a;
    }
    // Order by sign bit first, so that -0 < +0.
    const auto key = [](float v) {
      const auto bits = std::bit_cast<std::int32_t>(v);
      return bits < 0 ? std::int64_t{-1} - (bits & 0x7fffffff) : std::int64_t{bits};
    };
    return (key(a) < key(b)) != max ? a : b;
  };
  std::vector<AluCase> cases;
  for (const bool max : {false, true}) {
    const std::string op = max ? "max" : "min";
    cases.push_back(single(op + ".f32 %d, %a, %b;",
                           [=](float a, float b, float) { return extreme(a, b, max, false); }));
    cases.push_back(single(op + ".NaN.f32 %d, %a, %b;",
                           [=](float a, float b, float) { return extreme(a, b, max, true); }));
    cases.push_back(single(op + ".ftz.f32 %d, %a, %b;", [=](float a, float b, float) {
      return extreme(flushed(a), flushed(b), max, false);
    }));
    cases.push_back(twofold(op + ".f64 %d, %a, %b;", [=](double a, double b, double) {
      if (std::isnan(a)) return b;
      if (std::isnan(b)) return a;
      if (a == b) return std::signbit(a) == max ? b : a;
      return max == (a > b) ? a : b;
    }));
  }
  check_cases(cases, floats);
}

TEST_CASE("comparisons of floats, ordered and unordered", "[alu]") {
  struct Test {
    const char* name;
    bool less, equal, greater, unordered;
  };
  const Test tests[] = {{"eq", false, true, false, false}, {"ne", true, false, true, false},
                        {"lt", true, false, false, false}, {"le", true, true, false, false},
                        {"gt", false, false, true, false}, {"ge", false, true, true, false},
                        {"equ", false, true, false, true}, {"neu", true, false, true, true},
                        {"ltu", true, false, false, true}, {"leu", true, true, false, true},
                        {"gtu", false, false, true, true}, {"geu", false, true, true, true},
                        {"num", true, true, true, false},  {"nan", false, false, false, true}};
  std::vector<AluCase> cases;
  for (const Test& t : tests) {
    const auto holds = [t](double a, double b) {
      if (std::isnan(a) || std::isnan(b)) return t.unordered;
      return a < b ? t.less : a > b ? t.greater : t.equal;
    };
    cases.push_back({std::string("setp.") + t.name + ".f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 32,
                     32, 32, 32,
                     [=](Bits a, Bits b, Bits) { return Bits{holds(f32(a), f32(b))}; }});
    cases.push_back(
        {std::string("setp.") + t.name + ".ftz.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 32, 32, 32,
         32, [=](Bits a, Bits b, Bits) { return Bits{holds(flushed(f32(a)), flushed(f32(b)))}; }});
    cases.push_back({std::string("setp.") + t.name + ".f64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 32,
                     64, 64, 32,
                     [=](Bits a, Bits b, Bits) { return Bits{holds(f64(a), f64(b))}; }});
    cases.push_back(
        {std::string("set.") + t.name + ".f32.f32 %d, %a, %b;", 32, 32, 32, 32,
         [=](Bits a, Bits b, Bits) { return holds(f32(a), f32(b)) ? bits32(1.0f) : 0; }});
  }
  check_cases(cases, [](const AluCase& test) {
    Operands in = floats(test);
    for (unsigned i = 0; i < kAluCount; i += 5) in.b[i] = in.a[i];
    return in;
  });
}

TEST_CASE("approximate functions keep their special cases and accuracy", "[alu]") {
  struct Special {
    const char* text;
    float in;
    float out;
  };
  const float inf = INFINITY;
  const Special specials[] = {
      {"ex2.approx.f32", -inf, 0},         {"ex2.approx.f32", inf, inf},
      {"ex2.approx.f32", -0.0f, 1},        {"ex2.approx.f32", NAN, NAN},
      {"ex2.approx.ftz.f32", 1e-40f, 1},   {"lg2.approx.f32", 0, -inf},
      {"lg2.approx.f32", -0.0f, -inf},     {"lg2.approx.f32", -1, NAN},
      {"lg2.approx.f32", inf, inf},        {"lg2.approx.ftz.f32", 1e-40f, -inf},
      {"rcp.approx.f32", 0, inf},          {"rcp.approx.f32", -0.0f, -inf},
      {"rcp.approx.f32", inf, 0},          {"rcp.approx.f32", -inf, -0.0f},
      {"rcp.approx.ftz.f32", 1e-40f, inf}, {"rsqrt.approx.f32", 0, inf},
      {"rsqrt.approx.f32", -0.0f, -inf},   {"rsqrt.approx.f32", inf, 0},
      {"rsqrt.approx.f32", -1, NAN},       {"sqrt.approx.f32", -0.0f, -0.0f},
      {"sqrt.approx.f32", inf, inf},       {"sqrt.approx.f32", -2, NAN},
      {"sin.approx.f32", inf, NAN},        {"sin.approx.f32", -0.0f, -0.0f},
      {"cos.approx.f32", -inf, NAN},       {"cos.approx.f32", 0, 1},
      {"tanh.approx.f32", inf, 1},         {"tanh.approx.f32", -inf, -1}};
  std::vector<AluCase> cases;
  for (const Special& s : specials) {
    cases.push_back({std::string(s.text) + " %d, %a;", 32, 32, 32, 32,
                     [=](Bits, Bits, Bits) { return bits32(s.out); }});
  }
  std::size_t at = 0;
  check_cases(cases, [&](const AluCase&) {
    const Bits in = bits32(specials[at++].in);
    const std::vector<Bits> same(kAluCount, in);
    return Operands{same, same, same};
  });
  // Within 4 units of 2^-22 of the function, relatively: the loosest bound PTX gives here.
  const auto near = [](Bits got, double want) {
    return std::fabs(f32(got) - want) <= 4 * 0x1p-22 * std::fabs(want) + 1e-30;
  };
  std::vector<AluCase> close = {{"ex2.approx.f32 %d, %a;", 32, 32, 32, 32, nullptr},
                                {"lg2.approx.f32 %d, %a;", 32, 32, 32, 32, nullptr},
                                {"rsqrt.approx.f32 %d, %a;", 32, 32, 32, 32, nullptr},
                                {"tanh.approx.f32 %d, %a;", 32, 32, 32, 32, nullptr},
                                {"div.approx.f32 %d, %a, %b;", 32, 32, 32, 32, nullptr},
                                {"div.full.f32 %d, %a, %b;", 32, 32, 32, 32, nullptr}};
  using Function = double (*)(double, double);
  const Function functions[] = {[](double a, double) { return std::exp2(a); },
                                [](double a, double) { return std::log2(a); },
                                [](double a, double) { return 1 / std::sqrt(a); },
                                [](double a, double) { return std::tanh(a); },
                                [](double a, double b) { return a / b; },
                                [](double a, double b) { return a / b; }};
  std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (std::size_t k = 0; k < close.size(); ++k) text += alu_kernel(close[k], k);
  Machine machine;
  const Program program(machine, text);
  std::vector<Bits> a(kAluCount), b(kAluCount);
  for (unsigned i = 0; i < kAluCount; ++i) {
    a[i] = bits32(0.003f * static_cast<float>(i + 1));
    b[i] = bits32(-3.7f + 0.011f * static_cast<float>(i));
  }
  const auto da = machine.upload(a), db = machine.upload(b), dd = machine.allocate(kAluCount * 8);
  for (std::size_t k = 0; k < close.size(); ++k) {
    program.run("k" + std::to_string(k), {kAluGrid, 1, 1}, {kAluBlock, 1, 1},
                Arguments(da, db, db, dd));
    const auto got = machine.download<Bits>(dd, kAluCount);
    for (unsigned i = 0; i < kAluCount; ++i) {
      CAPTURE(close[k].text, f32(a[i]), f32(b[i]), f32(got[i]));
      REQUIRE(near(got[i], functions[k](f32(a[i]), f32(b[i]))));
    }
  }
}

TEST_CASE("division by huge numbers in div.approx", "[alu]") {
  check_cases({single("div.approx.f32 %d, %a, %b;",
                      [](float a, float b, float) {
                        const float sign = std::signbit(a) == std::signbit(b) ? 1.0f : -1.0f;
                        return std::isinf(a) ? NAN : std::copysign(0.0f, sign);
                      })},
              [](const AluCase&) {
                std::vector<Bits> a(kAluCount), b(kAluCount);
                for (unsigned i = 0; i < kAluCount; ++i) {
                  a[i] = i % 3 == 0 ? bits32(INFINITY) : bits32(static_cast<float>(i) - 300.0f);
                  b[i] = bits32((i & 1 ? -1.0f : 1.0f) * 0x1.8p126f);
                }
                return Operands{a, b, b};
              });
}
