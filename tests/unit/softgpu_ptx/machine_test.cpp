// SPDX-License-Identifier: Apache-2.0
// What nvcc does not emit: hand-written PTX for named barriers with counts, old warp forms, dense
// branches, carry flags in loops, local memory of calls, special registers, and the faults of
// malformed kernels.
#include "tests/unit/catch.h"
#include "tests/unit/softgpu_ptx/machine_fixture.h"

using namespace softgpu::ptx;
using namespace softgpu::ptx::test;

namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// A kernel with one pointer `out`: %at is the address of this thread's word, %i its number in the
// block.
std::string kernel(const std::string& body, const std::string& declarations = "") {
  return kHead + declarations +
         ".visible .entry k(.param .u64 out)\n{\n"
         "  .reg .b64 %at, %base, %offset;\n  .reg .b32 %i, %v, %w, %x, %y;\n  .reg .pred %p, %q, "
         "%r;\n"
         "  ld.param.u64 %base, [out];\n  mov.u32 %i, %tid.x;\n  mul.wide.u32 %offset, %i, 4;\n"
         "  add.u64 %at, %base, %offset;\n" +
         body + "\n}\n";
}

struct Result {
  Outcome outcome;
  std::vector<std::uint32_t> out;
};

Result run(const std::string& text, unsigned threads, Dim3 grid = {1, 1, 1},
           std::uint64_t slice = 1u << 20) {
  Machine machine;
  const Program program(machine, text);
  const auto out = machine.allocate(threads * 4);
  Result result;
  result.outcome = program.run("k", grid, {threads, 1, 1}, Arguments(out), slice);
  result.out = machine.download<std::uint32_t>(out, threads);
  return result;
}

Result run_done(const std::string& text, unsigned threads, std::uint64_t slice = 1u << 20) {
  Result result = run(text, threads, {1, 1, 1}, slice);
  INFO(result.outcome.message);
  REQUIRE(result.outcome.status == KernelRun::Status::kDone);
  return result;
}

}  // namespace

TEST_CASE("named barriers with thread counts", "[machine]") {
  // Warps 0 and 1 exchange through barrier 3, warps 2 and 3 through barrier 4; the counts come from
  // a register.
  const std::string text = kernel(R"(
    mov.u32 %x, m;
    shl.b32 %y, %i, 2;
    add.u32 %x, %x, %y;
    st.shared.u32 [%x], %i;
    shr.u32 %w, %i, 6;
    add.u32 %w, %w, 3;
    mov.u32 %v, 64;
    barrier.sync %w, %v;
    xor.b32 %y, %i, 32;
    shl.b32 %y, %y, 2;
    mov.u32 %x, m;
    add.u32 %x, %x, %y;
    ld.shared.u32 %v, [%x];
    st.global.u32 [%at], %v;
    ret;)",
                                  ".shared .align 4 .b8 m[512];\n");
  for (const std::uint64_t slice : {1u << 20, 1u, 5u}) {
    const Result r = run_done(text, 128, slice);
    for (unsigned t = 0; t < 128; ++t) REQUIRE(r.out[t] == (t ^ 32));
  }
}

TEST_CASE("a producer arrives without waiting for the consumer", "[machine]") {
  const std::string text = kernel(R"(
    setp.lt.u32 %p, %i, 32;
    @!%p bra CONSUME;
    mov.u32 %x, m;
    st.shared.u32 [%x], 77;
    bar.arrive 1, 64;
    st.global.u32 [%at], 1;
    ret;
  CONSUME:
    bar.sync 1, 64;
    mov.u32 %x, m;
    ld.shared.u32 %v, [%x];
    st.global.u32 [%at], %v;
    ret;)",
                                  ".shared .align 4 .b8 m[4];\n");
  const Result r = run_done(text, 64);
  for (unsigned t = 0; t < 64; ++t) REQUIRE(r.out[t] == (t < 32 ? 1 : 77));
}

