// SPDX-License-Identifier: Apache-2.0
// Runs one-instruction kernels over arrays of operands and compares every lane with a host formula.
// A case names the bit widths of d, a, b, c and gives PTX text over %d %a %b %c (%p, %q and %t are
// free predicates and a spare 32-bit register).
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu_ptx/machine_fixture.h"

namespace softgpu::ptx::test {

using Bits = std::uint64_t;

struct AluCase {
  std::string text;
  unsigned d, a, b, c;  // widths in bits: 16, 32 or 64
  std::function<Bits(Bits a, Bits b, Bits c)> expect;
};

inline Bits cut(Bits value, unsigned width) {
  return width >= 64 ? value : value & ((Bits{1} << width) - 1);
}

inline std::string alu_kernel(const AluCase& test, std::size_t index) {
  const auto reg = [](unsigned width, const char* name) {
    return "  .reg .b" + std::to_string(width) + " %" + name + ";\n";
  };
  const auto load = [](unsigned width, const char* name, const char* parameter) {
    return std::string("  ld.param.u64 %base, [") + parameter +
           "];\n  add.u64 %at, %base, %offset;\n" + "  ld.global.u64 %wide, [%at];\n" +
           (width == 64 ? "  mov.b64 %" + std::string(name) + ", %wide;\n"
                        : "  cvt.u" + std::to_string(width) + ".u64 %" + name + ", %wide;\n");
  };
  return ".visible .entry k" + std::to_string(index) +
         "(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n" +
         reg(test.d, "d") + reg(test.a, "a") + reg(test.b, "b") + reg(test.c, "c") +
         "  .reg .b64 %base, %at, %offset, %wide;\n  .reg .b32 %x, %y, %z, %t;\n"
         "  .reg .pred %p, %q;\n"
         "  mov.u32 %x, %tid.x;\n  mov.u32 %y, %ctaid.x;\n  mov.u32 %z, %ntid.x;\n"
         "  mad.lo.u32 %x, %y, %z, %x;\n  mul.wide.u32 %offset, %x, 8;\n" +
         load(test.a, "a", "pa") + load(test.b, "b", "pb") + load(test.c, "c", "pc") + "  " +
         test.text + "\n" +
         (test.d == 64 ? "  mov.b64 %wide, %d;\n"
                       : "  cvt.u64.u" + std::to_string(test.d) + " %wide, %d;\n") +
         "  ld.param.u64 %base, [pd];\n  add.u64 %at, %base, %offset;\n"
         "  st.global.u64 [%at], %wide;\n  ret;\n}\n";
}

// Whole warps and a partial one take different paths.
inline constexpr unsigned kAluBlock = 84;
inline constexpr unsigned kAluGrid = 12;
inline constexpr unsigned kAluCount = kAluBlock * kAluGrid;

struct Operands {
  std::vector<Bits> a, b, c;
};

inline void check_cases(const std::vector<AluCase>& cases,
                        const std::function<Operands(const AluCase&)>& operands) {
  std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (std::size_t k = 0; k < cases.size(); ++k) text += alu_kernel(cases[k], k);
  Machine machine;
  const Program program(machine, text);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Operands in = operands(cases[k]);
    const auto da = machine.upload(in.a), db = machine.upload(in.b), dc = machine.upload(in.c);
    const auto dd = machine.allocate(kAluCount * 8);
    const Outcome outcome = program.run("k" + std::to_string(k), {kAluGrid, 1, 1},
                                        {kAluBlock, 1, 1}, Arguments(da, db, dc, dd));
    INFO(cases[k].text << " " << outcome.message);
    REQUIRE(outcome.status == KernelRun::Status::kDone);
    const auto got = machine.download<Bits>(dd, kAluCount);
    unsigned wrong = 0;
    for (unsigned i = 0; i < kAluCount; ++i) {
      const Bits a = cut(in.a[i], cases[k].a), b = cut(in.b[i], cases[k].b),
                 c = cut(in.c[i], cases[k].c);
      const Bits expected = cut(cases[k].expect(a, b, c), cases[k].d);
      if (got[i] == expected) continue;
      if (++wrong > 3) break;
      CAPTURE(i, a, b, c, got[i], expected);
      CHECK(got[i] == expected);
    }
  }
}

// Integers with the edges of every width, small numbers, and noise.
inline std::vector<Bits> integer_operands(unsigned seed) {
  std::mt19937_64 random(seed);
  const Bits edges[] = {0,
                        1,
                        2,
                        7,
                        31,
                        32,
                        33,
                        63,
                        64,
                        65,
                        255,
                        256,
                        0x7f,
                        0x80,
                        0x7fff,
                        0x8000,
                        0xffff,
                        0x7fffffff,
                        0x80000000,
                        0xffffffff,
                        0x7fffffffffffffff,
                        0x8000000000000000,
                        ~Bits{0},
                        ~Bits{1}};
  std::vector<Bits> values(kAluCount);
  for (Bits& v : values) {
    switch (random() % 4) {
      case 0:
        v = edges[random() % (sizeof edges / sizeof *edges)];
        break;
      case 1:
        v = random() % 70;
        break;
      case 2:
        v = Bits{0} - random() % 70;
        break;
      default:
        v = random();
    }
  }
  return values;
}

}  // namespace softgpu::ptx::test
