// SPDX-License-Identifier: Apache-2.0
// Operands, scopes and declarations as the executor sees them.
#include "tools/softgpu/ptx/parser.h"

#include "tests/unit/softgpu_ptx/ptx_text.h"
#include "tools/softgpu/ptx/memory.h"

namespace softgpu::ptx {
namespace {

TEST_CASE("immediates have the bits of their type", "[ptx][parser]") {
  CHECK(Single("add.s32 %r1, %r2, -1;").src(1).value == 0xffffffff);
  CHECK(Single("add.s64 %rd1, %rd2, -1;").src(1).value == ~std::uint64_t{0});
  CHECK(Single("add.s16 %h1, %h2, -2;").src(1).value == 0xfffe);
  CHECK(Single("add.f32 %f1, %f2, 0f3F800000;").src(1).value == 0x3f800000);
  CHECK(Single("add.f32 %f1, %f2, -1.0;").src(1).value == 0xbf800000);
  CHECK(Single("add.f32 %f1, %f2, 0d3FF0000000000000;").src(1).value == 0x3f800000);
  CHECK(Single("add.f64 %fd1, %fd2, 0f3F800000;").src(1).value == 0x3ff0000000000000);
  CHECK(Single("mov.b32 %r1, 0f40000000;").src().value == 0x40000000);
  CHECK(Single("mov.u32 %r1, 1 << 4 | (3 + 1) * 2 - 010;").src().value == 16);
  CHECK(Single("mov.s32 %r1, -7 / 2;").src().value == 0xfffffffd);
  CHECK(Single("mov.u32 %r1, 5 > 3 ? 7 : 9;").src().value == 7);
  CHECK(Single("mov.u64 %rd1, 0xFFFFFFFFFFFFFFFFU >> 60;").src().value == 15);
  CHECK(Single("mov.u32 %r1, WARP_SZ;").src().value == 32);
  CHECK(Single("mov.u32 %r1, ~0 & 0xff;").src().value == 0xff);
  CHECK(Single("mov.pred %p1, 1;").src().value == 1);
  CHECK(Single("mul.wide.s32 %rd1, %r1, -4;").src(1).value == 0xfffffffc);
  CHECK(Single("mad.wide.s32 %rd1, %r1, 4, -4;").src(2).value == ~std::uint64_t{3});
  CHECK(Single("cvt.rn.f32.s32 %f1, -5;").src().value == 0xfffffffb);
}

TEST_CASE("constants that make no sense are errors", "[ptx][parser]") {
  for (const char* bad :
       {"mov.u32 %r1, 1 / 0;", "add.f32 %f1, %f2, 1;", "mov.u32 %r1, 1.0 + 2;",
        "mov.u16 %h1, 0f3F800000;", "mov.u32 %r1, 0f12;", "mov.u32 %r1, (1;",
        "ld.global.u32 %r1, [0f3F800000];", "mov.u32 %r1, 99999999999999999999;"}) {
    parse_error(kernel_text(bad));
  }
  const std::string deep(5000, '(');
  CHECK(parse_error(kernel_text("mov.u32 %r1, " + deep)).find("nested") != std::string::npos);
  CHECK(parse_error(kernel_text("mov.u32 %r1, " + std::string(5000, '-') + "1;")).find("nested") !=
        std::string::npos);
}

TEST_CASE("guards", "[ptx][parser]") {
  const Single plain("add.s32 %r1, %r2, 1;");
  CHECK(plain.inst.guard == kNoGuard);
  const Single guarded("@%p1 add.s32 %r1, %r2, 1;");
  CHECK(guarded.inst.guard == 0);
  CHECK_FALSE(guarded.inst.guard_negate);
  CHECK(Single("@!%p1 add.s32 %r1, %r2, 1;").inst.guard_negate);
  CHECK(parse_error(kernel_text("@%r1 ret;")) == "ptx:7: '%r1' is not a predicate");
}

TEST_CASE("setp destinations and predicate sources", "[ptx][parser]") {
  const Single two("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;");
  CHECK(two.inst.dst_count == 2);
  CHECK(two.inst.src_count == 3);
  CHECK(two.dst(0).kind == OperandKind::kPred);
  CHECK(two.dst(0).index != two.dst(1).index);
  CHECK(two.src(2).negate);
  CHECK(two.inst.boolean == Boolean::kAnd);
  CHECK(Single("setp.lt.s32 _|%p2, %r1, %r2;").dst(0).kind == OperandKind::kSink);
  CHECK(Single("selp.b32 %r1, %r2, 7, %p1;").src(2).kind == OperandKind::kPred);
  CHECK(Single("and.pred %p1, %p2, !%p3;").src(1).negate);
  parse_error(kernel_text("setp.lt.s32 %p1, %r1, %r2, %p3;"));
  parse_error(kernel_text("setp.lt.and.s32 %p1, %r1, %r2;"));
}

TEST_CASE("vector operands of mov", "[ptx][parser]") {
  const Single pack("mov.b64 %rd1, {%r1, %r2};");
  CHECK(pack.inst.op == Opcode::kPack);
  CHECK(pack.inst.src_count == 2);
  const Single unpack("mov.b64 {%r1, _}, %rd1;");
  CHECK(unpack.inst.op == Opcode::kUnpack);
  CHECK(unpack.dst(1).kind == OperandKind::kSink);
  CHECK(Single("mov.b32 %r1, {%h1, %h2};").inst.src_count == 2);
  CHECK(Single("mov.b64 {%h1, %h2, %h3, %h4}, %rd1;").inst.dst_count == 4);
  parse_error(kernel_text("mov.b64 %rd1, {%r1};"));
  parse_error(kernel_text("mov.b64 %rd1, {%r1, %r2, %r3};"));
}

TEST_CASE("a vector move swaps", "[ptx][parser]") {
  const auto module =
      parse(kernel_text("mov.v2.u32 {%r1, %r2}, {%r2, %r1};\n"
                        "st.global.v2.u32 [%rd1], {%r1, %r2};"));
  const Function& f = *module->kernels()[0].function;
  // Reads of the old values come before the first write of a target.
  REQUIRE(f.code.size() == 6);
  for (int i = 0; i < 4; ++i) CHECK(f.code[static_cast<std::size_t>(i)].op == Opcode::kMov);
  const auto slot = [&](int i, bool source) {
    const Instruction& inst = f.code[static_cast<std::size_t>(i)];
    return (source ? f.srcs(inst) : f.dsts(inst))->index;
  };
  CHECK(slot(2, true) == slot(0, false));
  CHECK(slot(3, true) == slot(1, false));
}

TEST_CASE("vector registers are registers in a row", "[ptx][parser]") {
  const auto module =
      parse(kernel_text(".reg .v2 .u32 %v; mov.v2.u32 %v, {1, 2}; st.global.v2.u32 [%rd1], %v;\n"
                        "add.u32 %v.y, %v.x, 1; st.global.u32 [%rd1], %v.y;"));
  const Function& f = *module->kernels()[0].function;
  REQUIRE(f.code[4].op == Opcode::kSt);
  REQUIRE(f.code[4].src_count == 3);
  CHECK(f.srcs(f.code[4])[1].index == f.dsts(f.code[2])->index);
  CHECK(f.srcs(f.code[4])[2].index == f.dsts(f.code[3])->index);
  CHECK(f.srcs(f.code[5])[0].index == f.srcs(f.code[4])[1].index);
  CHECK(f.srcs(f.code[6])[1].index == f.dsts(f.code[5])->index);
  CHECK(Single(".reg .v2 .u32 %v; mov.b64 %rd1, %v;").inst.op == Opcode::kPack);
  CHECK(Single(".reg .v2 .u32 %v; mov.b64 %v, %rd1;").inst.op == Opcode::kUnpack);
  parse_error(kernel_text(".reg .v2 .u32 %v; mov.u32 %v.z, 1;"));
  parse_error(kernel_text(".reg .v2 .u32 %v; mov.u32 %v, 1;"));
  parse_error(kernel_text(".reg .v2 .u32 %v; st.global.v4.u32 [%rd1], %v;"));
}

TEST_CASE("scalar video sums become plain ones", "[ptx][parser]") {
  const auto module =
      parse(kernel_text("vsub.u32.u32.u32.add %r1, %r2, %r1, %r3;\n"
                        "st.global.u32 [%rd1], %r1;"));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.code[0].op == Opcode::kSub);
  CHECK(f.code[1].op == Opcode::kAdd);
  CHECK(f.srcs(f.code[1])[0].index == f.dsts(f.code[0])->index);
  CHECK(Single("vadd.s32.u32.s32 %r1, %r2, %r3;").inst.src_count == 2);
  parse_error(kernel_text("vsub.u32.u32.u32.min %r1, %r2, %r1, %r3;"));
  parse_error(kernel_text("vadd.u32.u32 %r1, %r2, %r1;"));
}

TEST_CASE("loads and stores", "[ptx][parser]") {
  const Single load("ld.global.v4.f32 {%f1, _, %f3, %f4}, [%rd1+-16];");
  CHECK(load.inst.vector == 4);
  CHECK(load.inst.dst_count == 4);
  CHECK(load.dst(1).kind == OperandKind::kSink);
  CHECK(load.src().kind == OperandKind::kAtReg);
  CHECK(static_cast<std::int64_t>(load.src().value) == -16);
  const Single store("st.shared.v2.u32 [%r1+8], {%r2, 5};");
  CHECK(store.inst.dst_count == 0);
  CHECK(store.inst.src_count == 3);
  CHECK(store.src(0).kind == OperandKind::kAtReg);
  CHECK(store.src(2).value == 5);
  CHECK(Single("ld.global.u32 %r1, [4096];").src().kind == OperandKind::kAtAbs);
  CHECK(Single("ld.u32 %r1, [%rd1-4+8];").src().value == 4);
  CHECK(Single("ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;").inst.src_count == 1);
  parse_error(kernel_text("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];"));
  parse_error(kernel_text("ld.global.u32 %p1, [%rd1];"));
}

TEST_CASE("entry parameters are offsets", "[ptx][parser]") {
  const Single second("ld.param.u32 %r1, [b];");
  CHECK(second.inst.space == Space::kParam);
  CHECK(second.src().kind == OperandKind::kAtAbs);
  CHECK(second.src().value == 8);
  const Single address("mov.b64 %rd1, a;");
  CHECK(address.src().kind == OperandKind::kImm);
  CHECK(address.src().value == 0);
  const Single through("ld.param.u32 %r1, [%rd1];");
  CHECK(through.inst.space == Space::kParam);
}

TEST_CASE("variables", "[ptx][parser]") {
  const char* const declarations =
      ".global .u32 g; .const .align 4 .b8 c[16]; .shared .align 4 .b8 s[8]; .shared .b32 t;\n"
      ".extern .shared .align 16 .b8 dyn[];\n";
  const Single global("ld.global.u32 %r1, [g+4];", declarations);
  CHECK(global.src().kind == OperandKind::kAtVariable);
  CHECK(global.src().value == 4);
  CHECK(global.module->variables()[global.src().index].name == "g");
  const Single constant("ld.const.u32 %r1, [c];", declarations);
  CHECK(constant.module->variables()[constant.src().index].name == "c");
  CHECK(Single("ld.u32 %r1, [g];", declarations).inst.space == Space::kGlobal);
  CHECK(Single("mov.u64 %rd1, g+8;", declarations).src().kind == OperandKind::kVariable);
  const auto module = parse(kernel_text("mov.u32 %r1, s; ld.shared.u32 %r2, [t+0];", declarations));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.srcs(f.code[0])->value == 0);
  CHECK(f.srcs(f.code[1])->value == 8);
  CHECK(f.srcs(f.code[1])->index == 0);
  CHECK(Single("mov.u32 %r1, dyn+4;", declarations).src().kind == OperandKind::kDynShared);
  const Single dynamic("ld.shared.u32 %r1, [dyn+12];", declarations);
  CHECK(dynamic.src().kind == OperandKind::kAtDynShared);
  CHECK(dynamic.src().value == 12);
  CHECK(parse_error(kernel_text("ld.shared.u32 %r1, [g];", declarations)) ==
        "ptx:9: the variable is in another state space");
  CHECK(Single("cvta.global.u64 %rd1, g;", declarations).inst.space == Space::kGlobal);
}