TEST_CASE("a barrier in both arms of a divergent branch counts threads", "[machine]") {
  const std::string text = kernel(R"(
    and.b32 %v, %i, 1;
    setp.eq.u32 %p, %v, 0;
    @%p bra EVEN;
    bar.sync 0;
    mov.u32 %w, 5;
    bra JOIN;
  EVEN:
    bar.sync 0;
    mov.u32 %w, 6;
  JOIN:
    st.global.u32 [%at], %w;
    ret;)");
  const Result r = run_done(text, 48);
  for (unsigned t = 0; t < 48; ++t) REQUIRE(r.out[t] == (t & 1 ? 5 : 6));
}

TEST_CASE("a barrier that some threads never reach is reported, not waited for", "[machine]") {
  const Result r = run(kernel(R"(
    setp.lt.u32 %p, %i, 32;
    @%p bar.sync 1, 96;
    ret;)"),
                       64);
  REQUIRE(r.outcome.fault == Fault::kTrap);
  REQUIRE(r.outcome.message.find("deadlock: barrier that not all threads reach") !=
          std::string::npos);
}

TEST_CASE("a member mask whose lanes never come is reported", "[machine]") {
  const Result r = run(kernel(R"(
    setp.lt.u32 %p, %i, 16;
    @!%p bra OTHER;
    bar.warp.sync 0xffffffff;
    ret;
  OTHER:
    bar.sync 1, 64;
    ret;)"),
                       32);
  REQUIRE(r.outcome.fault == Fault::kTrap);
}

TEST_CASE("warp operations of the time before sync", "[machine]") {
  const std::string text =
      ".version 3.2\n.target sm_30\n.address_size 64\n" + kernel(R"(
    setp.lt.u32 %p, %i, 40;
    vote.ballot.b32 %v, %p;
    shfl.bfly.b32 %w|%q, %i, 1, 0x1f;
    add.u32 %v, %v, %w;
    vote.all.pred %q, %p;
    @%q add.u32 %v, %v, 1000;
    vote.any.pred %q, !%p;
    @%q add.u32 %v, %v, 100;
    st.global.u32 [%at], %v;
    ret;)")
                                                              .substr(kHead.size());
  const Result r = run_done(text, 64);
  for (unsigned t = 0; t < 64; ++t) {
    const std::uint32_t ballot = t < 32 ? 0xffffffffu : 0xffu;
    REQUIRE(r.out[t] == ballot + (t ^ 1) + (t < 32 ? 1000 : 0) + (t < 32 ? 0 : 100));
  }
}

TEST_CASE("shuffle ranges and predicates", "[machine]") {
  struct Mode {
    const char* name;
    int (*source)(int lane, int b, int first, int last);
  };
  const Mode modes[] = {
      {"up", [](int lane, int b, int, int) { return lane - b; }},
      {"down", [](int lane, int b, int, int) { return lane + b; }},
      {"bfly", [](int lane, int b, int, int) { return lane ^ b; }},
      {"idx", [](int, int b, int first, int last) { return first + (b & (last - first)); }}};
  for (const Mode& m : modes) {
    for (const int width : {4, 8, 16, 32}) {
      for (const int b : {0, 1, 3, 5, 12, 31}) {
        const bool up = std::string(m.name) == "up";
        const int c = ((32 - width) << 8) | (up ? 0 : 31);
        const std::string text =
            kernel(std::string("  add.u32 %v, %i, 100;\n  shfl.sync.") + m.name +
                   ".b32 %w|%p, %v, " + std::to_string(b) + ", " + std::to_string(c) +
                   ", -1;\n  @%p add.u32 %w, %w, 1000;\n  st.global.u32 [%at], %w;\n  ret;");
        const Result r = run_done(text, 32);
        for (int lane = 0; lane < 32; ++lane) {
          const int first = lane / width * width, last = first + width - 1;
          const int source = m.source(lane, b, first, last);
          const bool inside = up ? source >= first : source <= last;
          CAPTURE(m.name, width, b, lane);
          REQUIRE(r.out[static_cast<unsigned>(lane)] ==
                  static_cast<std::uint32_t>(100 + (inside ? source + 1000 : lane)));
        }
      }
    }
  }
}

