// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/instructions.h"

#include <vector>

#include "tests/unit/catch.h"

namespace softgpu::ptx {
namespace {

// False with an error, or the form of a spelling such as "ld.global.u32".
bool decode(std::string_view spelling, Form* form, std::string* error) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= spelling.size();) {
    const std::size_t dot = std::min(spelling.find('.', at), spelling.size());
    words.push_back(spelling.substr(at, dot - at));
    at = dot + 1;
  }
  return decode_form(words[0], words.data() + 1, words.size() - 1, form, error);
}

Instruction decoded(std::string_view spelling) {
  Form form;
  std::string error;
  CAPTURE(spelling);
  const bool ok = decode(spelling, &form, &error);
  CAPTURE(error);
  REQUIRE(ok);
  return form.instruction;
}

std::string refused(std::string_view spelling) {
  Form form;
  std::string error;
  CAPTURE(spelling);
  REQUIRE_FALSE(decode(spelling, &form, &error));
  return error;
}

// Every spelling met in compiled CUDA samples, llm.c, ggml, ffmpeg filters, GCC offload and
// tinygrad kernels, except textures, video, asynchronous copies and tensor instructions.
const char* const kMeasured[] = {
    "ret",
    "ret.uni",
    "mov.b32",
    "mov.u32",
    "mov.f32",
    "mov.u64",
    "mov.u16",
    "mov.b64",
    "mov.pred",
    "mov.f64",
    "mov.b16",
    "mov.s32",
    "mov.v2.u32",
    "ld.param.u32",
    "ld.param.u64",
    "ld.param.f32",
    "ld.param.u8",
    "ld.param.b32",
    "ld.param.s32",
    "ld.param.s8",
    "ld.param.v2.f32",
    "ld.param.f64",
    "ld.param.b8",
    "ld.param.b64",
    "ld.param.u16",
    "ld.param.v2.u32",
    "ld.param.v2.u8",
    "ld.param.v4.u8",
    "ld.param.s16",
    "add.s64",
    "add.s32",
    "add.f32",
    "add.f16x2",
    "add.u64",
    "add.s16",
    "add.f64",
    "add.u32",
    "add.u16",
    "add.f16",
    "st.global.f32",
    "st.global.u32",
    "st.global.u16",
    "st.global.u8",
    "st.global.v2.f32",
    "st.global.u64",
    "st.global.v4.u32",
    "st.global.f64",
    "st.global.v4.f32",
    "st.global.v2.u16",
    "st.global.v2.b16",
    "st.global.v4.u8",
    "st.global.cs.f32",
    "st.global.v2.u32",
    "st.global.v2.u8",
    "st.global.s64",
    "st.global.cs.v4.s32",
    "st.global.v2.f64",
    "st.global.v4.s32",
    "st.global.v2.u64",
    "st.global.s8",
    "st.global.cg.v4.s32",
    "st.global.v4.b16",
    "st.global.s32",
    "st.global.cs.b16",
    "st.global.b16",
    "setp.ge.s32",
    "setp.eq.s32",
    "setp.lt.s32",
    "setp.ne.s32",
    "setp.gt.s32",
    "setp.lt.u32",
    "setp.eq.s64",
    "setp.ge.u32",
    "setp.eq.s16",
    "setp.ne.u32",
    "setp.eq.u64",
    "setp.gt.u32",
    "setp.ne.u64",
    "setp.lt.s64",
    "setp.lt.f32",
    "setp.eq.f32",
    "setp.eq.u32",
    "setp.ge.s64",
    "setp.lt.u64",
    "setp.ne.s16",
    "setp.ne.s64",
    "setp.gt.f32",
    "setp.le.u64",
    "setp.le.s32",
    "setp.eq.u16",
    "setp.ne.u16",
    "setp.le.s64",
    "setp.gt.u64",
    "setp.ge.u64",
    "setp.le.u32",
    "setp.gt.s64",
    "setp.eq.b32",
    "setp.gt.s16",
    "setp.eq.b64",
    "setp.gt.f64",
    "setp.lt.f64",
    "setp.geu.f32",
    "setp.eq.b16",
    "setp.nan.f64",
    "setp.eq.f64",
    "setp.ltu.f64",
    "setp.gtu.f64",
    "setp.ltu.f32",
    "setp.lt.s16",
    "setp.le.f64",
    "setp.neu.f64",
    "setp.gtu.f32",
    "setp.le.f32",
    "setp.le.u16",
    "setp.neu.f32",
    "setp.leu.f32",
    "setp.lt.u16",
    "setp.geu.f64",
    "setp.ge.f32",
    "setp.eq.f16",
    "setp.lt.f16",
    "setp.nan.f32",
    "setp.num.f64",
    "setp.leu.f64",
    "mad.lo.s32",
    "mad.lo.s64",
    "mad.lo.u64",
    "mad.lo.u32",
    "ld.global.nc.u32",
    "ld.global.u32",
    "ld.global.nc.u16",
    "ld.global.f32",
    "ld.global.nc.v2.f32",
    "ld.global.nc.f32",
    "ld.global.nc.u8",
    "ld.global.v4.u32",
    "ld.global.u16",
    "ld.global.nc.v4.u32",
    "ld.global.u8",
    "ld.global.nc.v2.u16",
    "ld.global.nc.v2.u32",
    "ld.global.u64",
    "ld.global.f64",
    "ld.global.v4.f32",
    "ld.global.nc.u64",
    "ld.global.v2.f32",
    "ld.global.s64",
    "ld.global.cs.f32",
    "ld.global.b16",
    "ld.global.nc.v2.u64",
    "ld.global.v2.b16",
    "ld.global.s8",
    "ld.global.nc.v2.u8",
    "ld.global.cs.v4.s32",
    "ld.global.v2.u32",
    "ld.global.nc.f64",
    "ld.global.s16",
    "ld.global.v4.u8",
    "ld.global.v4.s32",
    "ld.global.s32",
    "ld.global.nc.v4.u8",
    "ld.global.cs.b16",
    "ld.global.nc.v4.u16",
    "ld.global.v4.b16",
    "ld.global.nc.v4.f32",
    "ld.global.nc.v2.f64",
    "ld.global.v2.f64",
    "ld.global.cg.b32",
    "ld.global.cs.v4.f32",
    "ld.global.v2.u16",
    "bra",
    "bra.uni",
    "cvta.to.global.u64",
    "shl.b32",
    "shl.b64",
    "shl.b16",
    "cvt.f32.f16",
    "cvt.s64.s32",
    "cvt.u64.u32",
    "cvt.u32.u16",
    "cvt.u32.u64",
    "cvt.u16.u32",
    "cvt.s32.s8",
    "cvt.u64.u16",
    "cvt.s16.s8",
    "cvt.s32.s16",
    "cvt.u32.u8",
    "cvt.u16.u64",
    "cvt.f64.f32",
    "cvt.u8.u32",
    "cvt.u32.u32",
    "cvt.u16.u8",
    "cvt.s32.s64",
    "cvt.f32.bf16",
    "mul.wide.s32",
    "mul.wide.u32",
    "mul.wide.u16",
    "mul.wide.s16",
    "and.b32",
    "and.b16",
    "and.b64",
    "and.pred",
    "mul.lo.s32",
    "mul.lo.s64",
    "mul.lo.s16",
    "mul.lo.u64",
    "mul.lo.u16",
    "mul.lo.u32",
    "sub.s32",
    "sub.f32",
    "sub.s64",
    "sub.f64",
    "sub.u64",
    "sub.u32",
    "sub.s16",
    "shr.u32",
    "shr.s32",
    "shr.u16",
    "shr.b32",
    "shr.u64",
    "shr.s64",
    "shr.s16",
    "selp.b32",
    "selp.f32",
    "selp.b64",
    "selp.u32",
    "selp.b16",
    "selp.u16",
    "selp.u64",
    "selp.f64",
    "selp.s64",
    "selp.s32",
    "selp.s16",
    "cvt.rn.f32.s32",
    "cvt.rn.f16.f32",
    "cvt.rn.bf16.f32",
    "cvt.rn.f32.s16",
    "cvt.rn.f32.u16",
    "cvt.rn.f16x2.f32",
    "cvt.rn.f32.u32",
    "cvt.rn.f16.s32",
    "cvt.rn.f32.f64",
    "cvt.rn.f64.s64",
    "cvt.rn.f32.s64",
    "cvt.rn.f64.s32",
    "cvt.rn.f64.u64",
    "cvt.rn.f32.u64",
    "cvt.rn.f64.u32",
    "cvt.rn.f32.u8",
    "cvt.rn.f64.u16",
    "cvt.rn.f16x2.e4m3x2",
    "or.b32",
    "or.pred",
    "or.b16",
    "or.b64",
    "ld.shared.u32",
    "ld.shared.f32",
    "ld.shared.u16",
    "ld.shared.v4.f32",
    "ld.shared.u64",
    "ld.shared.v4.u32",
    "ld.shared.v2.u32",
    "ld.shared.u8",
    "ld.shared.v2.f64",
    "ld.shared.v4.u8",
    "ld.shared.v2.u16",
    "ld.shared.f64",
    "ld.shared.v2.f32",
    "ld.shared.v2.u8",
    "ld.shared.s8",
    "ld.shared.v2.u64",
    "ld.shared.s16",
    "ld.shared.s32",
    "ld.shared.s64",
    "st.shared.u32",
    "st.shared.f32",
    "st.shared.v4.u32",
    "st.shared.u16",
    "st.shared.u8",
    "st.shared.u64",
    "st.shared.v2.u32",
    "st.shared.v2.u16",
    "st.shared.f64",
    "st.shared.v4.f32",
    "st.shared.v2.f32",
    "st.shared.v4.u16",
    "st.shared.v4.u8",
    "st.shared.s32",
    "st.shared.s64",
    "mul.f32",
    "mul.f16x2",
    "mul.f64",
    "mul.f16",
    "not.b32",
    "not.pred",
    "not.b64",
    "not.b16",
    "div.u32",
    "div.s64",
    "div.s32",
    "div.u64",
    "div.u16",
    "fma.rn.f32",
    "fma.rn.f64",
    "fma.rn.bf16x2",
    "fma.rn.f16x2",
    "bar.sync",
    "neg.f32",
    "neg.s32",
    "neg.s64",
    "neg.f64",
    "add.ftz.f32",
    "max.s32",
    "max.f32",
    "max.f64",
    "max.u32",
    "max.u64",
    "max.s64",
    "max.u16",
    "fma.rn.ftz.f32",
    "barrier.sync",
    "div.rn.f32",
    "div.rn.f64",
    "xor.b32",
    "xor.pred",
    "xor.b64",
    "mul.ftz.f32",
    "min.s32",
    "min.s64",
    "min.u32",
    "min.f32",
    "min.u64",
    "min.f64",
    "min.u16",
    "cvt.rzi.u32.f32",
    "cvt.rzi.u16.f32",
    "cvt.rzi.f32.f32",
    "cvt.rzi.s32.f32",
    "cvt.rzi.s8.f32",
    "cvt.rzi.s64.f32",
    "cvt.rzi.u32.f64",
    "cvt.rzi.u64.f32",
    "cvt.rzi.s64.f64",
    "cvt.rzi.f64.f64",
    "cvt.rzi.s32.f16",
    "shfl.sync.bfly.b32",
    "st.local.f32",
    "st.local.u32",
    "st.local.v2.f32",
    "st.local.v2.u16",
    "st.local.v4.f32",
    "st.local.u64",
    "st.local.v4.u32",
    "st.local.v2.u32",
    "st.local.f64",
    "st.local.u8",
    "st.local.v2.u64",
    "st.local.v4.u8",
    "call",
    "call.uni",
    "st.param.u64",
    "st.param.u32",
    "st.param.b64",
    "st.param.b32",
    "st.param.f32",
    "st.param.f64",
    "st.param.b8",
    "rem.s32",
    "rem.u32",
    "rem.s64",
    "rem.u64",
    "sub.ftz.f32",
    "cvta.global.u64",
    "div.approx.ftz.f32",
    "ld.local.f32",
    "ld.local.v4.f32",
    "ld.local.u32",
    "ld.local.v2.f32",
    "ld.local.u64",
    "ld.local.f64",
    "mul.hi.u32",
    "mul.hi.s32",
    "mul.hi.u64",
    "bfi.b32",
    "bfi.b64",
    "max.ftz.f32",
    "ex2.approx.ftz.f32",
    "atom.global.add.u64",
    "atom.global.add.u32",
    "atom.global.add.f32",
    "atom.global.add.f64",
    "abs.s32",
    "abs.f32",
    "abs.f64",
    "setp.lt.ftz.f32",
    "setp.eq.ftz.f32",
    "setp.gt.ftz.f32",
    "setp.ltu.ftz.f32",
    "setp.leu.ftz.f32",
    "setp.geu.ftz.f32",
    "setp.ge.ftz.f32",
    "setp.le.ftz.f32",
    "setp.gtu.ftz.f32",
    "setp.neu.ftz.f32",
    "bar.warp.sync",
    "cvta.local.u64",
    "rcp.approx.ftz.f32",
    "rcp.approx.ftz.f64",
    "ld.const.f32",
    "ld.const.u32",
    "ld.const.v4.f32",
    "ld.const.u64",
    "ld.const.u16",
    "ld.const.f64",
    "rcp.rn.f32",
    "rcp.rn.f64",
    "trap",
    "shfl.sync.down.b32",
    "shfl.sync.idx.b32",
    "lg2.approx.ftz.f32",
    "popc.b32",
    "sqrt.rn.f32",
    "sqrt.rn.f64",
    "vote.sync.ballot.b32",
    "cvt.rni.f32.f32",
    "cvt.rni.s32.f32",
    "cvt.rni.f64.f64",
    "cvta.shared.u64",
    "shfl.sync.up.b32",
    "abs.ftz.f32",
    "atom.shared.add.u32",
    "atom.shared.add.f32",
    "atom.shared.add.f64",
    "brev.b32",
    "cvt.sat.f32.f32",
    "ld.volatile.global.u32",
    "ld.volatile.global.v4.u32",
    "st.u64",
    "st.u32",
    "st.u8",
    "st.u16",
    "st.v2.u32",
    "st.cg.u32",
    "st.f32",
    "st.f64",
    "clz.b32",
    "clz.b64",
    "mad.wide.u32",
    "mul.rn.f32",
    "mul.rn.f64",
    "ld.u64",
    "ld.v4.u32",
    "ld.u32",
    "ld.u8",
    "ld.ca.u32",
    "ld.u16",
    "ld.cg.u32",
    "ld.s16",
    "ld.f32",
    "ld.f64",
    "ld.s8",
    "ld.s32",
    "ld.volatile.shared.f32",
    "ld.volatile.shared.u32",
    "min.ftz.f32",
    "st.volatile.shared.f32",
    "st.volatile.shared.u32",
    "tanh.approx.f32",
    "vote.sync.all.pred",
    "copysign.f32",
    "ex2.approx.f32",
    "membar.cta",
    "nanosleep.u32",
    "prmt.b32",
    "bar.red.or.pred",
    "bfind.shiftamt.u32",
    "exit",
    "sqrt.approx.ftz.f32",
    "st.volatile.global.u32",
    "vote.sync.any.pred",
    "add.rz.ftz.f32",
    "atom.add.release.gpu.u32",
    "bmsk.clamp.b32",
    "cvt.ftz.f64.f32",
    "cvt.rn.ftz.f32.f64",
    "cvt.rzi.ftz.s32.f32",
    "cvt.rzi.ftz.u32.f32",
    "cvt.rzi.ftz.s64.f32",
    "cvta.to.local.u64",
    "ld.acquire.gpu.u32",
    "neg.ftz.f32",
    "rsqrt.approx.f32",
    "rsqrt.approx.f64",
    "rsqrt.approx.ftz.f32",
    "sin.approx.f32",
    "vote.ballot.sync.b32",
    "ld.relaxed.gpu.v2.u32",
    "ld.relaxed.gpu.v2.u64",
    "ld.relaxed.gpu.u32",
    "lg2.approx.f32",
    "redux.sync.add.s32",
    "sin.approx.ftz.f32",
    "st.relaxed.gpu.v2.u32",
    "st.relaxed.gpu.v2.u64",
    "activemask.b32",
    "atom.global.inc.u32",
    "atom.global.max.s32",
    "atom.global.max.u32",
    "cos.approx.f32",
    "cos.approx.ftz.f32",
    "cvt.rmi.f32.f32",
    "membar.gl",
    "membar.sys",
    "add.rn.f32",
    "add.rn.f64",
    "atom.add.u32",
    "atom.add.u64",
    "atom.cas.b64",
    "atom.cas.b32",
    "atom.global.cas.b32",
    "atom.global.exch.b32",
    "atom.global.sys.add.f64",
    "atom.global.sys.add.u32",
    "atom.shared.exch.b32",
    "cvt.rmi.ftz.f32.f32",
    "fma.rm.f32",
    "ld.volatile.u32",
    "match.any.sync.b64",
    "match.any.sync.b32",
    "st.volatile.u32",
    "add.rm.f64",
    "add.rp.f64",
    "add.rz.f32",
    "atom.add.acquire.cta.u32",
    "atom.add.relaxed.cta.u32",
    "atom.exch.b32",
    "atom.exch.b64",
    "atom.global.and.b32",
    "atom.global.dec.u32",
    "atom.global.min.s32",
    "atom.global.or.b32",
    "atom.global.sys.and.b32",
    "atom.global.sys.cas.b32",
    "atom.global.sys.dec.u32",
    "atom.global.sys.exch.b32",
    "atom.global.sys.inc.u32",
    "atom.global.sys.max.s32",
    "atom.global.sys.min.s32",
    "atom.global.sys.or.b32",
    "atom.global.sys.xor.b32",
    "atom.global.xor.b32",
    "atom.or.acq_rel.cta.b32",
    "bar.arrive",
    "bar.red.and.pred",
    "bfind.u32",
    "cnot.b32",
    "cvt.rm.f32.s32",
    "cvt.rni.ftz.s32.f32",
    "cvt.rp.f32.s32",
    "cvt.rpi.f32.f32",
    "cvt.rpi.ftz.f32.f32",
    "cvt.rz.f32.s32",
    "cvta.const.u64",
    "div.approx.f32",
    "div.rm.f64",
    "div.rp.f64",
    "fence.sc.cta",
    "ld.acquire.cta.u32",
    "ld.acquire.sys.global.u8",
    "ld.relaxed.cta.b32",
    "mul.rm.f64",
    "mul.rn.ftz.f32",
    "mul.rp.f64",
    "rcp.rn.ftz.f32",
    "red.and.release.cta.b32",
    "redux.sync.max.s32",
    "shf.l.wrap.b32",
    "sqrt.approx.f32",
    "st.relaxed.cta.b32",
    "st.release.gpu.u32",
    "st.release.sys.global.u8",
};