TEST_CASE("local variables are in the frame", "[ptx][parser]") {
  const auto module = parse(
      kernel_text(".local .align 16 .b8 depot[24]; .local .u64 q;\n"
                  "mov.u64 %rd1, depot; st.local.u32 [q+4], %r1; cvta.local.u64 %rd2, %rd1;"));
  const Function& f = *module->kernels()[0].function;
  CHECK(f.srcs(f.code[0])->kind == OperandKind::kFrame);
  CHECK(f.srcs(f.code[0])->value == 0);
  CHECK(f.srcs(f.code[1])->kind == OperandKind::kAtFrame);
  CHECK(f.srcs(f.code[1])->value == 28);
  CHECK(f.frame_bytes == 32);
  CHECK(module->kernels()[0].local_bytes == 32);
}

TEST_CASE("special registers", "[ptx][parser]") {
  const auto special = [](const char* name) {
    const Single single(std::string("mov.u32 %r1, ") + name + ";");
    CHECK(single.src().kind == OperandKind::kSpecial);
    return static_cast<Special>(single.src().index);
  };
  CHECK(special("%tid.x") == Special::kTidX);
  CHECK(special("%ctaid.z") == Special::kCtaidZ);
  CHECK(special("%nctaid.y") == Special::kNctaidY);
  CHECK(special("%laneid") == Special::kLaneId);
  CHECK(special("%lanemask_lt") == Special::kLanemaskLt);
  CHECK(special("%dynamic_smem_size") == Special::kDynamicSmemSize);
  CHECK(special("%cluster_ctaid.y") == Special::kClusterCtaidY);
  CHECK(Single("mov.u64 %rd1, %clock64;").src().index ==
        static_cast<std::uint32_t>(Special::kClock64));
  const Single envreg("mov.b32 %r1, %envreg2;");
  CHECK(envreg.src().index == static_cast<std::uint32_t>(Special::kEnvReg));
  CHECK(envreg.src().value == 2);
  CHECK(Single("mov.u32 %r1, %tid.w;").src().kind == OperandKind::kImm);
  parse_error(kernel_text("mov.u32 %r1, %tid;"));
  parse_error(kernel_text("mov.u32 %r1, %envreg32;"));
  CHECK(parse_error(kernel_text("mov.u32 %r1, %foo;")) == "ptx:7: unknown symbol '%foo'");
}

