// SPDX-License-Identifier: Apache-2.0
// The decoded form of PTX: what the parser makes and the executor runs. Everything is resolved:
// registers are slots, labels are instruction indices, symbols are offsets, variables or functions.
// Plain data, immutable after parsing, so any thread may read it. It must never hold anything that
// belongs to one run of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/softgpu/ptx/module.h"

namespace softgpu::ptx {

class Translation;  // code.h

// One per family; types and modifiers are fields of Instruction. Comments give the operands: dsts
// <- srcs.
// clang-format off
enum class Opcode : std::uint8_t {
  kNop,          // prefetch, discard, applypriority, griddepcontrol, pmevent: nothing to do
  // Integer and floating arithmetic. `type` is the operation type.
  kAbs, kNeg,    // d <- a
  kAdd, kSub,    // d <- a, b        carry_in / carry_out for addc, add.cc, subc, sub.cc
  kMul,          // d <- a, b        mul_mode for integers; kWide: d is twice as wide as `type`; kNone: floating
  kMad,          // d <- a, b, c     integers, mul_mode; kWide: c and d twice as wide; carry_in / carry_out. sat: .hi.sat.s32
  kMul24, kMad24,  // d <- a, b[, c] mul_mode kLo / kHi, s32 or u32
  kFma,          // d <- a, b, c     floating, also mad.f32 and mad.f64
  kDiv,          // d <- a, b        approx, full or rounding for floating
  kRem,          // d <- a, b
  kMin, kMax,    // d <- a, b        nan, xorsign_abs, relu
  kSad,          // d <- a, b, c     c + |a - b|
  kPopc, kClz,   // d(u32) <- a
  kBfind,        // d(u32) <- a      shiftamt
  kFns,          // d <- mask, base(b32), offset(s32)
  kBrev,         // d <- a
  kBfe,          // d <- a, pos(u32), len(u32)
  kBfi,          // d <- a, b, pos(u32), len(u32)
  kBmsk,         // d <- pos, len    clamp or wrap
  kSzext,        // d <- a, bits     clamp or wrap
  kDp4a,         // d <- a, b, c     type = type of a, source_type = type of b; c and d are s32 unless both are u32
  kDp2a,         // likewise; mul_mode kLo / kHi picks the half of b
  kShl, kShr,    // d <- a, n(u32)   shr: arithmetic for signed types
  kShf,          // d <- lo, hi, n   shift_left, clamp or wrap
  kAnd, kOr, kXor,  // d <- a, b     type may be kPred: predicate operands
  kNot,          // d <- a           type may be kPred
  kCnot,         // d <- a
  kLop3,         // d[, p] <- a, b, c, lut[, q]   with p: p = (d != 0) boolean q
  kPrmt,         // d <- a, b, selector    prmt_mode
  kSelp,         // d <- a, b, p
  kSlct,         // d <- a, b, c     source_type (s32 or f32) is the type of c
  kSetp,         // p[, q] <- a, b[, c]    compare, boolean with c; q = !compare boolean c; type = source_type = of a, b
  kSet,          // d <- a, b[, c]   type of d: u32, s32, f32, f16..; source_type of a and b
  kCopysign,     // d <- a, b        sign of a, magnitude of b
  kTestp,        // p <- a           testp
  kRcp, kSqrt, kRsqrt,   // d <- a   approx or rounding
  kSin, kCos, kLg2, kEx2, kTanh,  // d <- a
  // Moves and conversions.
  kMov,          // d <- a           type may be kPred
  kPack,         // d <- a0..an-1    mov.b64 d, {a0, a1}: element width = type width / n, a0 lowest
  kUnpack,       // d0..dn-1 <- a    a dst may be kSink
  kCvt,          // d <- a           type of d, source_type of a; rounding, ftz, sat, relu
                 //    packed results (type f16x2, bf16x2 from f32): d <- a (upper half), b (lower half)
  kCvtPack,      // d <- a, b[, c]   cvt.pack: type of d elements (source_type s32)
  kCvta,         // d <- a           space; cvta_to: generic to space. type u32 / u64
  kIsspacep,     // p <- a           space
  // Memory. `type` is the element type, vector the count of elements.
  kLd,           // d0..dn-1 <- address            also ldu, ld.global.nc. space, order, scope. A dst may be kSink
  kSt,           // - <- address, s0..sn-1
  kAtom,         // d (or d0..dn-1, may be kSink) <- address, b0..bn-1[, c]      atom_op; kCas: b compare, c new value
  kRed,          // - <- address, b0..bn-1
  kFence,        // membar, fence    order, scope
  // Warp operations. `sync` false: the pre-Volta form, without the mask operand (all active lanes).
  kShfl,         // d[, p] <- a, b, c[, mask]      shuffle_mode; c = clamp | segment mask << 8
  kVote,         // p (kBallot: d) <- a(pred)[, mask]   vote_mode
  kMatchAny,     // d <- a, mask     type b32 or b64
  kMatchAll,     // d[, p] <- a, mask
  kRedux,        // d <- a, mask     atom_op (add, min, max, and, or, xor); f32 min/max: abs in redux_abs, nan
  kActivemask,   // d <-
  kElect,        // d[, p] <- mask   d may be kSink
  kBarWarpSync,  // - <- mask
  // CTA barriers. src 0 the barrier id, src 1 the thread count or kNone.
  kBarSync,      // - <- id, count
  kBarArrive,    // - <- id, count
  kBarRed,       // p (kPopc: d) <- id, count, a(pred)   barrier_op
  // Control.
  kBra,          // - <-             target, reconverge
  kBrx,          // - <- index(u32)  target = index in Function::tables, reconverge
  kCall,         // - <-             target = index in Function::calls
  kRet, kExit, kTrap, kBrkpt,
  kNanosleep,    // - <- ns(u32)
};
// clang-format on

enum class Type : std::uint8_t {
  kNone,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kB8,
  kB16,
  kB32,
  kB64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kPred,
  kTf32,
  kE4m3x2,
  kE5m2x2,
  kS16x2,
  kU16x2,
};

// Bytes of one element; 0 for kNone and kPred.
unsigned type_size(Type type);
bool is_signed(Type type);         // kS8..kS64
bool is_unsigned(Type type);       // kU8..kU64
bool is_bits(Type type);           // kB8..kB64
bool is_float(Type type);          // f16, f16x2, bf16, bf16x2, f32, f64, tf32
const char* type_name(Type type);  // "u32"

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };
enum class Rounding : std::uint8_t { kNone, kRn, kRz, kRm, kRp, kRna, kRni, kRzi, kRmi, kRpi };
enum class MulMode : std::uint8_t { kNone, kLo, kHi, kWide };
// lo, ls, hi, hs of unsigned types are decoded as lt, le, gt, ge. The ..u forms are true when an
// operand is NaN.
enum class Compare : std::uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
};
enum class Boolean : std::uint8_t { kNone, kAnd, kOr, kXor };
enum class Order : std::uint8_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc };
enum class Scope : std::uint8_t { kNone, kCta, kCluster, kGpu, kSys };
enum class AtomOp : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };
enum class ShuffleMode : std::uint8_t { kUp, kDown, kBfly, kIdx };
enum class VoteMode : std::uint8_t { kAll, kAny, kUni, kBallot };
enum class BarrierOp : std::uint8_t { kPopc, kAnd, kOr };
enum class PrmtMode : std::uint8_t { kDefault, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
enum class Testp : std::uint8_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kDynamicSmemSize,
  kTotalSmemSize,
  kAggrSmemSize,
  // Clusters; with no cluster launch a cluster is one CTA.
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kCurrentGraphExec,
  kPm,      // Operand::value = counter number
  kEnvReg,  // Operand::value = number, 0..31
};