TEST_CASE("every measured spelling is known", "[ptx][instructions]") {
  for (const char* spelling : kMeasured) decoded(spelling);
}

TEST_CASE("arithmetic exists for all its types", "[ptx][instructions]") {
  for (const char* op : {"add", "sub", "min", "max"}) {
    for (const char* type : {"u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "f16x2",
                             "bf16", "bf16x2"}) {
      decoded(std::string(op) + "." + type);
    }
  }
  for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
    for (const char* op : {"add", "sub", "mul", "fma", "div"}) {
      CHECK(decoded(std::string(op) + "." + rounding + ".f64").type == Type::kF64);
      CHECK(decoded(std::string(op) + "." + rounding + ".ftz.f32").ftz);
    }
  }
}

TEST_CASE("conversions exist between all types", "[ptx][instructions]") {
  const char* const types[] = {"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"};
  for (const char* to : types) {
    for (const char* from : types) decoded(std::string("cvt.") + to + "." + from);
    for (const char* from : {"f16", "f32", "f64"}) {
      const Instruction inst = decoded(std::string("cvt.rzi.sat.") + to + "." + from);
      CHECK(inst.rounding == Rounding::kRzi);
      CHECK(inst.sat);
      decoded(std::string("cvt.rn.") + from + "." + to);
    }
  }
  const Instruction inst = decoded("cvt.rn.ftz.f32.f64");
  CHECK(inst.type == Type::kF32);
  CHECK(inst.source_type == Type::kF64);
}