TEST_CASE("lanes that meet at one shuffle from different loops", "[machine]") {
  // Each lane spins a different number of turns, then all shuffle.
  const std::string text = kernel(R"(
    mov.u32 %v, 0;
    and.b32 %w, %i, 7;
  LOOP:
    setp.ge.u32 %p, %v, %w;
    @%p bra DONE;
    add.u32 %v, %v, 1;
    bra LOOP;
  DONE:
    shfl.sync.idx.b32 %x, %v, 7, 0x1f, 0xffffffff;
    st.global.u32 [%at], %x;
    ret;)");
  for (const std::uint64_t slice : {1u << 20, 1u}) {
    const Result r = run_done(text, 32, slice);
    for (const auto v : r.out) REQUIRE(v == 7);
  }
}

TEST_CASE("indexed branch with a target per lane", "[machine]") {
  const std::string text = kernel(R"(
    and.b32 %w, %i, 3;
    ts: .branchtargets A, B, C, A;
    brx.idx %w, ts;
  A:
    mov.u32 %v, 10;
    bra END;
  B:
    mov.u32 %v, 20;
    bra END;
  C:
    mov.u32 %v, 30;
  END:
    add.u32 %v, %v, %i;
    st.global.u32 [%at], %v;
    ret;)");
  const Result r = run_done(text, 64);
  const std::uint32_t base[] = {10, 20, 30, 10};
  for (unsigned t = 0; t < 64; ++t) REQUIRE(r.out[t] == base[t & 3] + t);
}

TEST_CASE("an indexed branch out of its table is a fault", "[machine]") {
  const Result r = run(kernel(R"(
    ts: .branchtargets A, A;
    brx.idx %i, ts;
  A:
    ret;)"),
                       8);
  REQUIRE(r.outcome.fault == Fault::kInvalidPc);
}

TEST_CASE("a guarded return leaves the others running", "[machine]") {
  const std::string text = kernel(R"(
    call (%v), half, (%i);
    st.global.u32 [%at], %v;
    ret;)",
                                  R"(
.func (.reg .b32 %r) half(.reg .b32 %a) {
  .reg .pred %p;
  .reg .b32 %t;
  mov.b32 %r, 1;
  and.b32 %t, %a, 1;
  setp.eq.u32 %p, %t, 1;
  @%p ret;
  mov.b32 %r, 2;
  setp.gt.u32 %p, %a, 20;
  @!%p bra SMALL;
  add.u32 %r, %r, 5;
  ret;
SMALL:
  add.u32 %r, %r, 7;
  ret;
}
)");
  const Result r = run_done(text, 40);
  for (unsigned t = 0; t < 40; ++t) REQUIRE(r.out[t] == (t & 1 ? 1 : t > 20 ? 7 : 9));
}

TEST_CASE("exit inside a call ends only those threads", "[machine]") {
  const std::string text = kernel(R"(
    st.global.u32 [%at], 1;
    call leave, (%i);
    st.global.u32 [%at], 2;
    ret;)",
                                  R"(
.func leave(.reg .b32 %a) {
  .reg .pred %p;
  setp.lt.u32 %p, %a, 10;
  @%p exit;
  ret;
}
)");
  const Result r = run_done(text, 32);
  for (unsigned t = 0; t < 32; ++t) REQUIRE(r.out[t] == (t < 10 ? 1 : 2));
}

