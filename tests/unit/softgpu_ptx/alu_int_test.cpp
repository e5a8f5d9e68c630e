// SPDX-License-Identifier: Apache-2.0
// Integer, bit and logic instructions over random and edge operands, against formulas written
// another way: wide integers, bit loops and byte arrays.
#include "tests/unit/softgpu_ptx/alu_cases.h"

using namespace softgpu::ptx::test;

namespace {

__extension__ typedef __int128 Wide;

// The operand as a number: signed or not, of a width.
Wide number(Bits bits, unsigned width, bool is_signed) {
  Wide value = 0;
  for (unsigned i = 0; i < width; ++i)
    if ((bits >> i) & 1) value += (i == width - 1 && is_signed) ? -(Wide{1} << i) : Wide{1} << i;
  return value;
}
Bits bits_of(Wide value) {
  return static_cast<Bits>(value);
}
Wide floor_shift(Wide value, unsigned n) {
  const Wide unit = Wide{1} << n;
  Wide quotient = value / unit;
  if (value % unit < 0) --quotient;
  return quotient;
}
Wide clamp(Wide v, Wide low, Wide high) {
  return v < low ? low : v > high ? high : v;
}
constexpr Wide kMin32 = -2147483648LL, kMax32 = 2147483647LL;

struct Kind {
  const char* suffix;
  unsigned width;
  bool is_signed;
};
const Kind kKinds[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                       {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

Operands integers(const AluCase&) {
  return {integer_operands(1), integer_operands(2), integer_operands(3)};
}

using Formula = std::function<Wide(Wide, Wide, Wide)>;

AluCase typed(const std::string& text, const Kind& k, Formula formula) {
  const unsigned w = k.width;
  const bool s = k.is_signed;
  return {text, w, w, w, w, [=](Bits a, Bits b, Bits c) {
            return bits_of(formula(number(a, w, s), number(b, w, s), number(c, w, s)));
          }};
}

bool bit(Bits value, unsigned at) {
  return at < 64 && ((value >> at) & 1) != 0;
}

}  // namespace

TEST_CASE("integer arithmetic", "[alu]") {
  std::vector<AluCase> cases;
  for (const Kind& k : kKinds) {
    const std::string t = std::string(".") + k.suffix + " %d, %a, %b";
    const auto add = [&](const std::string& text, Formula f) {
      cases.push_back(typed(text, k, f));
    };
    add("add" + t + ";", [](Wide a, Wide b, Wide) { return a + b; });
    add("sub" + t + ";", [](Wide a, Wide b, Wide) { return a - b; });
    add("mul.lo" + t + ";", [](Wide a, Wide b, Wide) {
      return static_cast<Wide>(static_cast<Bits>(a) * static_cast<Bits>(b));
    });
    add("min" + t + ";", [](Wide a, Wide b, Wide) { return a < b ? a : b; });
    add("max" + t + ";", [](Wide a, Wide b, Wide) { return a > b ? a : b; });
    add("div" + t + ";", [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a / b; });
    add("rem" + t + ";", [](Wide a, Wide b, Wide) { return b == 0 ? a : a % b; });
    add("sad" + t + ", %c;", [](Wide a, Wide b, Wide c) { return c + (a < b ? b - a : a - b); });
    add("mad.lo" + t + ", %c;", [](Wide a, Wide b, Wide c) {
      return static_cast<Wide>(static_cast<Bits>(a) * static_cast<Bits>(b) + static_cast<Bits>(c));
    });
    if (k.is_signed) {
      add(std::string("abs.") + k.suffix + " %d, %a;",
          [](Wide a, Wide, Wide) { return a < 0 ? -a : a; });
      add(std::string("neg.") + k.suffix + " %d, %a;", [](Wide a, Wide, Wide) { return -a; });
    }
    if (k.width < 64) {
      const unsigned w = k.width;
      add("mul.hi" + t + ";", [w](Wide a, Wide b, Wide) { return floor_shift(a * b, w); });
      add("mad.hi" + t + ", %c;",
          [w](Wide a, Wide b, Wide c) { return floor_shift(a * b, w) + c; });
      AluCase wide = typed("mul.wide" + t + ";", k, [](Wide a, Wide b, Wide) { return a * b; });
      wide.d = 2 * w;
      cases.push_back(wide);
      const bool s = k.is_signed;
      cases.push_back(
          {"mad.wide" + t + ", %c;", 2 * w, w, w, 2 * w, [w, s](Bits a, Bits b, Bits c) {
             return bits_of(number(a, w, s) * number(b, w, s)) + c;
           }});
    }
  }
  check_cases(cases, integers);
}

TEST_CASE("high half of 64-bit products", "[alu]") {
  // Schoolbook multiplication of 32-bit digits.
  const auto high = [](Bits a, Bits b) {
    const Bits al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
    const Bits middle = (al * bl >> 32) + (ah * bl & 0xffffffff) + (al * bh & 0xffffffff);
    return ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
  };
  const auto signed_high = [high](Bits a, Bits b) {
    return high(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0);
  };
  check_cases(
      {{"mul.hi.u64 %d, %a, %b;", 64, 64, 64, 64, [=](Bits a, Bits b, Bits) { return high(a, b); }},
       {"mul.hi.s64 %d, %a, %b;", 64, 64, 64, 64,
        [=](Bits a, Bits b, Bits) { return signed_high(a, b); }},
       {"mad.hi.s64 %d, %a, %b, %c;", 64, 64, 64, 64,
        [=](Bits a, Bits b, Bits c) { return signed_high(a, b) + c; }}},
      integers);
}

TEST_CASE("saturating and 24-bit arithmetic", "[alu]") {
  const Kind s32{"s32", 32, true}, u32{"u32", 32, false};
  const auto low24 = [](Wide v, bool s) { return number(static_cast<Bits>(v), 24, s); };
  check_cases(
      {typed("add.sat.s32 %d, %a, %b;", s32,
             [](Wide a, Wide b, Wide) { return clamp(a + b, kMin32, kMax32); }),
       typed("sub.sat.s32 %d, %a, %b;", s32,
             [](Wide a, Wide b, Wide) { return clamp(a - b, kMin32, kMax32); }),
       typed("mad.hi.sat.s32 %d, %a, %b, %c;", s32,
             [](Wide a, Wide b, Wide c) {
               return clamp(floor_shift(a * b, 32) + c, kMin32, kMax32);
             }),
       typed("mul24.lo.s32 %d, %a, %b;", s32,
             [=](Wide a, Wide b, Wide) { return low24(a, true) * low24(b, true); }),
       typed(
           "mul24.hi.s32 %d, %a, %b;", s32,
           [=](Wide a, Wide b, Wide) { return floor_shift(low24(a, true) * low24(b, true), 16); }),
       typed("mul24.lo.u32 %d, %a, %b;", u32,
             [=](Wide a, Wide b, Wide) { return low24(a, false) * low24(b, false); }),
       typed("mul24.hi.u32 %d, %a, %b;", u32,
             [=](Wide a, Wide b, Wide) {
               return floor_shift(low24(a, false) * low24(b, false), 16);
             }),
       typed("mad24.lo.s32 %d, %a, %b, %c;", s32,
             [=](Wide a, Wide b, Wide c) { return low24(a, true) * low24(b, true) + c; }),
       typed("mad24.hi.sat.s32 %d, %a, %b, %c;", s32,
             [=](Wide a, Wide b, Wide c) {
               return clamp(
                   number(bits_of(floor_shift(low24(a, true) * low24(b, true), 16)), 32, true) + c,
                   kMin32, kMax32);
             })},
      integers);
}

TEST_CASE("shifts clamp at the width", "[alu]") {
  std::vector<AluCase> cases;
  for (const Kind& k : kKinds) {
    const unsigned w = k.width;
    const bool s = k.is_signed;
    cases.push_back(
        {std::string("shr.") + k.suffix + " %d, %a, %b;", w, w, 32, 32, [=](Bits a, Bits b, Bits) {
           Wide v = number(a, w, s);
           for (Bits i = 0; i < b && i < 70; ++i) v = floor_shift(v, 1);
           return bits_of(v);
         }});
    if (s) continue;
    cases.push_back(
        {"shl.b" + std::to_string(w) + " %d, %a, %b;", w, w, 32, 32, [=](Bits a, Bits b, Bits) {
           for (Bits i = 0; i < b && i < 70; ++i) a = a + a;
           return a;
         }});
  }
  const auto funnel = [](bool left, bool wrap) {
    return [=](Bits a, Bits b, Bits c) -> Bits {
      const unsigned n = static_cast<unsigned>(wrap ? c % 32 : (c > 32 ? 32 : c));
      // Bit i of the pair b:a.
      const auto pair = [&](int i) {
        return i < 0 || i > 63 ? false : i < 32 ? bit(a, i) : bit(b, i - 32);
      };
      Bits out = 0;
      for (int i = 0; i < 32; ++i)
        if (pair(left ? 32 + i - static_cast<int>(n) : i + static_cast<int>(n)))
          out |= Bits{1} << i;
      return out;
    };
  };
  cases.push_back({"shf.l.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32, funnel(true, false)});
  cases.push_back({"shf.r.clamp.b32 %d, %a, %b, %c;", 32, 32, 32, 32, funnel(false, false)});
  cases.push_back({"shf.l.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32, funnel(true, true)});
  cases.push_back({"shf.r.wrap.b32 %d, %a, %b, %c;", 32, 32, 32, 32, funnel(false, true)});
  check_cases(cases, integers);
}

TEST_CASE("bit counting and fields", "[alu]") {
  std::vector<AluCase> cases;
  for (const unsigned w : {32u, 64u}) {
    const std::string b = ".b" + std::to_string(w);
    cases.push_back({"popc" + b + " %d, %a;", 32, w, 32, 32, [=](Bits a, Bits, Bits) {
                       Bits n = 0;
                       for (unsigned i = 0; i < w; ++i) n += bit(a, i);
                       return n;
                     }});
    cases.push_back({"clz" + b + " %d, %a;", 32, w, 32, 32, [=](Bits a, Bits, Bits) {
                       Bits n = 0;
                       while (n < w && !bit(a, w - 1 - static_cast<unsigned>(n))) ++n;
                       return n;
                     }});
    cases.push_back({"brev" + b + " %d, %a;", w, w, 32, 32, [=](Bits a, Bits, Bits) {
                       Bits out = 0;
                       for (unsigned i = 0; i < w; ++i)
                         if (bit(a, i)) out |= Bits{1} << (w - 1 - i);
                       return out;
                     }});
    cases.push_back(
        {"cnot" + b + " %d, %a;", w, w, 32, 32, [](Bits a, Bits, Bits) { return Bits{a == 0}; }});
    cases.push_back(
        {"bfi" + b + " %d, %a, %b, %c, 9;", w, w, w, 32, [=](Bits a, Bits base, Bits c) {
           const unsigned pos = c & 0xff;
           for (unsigned i = 0; i < 9 && pos + i < w; ++i) {
             base &= ~(Bits{1} << (pos + i));
             if (bit(a, i)) base |= Bits{1} << (pos + i);
           }
           return base;
         }});
    for (const bool s : {false, true}) {
      const std::string t = (s ? ".s" : ".u") + std::to_string(w);
      const auto find = [=](Bits a) {
        const bool skip = s && bit(a, w - 1);
        for (int i = static_cast<int>(w) - 1; i >= 0; --i)
          if (bit(a, static_cast<unsigned>(i)) != skip) return i;
        return -1;
      };
      cases.push_back({"bfind" + t + " %d, %a;", 32, w, 32, 32,
                       [=](Bits a, Bits, Bits) { return static_cast<Bits>(find(a)); }});
      cases.push_back({"bfind.shiftamt" + t + " %d, %a;", 32, w, 32, 32, [=](Bits a, Bits, Bits) {
                         const int at = find(a);
                         return at < 0 ? ~Bits{0} : static_cast<Bits>(static_cast<int>(w) - 1 - at);
                       }});
      cases.push_back({"bfe" + t + " %d, %a, %b, %c;", w, w, 32, 32, [=](Bits a, Bits b, Bits c) {
                         const unsigned pos = b & 0xff, len = c & 0xff;
                         bool fill = false;
                         if (s && len > 0) fill = bit(a, std::min(pos + len - 1, w - 1));
                         Bits out = 0;
                         for (unsigned i = 0; i < w; ++i) {
                           const bool v = i < len && pos + i < w ? bit(a, pos + i) : fill;
                           if (v) out |= Bits{1} << i;
                         }
                         return out;
                       }});
    }
  }
  check_cases(cases, integers);
}

TEST_CASE("masks, extension and nth set bit", "[alu]") {
  std::vector<AluCase> cases;
  for (const bool wrap : {false, true}) {
    const std::string mode = wrap ? ".wrap" : ".clamp";
    cases.push_back({"bmsk" + mode + ".b32 %d, %a, %b;", 32, 32, 32, 32, [=](Bits a, Bits b, Bits) {
                       const Bits pos = wrap ? a % 32 : a, len = wrap ? b % 32 : b;
                       Bits out = 0;
                       for (Bits i = 0; i < 32; ++i)
                         if (i >= pos && i - pos < len) out |= Bits{1} << i;
                       return out;
                     }});
    for (const bool s : {false, true}) {
      cases.push_back({"szext" + mode + (s ? ".s32" : ".u32") + " %d, %a, %b;", 32, 32, 32, 32,
                       [=](Bits a, Bits b, Bits) {
                         const Bits n = wrap ? b % 32 : b;
                         if (n == 0) return Bits{0};
                         if (n >= 32) return a;
                         return bits_of(number(a, static_cast<unsigned>(n), s));
                       }});
    }
  }
  cases.push_back({"fns.b32 %d, %a, %b, %c;", 32, 32, 32, 32, [](Bits a, Bits b, Bits c) -> Bits {
                     if (b > 31) return ~Bits{0};
                     const Wide n = number(c, 32, true);
                     if (n == 0) return bit(a, static_cast<unsigned>(b)) ? b : ~Bits{0};
                     std::vector<unsigned> set;
                     if (n > 0) {
                       for (auto i = static_cast<unsigned>(b); i < 32; ++i)
                         if (bit(a, i)) set.push_back(i);
                     } else {
                       for (int i = static_cast<int>(b); i >= 0; --i)
                         if (bit(a, static_cast<unsigned>(i)))
                           set.push_back(static_cast<unsigned>(i));
                     }
                     const Wide k = n > 0 ? n : -n;
                     return k > static_cast<Wide>(set.size())
                                ? ~Bits{0}
                                : set[static_cast<std::size_t>(k) - 1];
                   }});
  check_cases(cases, integers);
}

TEST_CASE("byte permutation in every mode", "[alu]") {
  const auto permute = [](Bits a, Bits b, const int(&picks)[4], unsigned sign_bits) {
    std::uint8_t bytes[8];
    for (int i = 0; i < 4; ++i) {
      bytes[i] = static_cast<std::uint8_t>(a >> (8 * i));
      bytes[4 + i] = static_cast<std::uint8_t>(b >> (8 * i));
    }
    Bits out = 0;
    for (int i = 0; i < 4; ++i) {
      Bits v = bytes[picks[i]];
      if (sign_bits >> i & 1) v = v >= 128 ? 255 : 0;
      out |= v << (8 * i);
    }
    return out;
  };
  std::vector<AluCase> cases;
  cases.push_back({"prmt.b32 %d, %a, %b, %c;", 32, 32, 32, 32, [=](Bits a, Bits b, Bits c) {
                     int picks[4];
                     unsigned signs = 0;
                     for (int i = 0; i < 4; ++i) {
                       picks[i] = static_cast<int>(c >> (4 * i) & 7);
                       signs |= static_cast<unsigned>(c >> (4 * i + 3) & 1) << i;
                     }
                     return permute(a, b, picks, signs);
                   }});
  using Pick = int (*)(int control, int i);
  const std::pair<const char*, Pick> modes[] = {
      {"f4e", [](int c, int i) { return c + i; }},
      {"b4e", [](int c, int i) { return (c + 8 - i) % 8; }},
      {"rc8", [](int c, int) { return c; }},
      {"ecl", [](int c, int i) { return std::max(c, i); }},
      {"ecr", [](int c, int i) { return std::min(c, i); }},
      {"rc16", [](int c, int i) { return (c & 1) * 2 + i % 2; }}};
  for (const auto& [name, pick] : modes) {
    cases.push_back({std::string("prmt.b32.") + name + " %d, %a, %b, %c;", 32, 32, 32, 32,
                     [=, pick = pick](Bits a, Bits b, Bits c) {
                       int picks[4];
                       for (int i = 0; i < 4; ++i) picks[i] = pick(static_cast<int>(c & 3), i);
                       return permute(a, b, picks, 0);
                     }});
  }
  check_cases(cases, integers);
}

TEST_CASE("logic of two and three operands", "[alu]") {
  std::vector<AluCase> cases;
  for (const unsigned w : {16u, 32u, 64u}) {
    const std::string t = ".b" + std::to_string(w) + " %d, %a";
    cases.push_back(
        {"and" + t + ", %b;", w, w, w, w, [](Bits a, Bits b, Bits) { return a + b - (a | b); }});
    cases.push_back(
        {"or" + t + ", %b;", w, w, w, w, [](Bits a, Bits b, Bits) { return ~(~a & ~b); }});
    cases.push_back({"xor" + t + ", %b;", w, w, w, w,
                     [](Bits a, Bits b, Bits) { return (a & ~b) | (~a & b); }});
    cases.push_back({"not" + t + ";", w, w, w, w, [](Bits a, Bits, Bits) { return ~Bits{0} - a; }});
  }
  for (const unsigned lut : {0x00u, 0x80u, 0xfeu, 0x96u, 0xcau, 0xe8u, 0x1bu, 0xffu}) {
    cases.push_back({"lop3.b32 %d, %a, %b, %c, " + std::to_string(lut) + ";", 32, 32, 32, 32,
                     [=](Bits a, Bits b, Bits c) {
                       Bits out = 0;
                       for (unsigned i = 0; i < 32; ++i) {
                         const unsigned row = bit(a, i) * 4u + bit(b, i) * 2u + bit(c, i);
                         out |= Bits{lut >> row & 1} << i;
                       }
                       return out;
                     }});
  }
  cases.push_back(
      {"setp.ne.s32 %p, %a, 0; setp.gt.s32 %q, %b, 3; and.pred %p, %p, %q; not.pred %q, %p; "
       "xor.pred %p, %p, %q; selp.b32 %d, 5, 6, %p;",
       32, 32, 32, 32, [](Bits, Bits, Bits) { return Bits{5}; }});
  cases.push_back(
      {"setp.ne.s32 %p, %a, 0; setp.gt.s32 %q, %b, 3; or.pred %p, %p, !%q; selp.b32 %d, %a, %b, "
       "%p;",
       32, 32, 32, 32,
       [](Bits a, Bits b, Bits) { return a != 0 || !(number(b, 32, true) > 3) ? a : b; }});
  check_cases(cases, integers);
}

TEST_CASE("comparison of integers and selection", "[alu]") {
  std::vector<AluCase> cases;
  using Test = bool (*)(Wide, Wide);
  const std::pair<const char*, Test> tests[] = {{"eq", [](Wide a, Wide b) { return a - b == 0; }},
                                                {"ne", [](Wide a, Wide b) { return a - b != 0; }},
                                                {"lt", [](Wide a, Wide b) { return a - b < 0; }},
                                                {"le", [](Wide a, Wide b) { return a - b <= 0; }},
                                                {"gt", [](Wide a, Wide b) { return a - b > 0; }},
                                                {"ge", [](Wide a, Wide b) { return a - b >= 0; }}};
  for (const Kind& k : kKinds) {
    const unsigned w = k.width;
    const bool s = k.is_signed;
    for (const auto& [name, test] : tests) {
      const std::string t = std::string(name) + "." + k.suffix;
      cases.push_back(
          {"setp." + t + " %p|%q, %a, %b; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;", 32, w, w,
           32, [=, test = test](Bits a, Bits b, Bits) {
             return test(number(a, w, s), number(b, w, s)) ? Bits{1} : Bits{2};
           }});
      cases.push_back({"setp.lt.u32 %q, %c, 40; setp." + std::string(name) + ".xor." + k.suffix +
                           " %p, %a, %b, %q; selp.b32 %d, %c, 0, %p;",
                       32, w, w, 32, [=, test = test](Bits a, Bits b, Bits c) {
                         return test(number(a, w, s), number(b, w, s)) != (c < 40) ? c : 0;
                       }});
      cases.push_back({"set." + std::string(name) + ".u32." + k.suffix + " %d, %a, %b;", 32, w, w,
                       32, [=, test = test](Bits a, Bits b, Bits) {
                         return test(number(a, w, s), number(b, w, s)) ? ~Bits{0} : Bits{0};
                       }});
    }
  }
  cases.push_back({"slct.b32.s32 %d, %a, %b, %c;", 32, 32, 32, 32,
                   [](Bits a, Bits b, Bits c) { return bit(c, 31) ? b : a; }});
  check_cases(cases, integers);
}

TEST_CASE("dot products", "[alu]") {
  std::vector<AluCase> cases;
  for (const bool sa : {false, true}) {
    for (const bool sb : {false, true}) {
      const std::string t =
          std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32") + " %d, %a, %b, %c;";
      cases.push_back({"dp4a" + t, 32, 32, 32, 32, [=](Bits a, Bits b, Bits c) {
                         Wide sum = static_cast<Wide>(c);
                         for (unsigned i = 0; i < 4; ++i)
                           sum += number(a >> (8 * i), 8, sa) * number(b >> (8 * i), 8, sb);
                         return bits_of(sum);
                       }});
      for (const bool high : {false, true}) {
        cases.push_back({std::string(high ? "dp2a.hi" : "dp2a.lo") + t, 32, 32, 32, 32,
                         [=](Bits a, Bits b, Bits c) {
                           Wide sum = static_cast<Wide>(c);
                           for (unsigned i = 0; i < 2; ++i)
                             sum += number(a >> (16 * i), 16, sa) *
                                    number(b >> (8 * i + (high ? 16 : 0)), 8, sb);
                           return bits_of(sum);
                         }});
      }
    }
  }
  check_cases(cases, integers);
}

TEST_CASE("carry chains make wide arithmetic", "[alu]") {
  const auto low = [](Bits v) { return v & 0xffffffff; };
  check_cases(
      {// 64-bit sums from 32-bit halves: the upper half is the result.
       {"mov.b64 {%t, %d}, %a; .reg .b32 %u, %v; mov.b64 {%u, %v}, %b; add.cc.u32 %t, %t, %u; "
        "addc.u32 %d, %d, %v;",
        32, 64, 64, 32, [](Bits a, Bits b, Bits) { return (a + b) >> 32; }},
       {"mov.b64 {%t, %d}, %a; .reg .b32 %u, %v; mov.b64 {%u, %v}, %b; sub.cc.u32 %t, %t, %u; "
        "subc.u32 %d, %d, %v;",
        32, 64, 64, 32, [](Bits a, Bits b, Bits) { return (a - b) >> 32; }},
       {"add.cc.u32 %t, %a, %b; addc.cc.u32 %t, %t, %c; addc.u32 %d, 0, 0;", 32, 32, 32, 32,
        [=](Bits a, Bits b, Bits c) {
          const Bits first = a + b;
          return (low(first) + c + (first >> 32)) >> 32;
        }},
       {"mad.lo.cc.u32 %t, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", 32, 32, 32, 32,
        [](Bits a, Bits b, Bits c) { return (a * b + c) >> 32; }}},
      integers);
}

TEST_CASE("packing and unpacking", "[alu]") {
  check_cases(
      {{"mov.b64 %d, {%a, %b};", 64, 32, 32, 32, [](Bits a, Bits b, Bits) { return a | b << 32; }},
       {"mov.b64 {_, %d}, %a;", 32, 64, 32, 32, [](Bits a, Bits, Bits) { return a >> 32; }},
       {"mov.b32 %d, {%a, %b};", 32, 16, 16, 32, [](Bits a, Bits b, Bits) { return a | b << 16; }},
       {"mov.b64 %d, {%a, %b, %a, %b};", 64, 16, 16, 32,
        [](Bits a, Bits b, Bits) { return a | b << 16 | a << 32 | b << 48; }}},
      integers);
}