TEST_CASE("words with two meanings follow the opcode", "[ptx][instructions]") {
  CHECK(decoded("mul.lo.u32").mul_mode == MulMode::kLo);
  CHECK(decoded("setp.lo.u32").compare == Compare::kLt);
  CHECK(decoded("setp.hs.u64").compare == Compare::kGe);
  CHECK(decoded("setp.lt.and.s32").boolean == Boolean::kAnd);
  CHECK(decoded("atom.global.and.b32").atom_op == AtomOp::kAnd);
  CHECK(decoded("bar.red.and.pred").barrier_op == BarrierOp::kAnd);
  CHECK(decoded("setp.nan.f32").compare == Compare::kNan);
  CHECK(decoded("min.NaN.f32").nan);
  CHECK(decoded("testp.number.f32").testp == Testp::kNumber);
  CHECK(decoded("setp.num.f32").compare == Compare::kNum);
  CHECK(decoded("vote.uni.pred").vote_mode == VoteMode::kUni);
  CHECK(decoded("bra.uni").uniform);
  CHECK(decoded("bfind.shiftamt.u32").shiftamt);
  CHECK_FALSE(decoded("bfind.shiftamt.u32").uniform);
  CHECK(decoded("atom.global.add.noftz.f16x2").no_ftz);
}