TEST_CASE("special registers of threads, blocks and lanes", "[machine]") {
  const char* registers[] = {"%tid.y",       "%ntid.x",      "%nctaid.x",       "%laneid",
                             "%warpid",      "%lanemask_eq", "%lanemask_lt",    "%lanemask_le",
                             "%lanemask_gt", "%lanemask_ge", "%cluster_ctarank"};
  for (unsigned k = 0; k < sizeof registers / sizeof *registers; ++k) {
    const Result r = run_done(kernel(std::string("  mov.u32 %v, ") + registers[k] +
                                     ";\n  st.global.u32 [%at], %v;\n  ret;"),
                              70);
    for (unsigned t = 0; t < 70; ++t) {
      const unsigned lane = t % 32;
      const std::uint32_t eq = 1u << lane;
      const std::uint32_t expected[] = {
          0, 70, 1, lane, t / 32, eq, eq - 1, (eq - 1) | eq, ~((eq - 1) | eq), ~(eq - 1), 0};
      CAPTURE(registers[k], t);
      REQUIRE(r.out[t] == expected[k]);
    }
  }
}

TEST_CASE("clocks move forward", "[machine]") {
  const Result r = run_done(kernel(R"(
    .reg .b64 %c0, %c1, %g0, %g1;
    mov.u64 %c0, %clock64;
    mov.u64 %g0, %globaltimer;
    mov.u64 %g1, %globaltimer;
    mov.u64 %c1, %clock64;
    setp.lt.u64 %p, %c0, %c1;
    setp.lt.and.u64 %p, %g0, %g1, %p;
    selp.b32 %v, 1, 0, %p;
    st.global.u32 [%at], %v;
    ret;)"),
                            4);
  for (const auto v : r.out) REQUIRE(v == 1);
}

TEST_CASE("vector loads and stores, sinks and sign extension", "[machine]") {
  const std::string text =
      kernel(R"(
    .reg .b64 %g, %d0, %d1;
    .reg .b32 %a, %b, %c;
    .reg .b16 %h;
    .local .align 16 .b8 mine[32];
    mov.u64 %g, table;
    ld.global.v4.u32 {%a, _, %b, %c}, [%g];
    add.u32 %v, %a, %b;
    add.u32 %v, %v, %c;
    ld.global.s8 %w, [%g+16];
    add.u32 %v, %v, %w;
    ld.global.s16 %h, [%g+18];
    cvt.s32.s16 %w, %h;
    add.u32 %v, %v, %w;
    ld.global.v2.b64 {%d0, %d1}, [%g];
    shr.u64 %d1, %d1, 32;
    cvt.u32.u64 %w, %d1;
    mad.lo.u32 %v, %w, 10, %v;
    mov.u64 %d0, mine;
    st.local.v2.u32 [%d0+8], {%v, %i};
    cvta.local.u64 %d0, %d0;
    ld.v2.u32 {%a, %b}, [%d0+8];
    add.u32 %v, %a, %b;
    st.global.u32 [%at], %v;
    ret;)",
             ".global .align 16 .b8 table[32] = {1,0,0,0, 9,9,9,9, 2,0,0,0, 4,0,0,0, "
             "255,0,254,255};\n");
  const Result r = run_done(text, 8);
  // 1 + 2 + 4, -1, -2, and ten times the fourth word.
  for (unsigned t = 0; t < 8; ++t) REQUIRE(r.out[t] == 44 + t);
}

TEST_CASE("generic addresses reach shared and local memory", "[machine]") {
  const std::string text = kernel(R"(
    .reg .b64 %s, %l;
    .local .align 8 .b8 mine[16];
    mov.u64 %s, m;
    cvta.shared.u64 %s, %s;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %s, %s, %offset;
    isspacep.shared %p, %s;
    isspacep.local %q, %s;
    mov.u64 %l, mine;
    cvta.local.u64 %l, %l;
    isspacep.local %r, %l;
    st.u32 [%l+4], %i;
    ld.u32 %v, [%l+4];
    st.u32 [%s], %v;
    ld.u32 %w, [%s];
    atom.add.u32 %x, [%s], 100;
    ld.u32 %y, [%s];
    selp.b32 %v, 1000, 0, %p;
    @%q add.u32 %v, %v, 5000;
    @%r add.u32 %v, %v, 10000;
    add.u32 %v, %v, %y;
    st.global.u32 [%at], %v;
    ret;)",
                                  ".shared .align 4 .b8 m[128];\n");
  const Result r = run_done(text, 32);
  for (unsigned t = 0; t < 32; ++t) REQUIRE(r.out[t] == 11000 + t + 100);
}