// An address operand is one of the kAt* kinds.
enum class OperandKind : std::uint8_t {
  kNone,
  kSink,  // `_` as destination
  kReg,   // index = register slot
  kPred,  // index = predicate slot; negate: !p
  kImm,   // value = bits, already of the operand's type (low bits; the rest is 0). Predicates: 0
          // or 1.
          //   Also addresses of .shared variables (offset in the CTA's window), of entry parameters
          //   (offset in the parameter buffer) and of functions (kCodeWindow + index).
  kSpecial,    // index = Special, value = its number where it has one
  kVariable,   // address of variables[index] + value (global or const)
  kFrame,      // address in the local space: frame base + value
  kDynShared,  // offset in the shared space: Function::dynamic_shared_offset of the running entry +
               // value
  kAtReg,      // [slot index + value]
  kAtAbs,      // [value] in the instruction's space
  kAtVariable,   // [variables[index].address + value]
  kAtFrame,      // [frame base + value], space kLocal
  kAtDynShared,  // [dynamic shared start + value], space kShared
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  bool negate = false;
  std::uint32_t index = 0;
  std::uint64_t value = 0;  // immediate bits, or a signed offset in two's complement
};

inline constexpr std::int32_t kNoGuard = -1;

// Slots are reused by liveness per lane: writing must touch active lanes only. A destination never
// shares a slot with a source of the same instruction, or with another destination, unless the PTX
// names the same register.
struct Instruction {
  Opcode op = Opcode::kNop;
  Type type = Type::kNone;
  Type source_type =
      Type::kNone;  // where it differs from `type` (kCvt, kSet, kSlct, kDp4a); else equal to `type`
  std::uint8_t dst_count = 0;
  std::uint8_t src_count = 0;
  std::uint8_t vector = 1;  // elements per lane: 1, 2, 4, 8
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNone;
  MulMode mul_mode = MulMode::kNone;
  Compare compare = Compare::kEq;
  Boolean boolean = Boolean::kNone;
  Order order = Order::kWeak;
  Scope scope = Scope::kNone;
  AtomOp atom_op = AtomOp::kAdd;
  ShuffleMode shuffle_mode = ShuffleMode::kIdx;
  VoteMode vote_mode = VoteMode::kAll;
  BarrierOp barrier_op = BarrierOp::kPopc;
  PrmtMode prmt_mode = PrmtMode::kDefault;
  Testp testp = Testp::kFinite;
  bool ftz : 1 = false;
  bool sat : 1 = false;
  bool approx : 1 = false;
  bool full : 1 = false;  // div.full
  bool nan : 1 = false;   // min.NaN, max.NaN
  bool xorsign_abs : 1 = false;
  bool relu : 1 = false;
  bool carry_in : 1 = false;   // addc, subc, madc
  bool carry_out : 1 = false;  // .cc
  bool shiftamt : 1 = false;
  bool wrap : 1 = false;        // shf, bmsk, szext: wrap, else clamp
  bool shift_left : 1 = false;  // shf.l
  bool cvta_to : 1 = false;
  bool sync : 1 = false;     // shfl.sync, vote.sync ..
  bool aligned : 1 = false;  // bar.sync, barrier.sync.aligned: all threads of the warp together
  bool uniform : 1 = false;  // bra.uni, call.uni, ret.uni
  bool no_ftz : 1 = false;   // atom.add.noftz
  bool redux_abs : 1 = false;
  bool satfinite : 1 = false;     // cvt.satfinite
  bool guard_negate : 1 = false;  // @!p
  std::int32_t guard = kNoGuard;  // predicate slot
  std::uint32_t operands =
      0;  // first in Function::operands: dst_count destinations, then src_count sources
  std::uint32_t target = 0;  // kBra: instruction index; kBrx: table; kCall: call descriptor
  std::uint32_t reconverge =
      0;  // kBra, kBrx: immediate post-dominator; code.size() when only the exit is
  std::uint32_t line = 0;  // in the PTX text
};