TEST_CASE("both orders of vote are one instruction", "[ptx][instructions]") {
  for (const char* spelling : {"vote.sync.ballot.b32", "vote.ballot.sync.b32"}) {
    const Instruction inst = decoded(spelling);
    CHECK(inst.op == Opcode::kVote);
    CHECK(inst.vote_mode == VoteMode::kBallot);
    CHECK(inst.sync);
  }
  CHECK_FALSE(decoded("vote.ballot.b32").sync);
}

TEST_CASE("memory suffixes", "[ptx][instructions]") {
  const Instruction load = decoded("ld.acquire.gpu.global.L1::no_allocate.L2::128B.v4.f32");
  CHECK(load.order == Order::kAcquire);
  CHECK(load.scope == Scope::kGpu);
  CHECK(load.space == Space::kGlobal);
  CHECK(load.vector == 4);
  CHECK(load.type == Type::kF32);
  CHECK(decoded("ldu.global.u32").op == Opcode::kLd);
  CHECK(decoded("ld.shared::cta.u32").space == Space::kShared);
  CHECK(decoded("ld.param::func.u32").space == Space::kParam);
  CHECK(decoded("st.volatile.shared.f32").order == Order::kVolatile);
  CHECK(decoded("membar.gl").scope == Scope::kGpu);
  CHECK(decoded("fence.acq_rel.cta").order == Order::kAcqRel);
  CHECK(decoded("fence.proxy.alias").op == Opcode::kFence);
}