TEST_CASE("the address of a kernel parameter can be passed on", "[machine]") {
  const std::string text = kernel(R"(
    .reg .b64 %g;
    mov.u64 %g, out;
    cvta.param.u64 %g, %g;
    ld.u64 %offset, [%g];
    setp.eq.u64 %p, %offset, %base;
    selp.b32 %v, 1, 0, %p;
    st.global.u32 [%at], %v;
    ret;)");
  for (const auto v : run_done(text, 5).out) REQUIRE(v == 1);
}

TEST_CASE("stores reach only mapped memory", "[machine]") {
  const auto fault_of = [](const std::string& body, const std::string& declarations = "") {
    return run(kernel(body, declarations), 1).outcome.fault;
  };
  REQUIRE(fault_of("  st.global.u32 [%at+4], %i;\n  ret;") == Fault::kIllegalAddress);
  REQUIRE(fault_of("  st.global.u32 [%at+1], %i;\n  ret;") == Fault::kMisalignedAddress);
  REQUIRE(fault_of("  mov.u32 %x, m;\n  ld.shared.u32 %v, [%x+8];\n  ret;",
                   ".shared .align 4 .b8 m[8];\n") == Fault::kIllegalAddress);
  REQUIRE(fault_of("  atom.global.add.u32 %v, [%at+2], 1;\n  ret;") == Fault::kMisalignedAddress);
  REQUIRE(fault_of("  mov.u32 %v, 99;\n  bar.sync %v;\n  ret;") == Fault::kIllegalInstruction);
  REQUIRE(fault_of("  trap;") == Fault::kTrap);
}

TEST_CASE("blocks in three dimensions", "[machine]") {
  Machine machine;
  const Program program(machine, kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .b64 %base, %offset;
  .reg .b32 %x<20>;
  ld.param.u64 %base, [out];
  mov.u32 %x0, %tid.x;   mov.u32 %x1, %tid.y;   mov.u32 %x2, %tid.z;
  mov.u32 %x3, %ntid.x;  mov.u32 %x4, %ntid.y;  mov.u32 %x5, %ntid.z;
  mov.u32 %x6, %ctaid.x; mov.u32 %x7, %ctaid.y; mov.u32 %x8, %ctaid.z;
  mov.u32 %x9, %nctaid.x; mov.u32 %x10, %nctaid.y;
  mad.lo.u32 %x11, %x8, %x10, %x7;
  mad.lo.u32 %x11, %x11, %x9, %x6;
  mad.lo.u32 %x12, %x11, %x5, %x2;
  mad.lo.u32 %x12, %x12, %x4, %x1;
  mad.lo.u32 %x12, %x12, %x3, %x0;
  mul.wide.u32 %offset, %x12, 4;
  add.u64 %base, %base, %offset;
  shl.b32 %x13, %x2, 8;
  or.b32 %x13, %x13, %x1;
  shl.b32 %x13, %x13, 8;
  or.b32 %x13, %x13, %x0;
  st.global.u32 [%base], %x13;
  ret;
}
)");
  const unsigned threads = 5 * 3 * 4;
  const auto out = machine.allocate(2 * 3 * 2 * threads * 4);
  REQUIRE(program.run("k", {2, 3, 2}, {5, 3, 4}, Arguments(out)).status ==
          KernelRun::Status::kDone);
  const auto values = machine.download<std::uint32_t>(out, 12 * threads);
  for (unsigned i = 0; i < values.size(); ++i) {
    const unsigned t = i % threads;
    REQUIRE(values[i] == ((t / 15) << 16 | (t / 5 % 3) << 8 | t % 5));
  }
}