TEST_CASE("warp instructions", "[ptx][parser]") {
  const Single shfl("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;");
  CHECK(shfl.inst.dst_count == 2);
  CHECK(shfl.inst.src_count == 4);
  CHECK(shfl.src(3).value == 0xffffffff);
  CHECK(Single("shfl.up.b32 %r1, %r2, 1, 0;").inst.src_count == 3);
  const Single ballot("vote.ballot.sync.b32 %r1, !%p1, %r2;");
  CHECK(ballot.dst().kind == OperandKind::kReg);
  CHECK(ballot.src(0).negate);
  CHECK(Single("vote.sync.any.pred %p1, %p2, -1;").dst().kind == OperandKind::kPred);
  CHECK(Single("match.all.sync.b32 %r1|%p1, %r2, -1;").inst.dst_count == 2);
  CHECK(Single("match.any.sync.b64 %r1, %rd2, -1;").inst.src_count == 2);
  CHECK(Single("elect.sync _|%p1, -1;").dst(0).kind == OperandKind::kSink);
  CHECK(Single("activemask.b32 %r1;").inst.src_count == 0);
  CHECK(Single("redux.sync.add.s32 %r1, %r2, -1;").inst.atom_op == AtomOp::kAdd);
}

TEST_CASE("barriers always have an id and a count place", "[ptx][parser]") {
  CHECK(Single("bar.sync 0;").src(1).kind == OperandKind::kNone);
  CHECK(Single("barrier.sync 1, %r1;").src(1).kind == OperandKind::kReg);
  CHECK(Single("bar.arrive 2, 64;").src(1).value == 64);
  const Single red("bar.red.or.pred %p1, 0, %p2;");
  REQUIRE(red.inst.src_count == 3);
  CHECK(red.src(1).kind == OperandKind::kNone);
  CHECK(red.src(2).kind == OperandKind::kPred);
  const Single counted("bar.red.popc.u32 %r1, 0, 32, !%p2;");
  CHECK(counted.src(1).value == 32);
  CHECK(counted.src(2).negate);
  CHECK(Single("bar.red.and.pred %p1, 0, 1;").src(2).kind == OperandKind::kImm);
  CHECK(Single("bar.warp.sync 0xffffffff;").src().value == 0xffffffff);
  parse_error(kernel_text("bar.arrive 1;"));
}