TEST_CASE("carry chains", "[ptx][instructions]") {
  CHECK(decoded("add.cc.u32").carry_out);
  CHECK_FALSE(decoded("add.cc.u32").carry_in);
  CHECK(decoded("addc.cc.u64").carry_in);
  CHECK(decoded("subc.u32").op == Opcode::kSub);
  CHECK(decoded("madc.hi.cc.u32").op == Opcode::kMad);
  CHECK(decoded("mad.lo.cc.u64").carry_out);
}

TEST_CASE("mad of floats is fma", "[ptx][instructions]") {
  CHECK(decoded("mad.f32").op == Opcode::kFma);
  CHECK(decoded("mad.rn.f64").op == Opcode::kFma);
  CHECK(decoded("mad.hi.sat.s32").sat);
}

TEST_CASE("barrier spellings", "[ptx][instructions]") {
  CHECK(decoded("bar.sync").aligned);
  CHECK_FALSE(decoded("barrier.sync").aligned);
  CHECK(decoded("barrier.cta.sync.aligned").aligned);
  CHECK(decoded("barrier.red.popc.aligned.u32").barrier_op == BarrierOp::kPopc);
  CHECK(decoded("bar.warp.sync").op == Opcode::kBarWarpSync);
  CHECK(decoded("barrier.cta.arrive").op == Opcode::kBarArrive);
}