// Functions the device supplies.
enum class Builtin : std::uint8_t { kNone, kVprintf, kAssertfail, kMalloc, kFree, kSetConditional };

// A formal parameter or result of a .func, in the callee: in its frame (kFrame, value = offset) or
// a register (kReg, kPred). For an entry: value = offset in the parameter buffer.
struct Formal {
  Operand place;
  std::uint32_t size = 0;  // bytes
  std::uint32_t align = 1;
};

// An argument or result of a call, in the caller: kFrame (a .param variable), kReg, kPred, kImm
// (arguments only) or kSink.
struct CallOperand {
  Operand place;
  std::uint32_t size = 0;  // bytes; for a register or immediate 0: take the callee's Formal
};

struct Call {
  bool indirect = false;
  std::uint32_t function = 0;  // direct: index in Module::Impl::functions
  Operand pointer;             // indirect: kReg holding kCodeWindow + function index
  std::vector<CallOperand> results;
  std::vector<CallOperand> arguments;
};

// A .func or .entry. Local memory of a thread is a stack of frames of frame_bytes each, which hold
// the .local variables, the .param variables of calls, and the formals. A call copies arguments
// from the caller's frame to the callee's, a return copies results back. Where PTX says .param in a
// .func, the instruction has space kLocal and a frame address.
struct Function {
  std::string name;
  std::uint32_t index = 0;  // in Module::Impl::functions
  bool entry = false;
  bool defined = false;  // false: declared only; see builtin
  bool no_return = false;
  Builtin builtin = Builtin::kNone;
  std::vector<Instruction> code;  // control never falls off the end
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<std::vector<std::uint32_t>> tables;  // brx.idx: instruction indices
  std::vector<Formal> parameters;
  std::vector<Formal> results;
  std::uint32_t slots = 0;        // 64-bit per lane register slots
  std::uint32_t predicates = 0;   // predicate masks
  std::uint32_t frame_bytes = 0;  // a multiple of frame_align
  std::uint32_t frame_align = 16;
  std::uint32_t dynamic_shared_offset =
      0;                   // entries: where dynamic shared memory starts in the CTA's window
  bool recursive = false;  // can reach itself; a call through a pointer reaches any function whose
                           // address is taken

  const Operand* dsts(const Instruction& i) const { return operands.data() + i.operands; }
  const Operand* srcs(const Instruction& i) const {
    return operands.data() + i.operands + i.dst_count;
  }
};

struct Module::Impl {
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Kernel> kernels;
  std::vector<Variable> variables;
  // The executor's form of all this, made on first use.
  mutable std::once_flag translate_once;
  mutable std::shared_ptr<Translation> translation;
};

}  // namespace softgpu::ptx