TEST_CASE("atomics", "[ptx][parser]") {
  const Single cas("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;");
  CHECK(cas.inst.src_count == 3);
  CHECK(cas.src(0).kind == OperandKind::kAtReg);
  CHECK(Single("atom.shared.add.u32 _, [%r1], 1;").dst().kind == OperandKind::kSink);
  CHECK(Single("red.global.add.f32 [%rd1], %f1;").inst.dst_count == 0);
  CHECK(Single("atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f3, %f4};").inst.src_count == 3);
  CHECK(Single("atom.add.release.gpu.u32 %r1, [%rd1], 1;").inst.order == Order::kRelease);
}

TEST_CASE("hints are read and dropped", "[ptx][parser]") {
  CHECK(Single("prefetch.global.L2 [%rd1];").inst.op == Opcode::kNop);
  CHECK(Single("discard.global.L2 [%rd1], 128;").inst.op == Opcode::kNop);
  CHECK(Single("griddepcontrol.wait;").inst.op == Opcode::kNop);
  const Single policy("createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;");
  CHECK(policy.inst.op == Opcode::kMov);
  CHECK(policy.inst.dst_count == 1);
}

TEST_CASE("inner braces hide outer names", "[ptx][parser]") {
  const auto module = parse(kernel_text(
      ".reg .b32 x; mov.u32 x, 1; { .reg .pred x; setp.eq.u32 x, 1, 1; @x ret; } mov.u32 %r1, x;"));
  CHECK(module->kernels()[0].function->predicates == 1);
  parse_error(kernel_text("{ .reg .b32 y; } mov.u32 y, 1;"));
  parse_error(kernel_text(".reg .b32 y; .reg .f32 y;"));
  parse_error(kernel_text(std::string(5000, '{')));
}