TEST_CASE("less common instructions", "[ptx][instructions]") {
  for (const char* spelling : {"sad.u32",
                               "fns.b32",
                               "szext.wrap.s32",
                               "bmsk.wrap.b32",
                               "dp2a.lo.s32.u32",
                               "dp4a.u32.s32",
                               "shf.r.clamp.b32",
                               "cnot.b64",
                               "lop3.b32",
                               "lop3.or.b32",
                               "prmt.b32.rc16",
                               "slct.f32.s32",
                               "slct.ftz.u64.f32",
                               "set.gt.u32.f32",
                               "set.le.and.f32.s32",
                               "mul24.hi.u32",
                               "mad24.lo.s32",
                               "match.all.sync.b64",
                               "redux.sync.xor.b32",
                               "elect.sync",
                               "prefetch.global.L2",
                               "prefetchu.L1",
                               "griddepcontrol.wait",
                               "discard.global.L2",
                               "isspacep.shared",
                               "applypriority.global.L2::evict_normal",
                               "createpolicy.fractional.L2::evict_last.b64",
                               "cvt.pack.sat.u8.s32.b32",
                               "cvt.rn.bf16x2.f32",
                               "cvt.rn.satfinite.e4m3x2.f32",
                               "brx.idx.uni",
                               "brkpt",
                               "pmevent",
                               "rsqrt.approx.ftz.f64",
                               "ex2.approx.f16x2",
                               "tanh.approx.bf16",
                               "fma.rn.relu.f16",
                               "max.xorsign.abs.f32",
                               "add.sat.s32"}) {
    decoded(spelling);
  }
}

