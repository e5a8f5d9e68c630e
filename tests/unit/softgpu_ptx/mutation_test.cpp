// SPDX-License-Identifier: Apache-2.0
// Damaged texts: whatever comes in, parse() answers with a module or with one line, and never
// crashes. The seeds are fixed, so a failure repeats.
#include <random>

#include "tests/unit/softgpu_ptx/ptx_text.h"

namespace softgpu::ptx {
namespace {

constexpr int kRounds = 4000;

const std::string& sample() {
  static const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".global .align 8 .u64 table[3] = {f, generic(g)+8, 0xff};\n.global .align 4 .b8 g[32];\n"
      ".const .f32 c[4] = {1.0, 0f3F800000, -2.5};\n.extern .shared .align 16 .b8 dyn[];\n"
      ".shared .align 8 .b8 s[128];\n"
      ".func (.param .b32 out) f(.param .align 8 .b8 x[16], .param .b32 n)\n{\n"
      ".local .align 8 .b8 depot[40]; .reg .b64 %SP; .reg .b32 %r<10>; .reg .pred %p<3>;\n"
      "mov.u64 %SP, depot; ld.param.u32 %r1, [n]; st.local.u32 [%SP+4], %r1;\n"
      "setp.lt.s32 %p1, %r1, 2; @%p1 bra L; sub.s32 %r2, %r1, 1;\n"
      "{ .param .align 8 .b8 p0[16]; .param .b32 p1; st.param.b32 [p1+0], %r2; .param .b32 q;\n"
      "call.uni (q), f, (p0, p1); ld.param.b32 %r3, [q+0]; }\n"
      "L: st.param.b32 [out+0], %r1; ret;\n}\n"
      ".visible .entry k(.param .u64 a, .param .u32 b, .param .align 4 .b8 d[12])\n"
      ".maxntid 256, 1, 1\n.minnctapersm 2\n{\n"
      ".reg .b16 %h<5>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .pred %p<5>;\n"
      ".loc 1 2 3\nld.param.u64 %rd1, [a]; ld.param.v2.u32 {%r1, %r2}, [d+4]; mov.u32 %r3, "
      "%tid.x;\n"
      "cvta.to.global.u64 %rd2, %rd1; mad.lo.s32 %r4, %r3, 4, %r1; mul.wide.s32 %rd3, %r3, 4;\n"
      "add.s64 %rd4, %rd2, %rd3; ld.global.v4.f32 {%f1, %f2, _, %f3}, [%rd4+16];\n"
      "T: .branchtargets A, B, C;\nbrx.idx %r3, T;\n"
      "A: fma.rn.f32 %f1, %f2, %f3, 0f3F800000; bra.uni C;\n"
      "B: shfl.sync.bfly.b32 %r5|%p1, %r4, 16, 31, -1; vote.sync.ballot.b32 %r6, !%p1, -1;\n"
      "mov.b64 %rd5, {%r5, %r6}; mov.b64 {%r7, %r8}, %rd5; bar.red.or.pred %p2, 0, %p1;\n"
      "@!%p2 atom.global.cas.b32 %r9, [%rd4], %r7, %r8;\n"
      "C: bar.sync 0; mov.u32 %r10, s; ld.shared.u32 %r11, [dyn+8]; mov.u64 %rd6, table;\n"
      "ld.global.u64 %rd7, [%rd6]; { .param .align 8 .b8 p[16]; .param .b32 n; .param .b32 q;\n"
      "proto: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[16], .param .b32 _);\n"
      "call (q), %rd7, (p, n), proto; ld.param.b32 %r12, [q]; }\n"
      "{ .param .b64 m; .param .b64 v; .param .b32 o; call (o), vprintf, (m, v); }\n"
      "st.global.v2.u32 [%rd4], {%r12, %r11}; @%p1 bra C; exit;\n}\n";
  return text;
}

// A module or exactly one line.
bool survives(const std::string& text) {
  ParseError error;
  const auto module = Module::parse(text, kTestDevice, &error);
  if (module != nullptr) return true;
  INFO(text);
  CAPTURE(error.message);
  REQUIRE(error.message.starts_with("ptx:"));
  REQUIRE(error.message.find('\n') == std::string::npos);
  return false;
}

TEST_CASE("the undamaged text is fine", "[ptx][mutation]") {
  CHECK(survives(sample()));
}

TEST_CASE("texts that end anywhere", "[ptx][mutation]") {
  for (std::size_t size = 0; size < sample().size(); ++size) survives(sample().substr(0, size));
}

TEST_CASE("texts with changed bytes", "[ptx][mutation]") {
  std::mt19937 random(1);
  constexpr std::string_view kBytes = "{}()[],;:.%@!<>=+-*/|&_0123456789abcdefprsuxLU \n\"\0\xff";
  int good = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = sample();
    for (unsigned i = 0; i <= random() % 4; ++i) {
      text[random() % text.size()] = kBytes[random() % kBytes.size()];
    }
    good += survives(text);
  }
  CHECK(good > 0);
  CHECK(good < kRounds);
}

TEST_CASE("texts with pieces moved, doubled and lost", "[ptx][mutation]") {
  std::mt19937 random(2);
  for (int round = 0; round < kRounds; ++round) {
    std::string text = sample();
    const std::size_t from = random() % text.size();
    const std::size_t size = std::min<std::size_t>(1 + random() % 40, text.size() - from);
    const std::string piece = text.substr(from, size);
    if (random() % 3 != 0) text.erase(from, size);
    if (random() % 3 != 0) text.insert(random() % text.size(), piece);
    survives(text);
  }
}

TEST_CASE("texts with words exchanged", "[ptx][mutation]") {
  std::mt19937 random(3);
  std::vector<std::pair<std::size_t, std::size_t>> words;  // position, size
  const std::string& text = sample();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" ,;[](){}\n", at), text.size());
    if (end > at) words.emplace_back(at, end - at);
    at = end + 1;
  }
  for (int round = 0; round < kRounds; ++round) {
    const auto [to, to_size] = words[random() % words.size()];
    const auto [from, from_size] = words[random() % words.size()];
    survives(text.substr(0, to) + text.substr(from, from_size) + text.substr(to + to_size));
  }
}

TEST_CASE("numbers out of all proportion", "[ptx][mutation]") {
  for (const char* big : {"4294967296", "18446744073709551615", "99999999999999999999", "1048577",
                          "0x7fffffff", "-1"}) {
    for (const std::string& text : {
             kernel_text(".reg .b32 %x<" + std::string(big) + ">;"),
             kernel_text(".local .b8 x[" + std::string(big) + "];"),
             kernel_text("{ .param .b8 x[" + std::string(big) + "]; }"),
             kernel_text("bar.sync " + std::string(big) + ";"),
             kernel_text("ld.global.u32 %r1, [" + std::string(big) + "];"),
             module_text(".shared .b8 x[" + std::string(big) + "];"),
             module_text(".global .b8 x[" + std::string(big) + "] = {1};"),
             module_text(".global .b8 x[2][" + std::string(big) + "] = {{1},{2}};"),
             module_text(".global .align " + std::string(big) + " .b8 x;"),
             module_text(".entry k(.param .b8 x[" + std::string(big) + "]) { ret; }"),
             module_text(".entry k() .maxntid " + std::string(big) + " { ret; }"),
             module_text(".version " + std::string(big) + "." + big + "\n"),
         }) {
      survives(text);
    }
  }
}

}  // namespace
}  // namespace softgpu::ptx