TEST_CASE("register ranges end where they say", "[ptx][parser]") {
  parse(kernel_text("mov.u32 %r19, 1;"));
  CHECK(parse_error(kernel_text("mov.u32 %r20, 1;")) == "ptx:7: '%r20' is not a register");
  parse_error(kernel_text("mov.u32 %r01, 1;"));
  CHECK(parse_error(kernel_text(".reg .b32 %q<4294967295>;")) ==
        "ptx:7: count of names out of range");
}

// As GCC writes the arguments of its calls.
TEST_CASE("parameters are declared in ranges", "[ptx][parser]") {
  const std::string callee = ".func f(.param .u64 a, .param .u64 b) { ret; }\n";
  const auto module = parse(kernel_text(
      "{ .param .u64 %P<2>; st.param.u64 [%P0], %rd1; st.param.u64 [%P1], %rd2; call f, (%P0, "
      "%P1); }\n{ .param .b32 %Q<1>; st.param.b32 [%Q0], %r1; }",
      callee));
  const Function& kernel = *module->kernels()[0].function;
  const Operand first = kernel.srcs(kernel.code[0])[0], second = kernel.srcs(kernel.code[1])[0];
  REQUIRE(first.kind == OperandKind::kAtFrame);
  REQUIRE(second.kind == OperandKind::kAtFrame);
  CHECK(second.value == first.value + 8);
  REQUIRE(kernel.calls.size() == 1);
  REQUIRE(kernel.calls[0].arguments.size() == 2);
  CHECK(kernel.calls[0].arguments[1].place.value == second.value);
  CHECK(kernel.calls[0].arguments[1].size == 8);
  CHECK(parse_error(kernel_text("{ .param .u64 %P<2>; st.param.u64 [%P2], %rd1; }")) ==
        "ptx:7: unknown symbol '%P2'");
  CHECK(parse_error(kernel_text("{ .param .u64 %P<2>, %P1; }")) ==
        "ptx:7: '%P1' is declared twice");
  CHECK(parse_error(kernel_text("{ .param .u64 %P<4294967295>; }")) ==
        "ptx:7: count of names out of range");
  CHECK(parse_error(kernel_text("{ .param .u64 %P<100000>; }")) == "ptx:7: too many parameters");
  CHECK(parse_error(kernel_text("{ .param .u64 %P<x>; }")).find("a number") != std::string::npos);
}