TEST_CASE("what PTX does not have is refused with its name", "[ptx][instructions]") {
  CHECK(refused("foo.u32") == "unknown instruction 'foo.u32'");
  CHECK(refused("add.u8") == "unknown suffix '.u8' in 'add.u8'");
  CHECK(refused("add.x32") == "unknown suffix '.x32' in 'add.x32'");
  CHECK(refused("mul.u32") == ".lo, .hi or .wide is missing 'mul.u32'");
  CHECK(refused("mul.wide.u64") == ".wide needs a 16 or 32 bit type 'mul.wide.u64'");
  CHECK(refused("add") == "the type is missing 'add'");
  CHECK(refused("cvt.u32") == "the second type is missing 'cvt.u32'");
  CHECK(refused("setp.u32") == "a suffix is missing 'setp.u32'");
  for (const char* spelling : {"div.f32",
                               "add.rn.s32",
                               "add.sat.u32",
                               "mad.lo.f32",
                               "atom.global.add.b32",
                               "red.exch.b32",
                               "atom.and.f32",
                               "vote.all.b32",
                               "vote.ballot.pred",
                               "bar.red.popc.pred",
                               "shfl.sync.b32",
                               "sin.f32",
                               "rcp.f32",
                               "ld.u128",
                               "redux.sync.add.b32",
                               "redux.sync.inc.u32",
                               "fma.f32",
                               "add.u32.u32",
                               "ret.u32",
                               "bar",
                               "bar.foo",
                               "cvt.u32.u32.u32",
                               "mul.lo.f32",
                               "mul24.wide.u32",
                               "abs.u32",
                               "tex.2d.v4.f32.f32",
                               "wmma.load.a"}) {
    refused(spelling);
  }
}

TEST_CASE("types know their size and kind", "[ptx][instructions]") {
  CHECK(type_from_name("bf16x2") == Type::kBf16x2);
  CHECK(type_from_name("u24") == Type::kNone);
  CHECK(std::string(type_name(Type::kS64)) == "s64");
  CHECK(type_size(Type::kF16x2) == 4);
  CHECK(type_size(Type::kPred) == 0);
  CHECK(is_signed(Type::kS8));
  CHECK_FALSE(is_signed(Type::kB64));
  CHECK(is_float(Type::kTf32));
  CHECK(is_bits(Type::kB8));
  CHECK(is_unsigned(Type::kU64));
}

}  // namespace
}  // namespace softgpu::ptx