TEST_CASE("old and odd texts are read", "[ptx][parser]") {
  parse(".version 3.2\n.target sm_30\n.address_size 64\n.entry k { ret; }\n");
  parse(".version 1.4\n.target sm_10, map_f64_to_f32\n.entry k () { .reg .u32 %r1; exit; }\n");
  parse(".version 9.0\n.target sm_90a, debug\n.address_size 64\n");
  parse(
      module_text(".pragma \"nounroll\";\n.visible .entry k\n()\n.maxntid 256, 2, 1\n"
                  ".minnctapersm 2\n.maxnreg 64\n{ .pragma \"x\"; ret; }\n"));
}

TEST_CASE("versions and targets that are too new say so", "[ptx][parser]") {
  ParseError error;
  CHECK(Module::parse(".version 9.1\n.target sm_80\n", 80, &error) == nullptr);
  CHECK(error.unsupported_version);
  error = {};
  CHECK(Module::parse(".version 8.0\n.target sm_90\n", 80, &error) == nullptr);
  CHECK(error.unsupported_target);
  CHECK(error.message == "ptx:2: target sm_90 does not run on a device of sm_80");
  error = {};
  CHECK(Module::parse(".version 8.0\n.target sm_90a\n", 100, &error) == nullptr);
  CHECK(error.unsupported_target);
  CHECK(Module::parse(".version 8.8\n.target sm_100f\n", 103, &error) != nullptr);
  CHECK(Module::parse(".version 8.8\n.target sm_100f\n", 120, &error) == nullptr);
}

TEST_CASE("errors name the line and the thing", "[ptx][parser]") {
  CHECK(parse_error("") == "ptx:1: the text does not start with .version");
  CHECK(parse_error(".version x\n.target sm_80\n") == "ptx:1: bad .version");
  CHECK(parse_error(".version 8.0\n.target compute_80\n") == "ptx:2: unknown target 'compute_80'");
  CHECK(parse_error(".version 8.0\n.target sm_80\n.address_size 32\n") ==
        "ptx:3: 32-bit addresses are not supported");
  CHECK(parse_error(kernel_text("foo.bar %r1;")) == "ptx:7: unknown instruction 'foo.bar'");
  CHECK(parse_error(kernel_text("add.s32 %r1, %r2;")) == "ptx:7: expected ',', found ';'");
  CHECK(parse_error(kernel_text("add.s32 %r1, %r2, %r3")) == "ptx:8: expected ';', found '}'");
  CHECK(parse_error(kernel_text("bra NOWHERE;")) == "ptx:7: unknown label 'NOWHERE'");
  CHECK(parse_error(kernel_text("L: L: ret;")) == "ptx:7: label 'L' is defined twice");
  CHECK(parse_error(kernel_text("call nothing;")) == "ptx:7: unknown function 'nothing'");
  CHECK(parse_error(module_text(".global .texref t;\n")) ==
        "ptx:4: '.texref' is not supported here");
  CHECK(parse_error(module_text(".entry k { ret;")) ==
        "ptx:4: expected an instruction, found the end of the text");
  CHECK(parse_error(module_text("ret;")) == "ptx:4: expected a directive, found 'ret'");
  CHECK(parse_error(module_text(".entry k { # }")) == "ptx:4: unexpected character");
}

}  // namespace
}  // namespace softgpu::ptx
