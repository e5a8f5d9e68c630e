// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/instructions.h"

#include <iterator>

#include "tools/softgpu/ptx/instruction_tables.h"

namespace softgpu::ptx {
namespace {

// Words that only narrow a hint or a fence and change nothing here.
bool is_ignored_word(std::string_view opcode, std::string_view word) {
  if (opcode == "griddepcontrol") return word == "wait" || word == "launch_dependents";
  if (opcode == "setmaxnreg") return word == "inc" || word == "dec";
  if (opcode == "createpolicy") {
    return word == "fractional" || word == "range" || word == "cvt" || word.starts_with("L2::");
  }
  if (opcode == "pmevent") return word == "mask";
  if (opcode == "fence" || opcode == "membar") {
    return word == "proxy" || word == "alias" || word == "async" || word == "mbarrier_init" ||
           word == "async::generic";
  }
  return word == "L1" || word == "L2" || word == "tensormap" || word.starts_with("L2::");
}

class Decoder {
 public:
  Decoder(std::string_view opcode, const std::string_view* suffixes, std::size_t count, Form* form)
      : opcode_(opcode),
        suffixes_(suffixes),
        count_(count),
        form_(form),
        inst_(form->instruction) {}

  // Null: decoded.
  const char* run(std::string_view* culprit) {
    const Family* family = find_family();
    if (family == nullptr) return "unknown instruction";
    inst_.op = family->op;
    form_->own_syntax = family->operands == nullptr;
    form_->operands = form_->own_syntax ? "" : family->operands;
    for (; next_ < count_; ++next_) {
      if (!suffix(*family, suffixes_[next_])) {
        *culprit = suffixes_[next_];
        return "unknown suffix";
      }
    }
    if ((seen_ & family->required) != family->required) return "a suffix is missing";
    if (family->types != 0 && inst_.type == Type::kNone) return "the type is missing";
    if (family->source_types != 0 && type_count_ < 2) return "the second type is missing";
    if (type_count_ < 2) inst_.source_type = inst_.type;
    return finish();
  }

 private:
  const Family* find_family() {
    const auto& table = family_table();
    const bool is_pack = opcode_ == "cvt" && count_ > 0 && suffixes_[0] == "pack";
    if (const auto found = table.find(opcode_); found != table.end() && !is_pack) {
      return &found->second;
    }
    std::string name(opcode_);
    const Family* best = nullptr;
    for (std::size_t i = 0; i < count_ && i < 2; ++i) {
      name.append(".").append(suffixes_[i]);
      if (const auto found = table.find(name); found != table.end()) {
        best = &found->second;
        next_ = i + 1;
      }
    }
    return best;
  }

  bool suffix(const Family& family, std::string_view word) {
    if (const Type type = type_from_name(word); type != Type::kNone) return add_type(family, type);
    const auto found = suffix_table().find(word);
    if (found != suffix_table().end()) {
      for (const Meaning& meaning : found->second) {
        if ((meaning.type & family.suffixes) == 0) continue;
        seen_ |= meaning.type;
        apply(family, meaning);
        return true;
      }
    }
    if ((family.suffixes & kCache) != 0 && (word.starts_with("L1::") || word.starts_with("L2::"))) {
      form_->cache_hint |= word == "L2::cache_hint";
      return true;
    }
    if ((family.suffixes & kAtomOp) != 0 && word == "L2::cache_hint") {
      return form_->cache_hint = true;
    }
    return (family.suffixes & kIgnored) != 0 && is_ignored_word(opcode_, word);
  }

  // Scalar video instructions: without parts of words and saturation they are sums of 32 bits, of
  // any signs.
  bool is_video() const { return opcode_ == "vadd" || opcode_ == "vsub"; }

  bool add_type(const Family& family, Type type) {
    const TypeSet bit = 1u << static_cast<unsigned>(type);
    ++type_count_;
    if (type_count_ == 1) {
      inst_.type = type;
      return (family.types & bit) != 0;
    }
    if (type_count_ == 3 && family.op == Opcode::kCvtPack) {
      form_->operands = "duuu";
      return type == Type::kB32;
    }
    if (type_count_ == 3 && is_video()) return (family.source_types & bit) != 0;
    inst_.source_type = type;
    return type_count_ == 2 && (family.source_types & bit) != 0;
  }

  void apply(const Family& family, const Meaning& meaning) {
    const auto value = meaning.value;
    switch (meaning.type) {
      case kRound:
      case kIntRound:
        inst_.rounding = static_cast<Rounding>(value);
        break;
      case kFtz:
        inst_.ftz = true;
        break;
      case kSat:
        inst_.sat = true;
        break;
      case kApprox:
        inst_.approx = true;
        break;
      case kFull:
        inst_.full = true;
        break;
      case kMulMode:
        inst_.mul_mode = static_cast<MulMode>(value);
        break;
      case kCompare:
        inst_.compare = static_cast<Compare>(value);
        break;
      case kBoolean:
        inst_.boolean = static_cast<Boolean>(value);
        break;
      case kSpace:
        inst_.space = static_cast<Space>(value);
        break;
      case kOrder:
        inst_.order = static_cast<Order>(value);
        break;
      case kScope:
        inst_.scope = static_cast<Scope>(value);
        break;
      case kVector:
        inst_.vector = value;
        break;
      case kAtomOp:
        inst_.atom_op = static_cast<AtomOp>(value);
        break;
      case kShuffle:
        inst_.shuffle_mode = static_cast<ShuffleMode>(value);
        break;
      case kVote:
        inst_.vote_mode = static_cast<VoteMode>(value);
        break;
      case kBarrierOp:
        inst_.barrier_op = static_cast<BarrierOp>(value);
        break;
      case kPrmt:
        inst_.prmt_mode = static_cast<PrmtMode>(value);
        break;
      case kTestp:  // also kNoFtz
        if (family.op == Opcode::kTestp) {
          inst_.testp = static_cast<Testp>(value);
        } else {
          inst_.no_ftz = true;
        }
        break;
      case kClamp:
        inst_.wrap = value != 0;
        break;
      case kShift:
        inst_.shift_left = value != 0;
        break;
      case kShiftamt:  // also kUniform
        (family.op == Opcode::kBfind ? has_shiftamt_ : has_uniform_) = true;
        break;
      case kCarry:
        inst_.carry_out = true;
        break;
      case kTo:
        inst_.cvta_to = true;
        break;
      case kSync:
        inst_.sync = true;
        break;
      case kAligned:
        inst_.aligned = true;
        break;
      case kNanMode:
        inst_.nan = true;
        break;
      case kAbsolute:
        (family.op == Opcode::kRedux ? has_redux_abs_ : has_xorsign_) = true;
        break;
      case kRelu:
        inst_.relu = true;
        break;
      case kSatfinite:
        inst_.satfinite = true;
        break;
      default:
        break;  // cache hints
    }
  }

  const char* finish() {
    inst_.shiftamt = has_shiftamt_;
    inst_.uniform = has_uniform_;
    inst_.redux_abs = has_redux_abs_;
    inst_.xorsign_abs = has_xorsign_;
    inst_.carry_in = opcode_ == "addc" || opcode_ == "subc" || opcode_ == "madc";
    if (opcode_ == "bar") inst_.aligned = true;  // bar.x is barrier.x.aligned
    form_->destination_only = opcode_ == "createpolicy";
    switch (inst_.op) {
      case Opcode::kAdd:
      case Opcode::kSub:
        return finish_sum();
      case Opcode::kMul:
      case Opcode::kMad:
        return finish_product();
      case Opcode::kMul24:
      case Opcode::kMad24:
        return inst_.mul_mode == MulMode::kWide ? ".wide does not apply" : nullptr;
      case Opcode::kDiv:
        return finish_division();
      case Opcode::kRcp:
      case Opcode::kSqrt:
        return inst_.approx || inst_.rounding != Rounding::kNone ? nullptr
                                                                 : "a rounding is missing";
      case Opcode::kLop3:
        if (inst_.boolean != Boolean::kNone) form_->operands = "d:aaauP";
        return nullptr;
      case Opcode::kSetp:
      case Opcode::kSet:
        return finish_compare();
      case Opcode::kCvt:
        return finish_conversion();
      case Opcode::kFence:
        if (opcode_ == "membar") inst_.order = Order::kSc;
        return nullptr;
      case Opcode::kVote:
        if ((inst_.vote_mode == VoteMode::kBallot) != (inst_.type == Type::kB32)) {
          return "the type does not fit";
        }
        return nullptr;
      case Opcode::kBarRed:
        if ((inst_.barrier_op == BarrierOp::kPopc) != (inst_.type == Type::kU32)) {
          return "the type does not fit";
        }
        return nullptr;
      case Opcode::kAtom:
      case Opcode::kRed:
        return finish_atomic();
      case Opcode::kRedux:
        return finish_redux();
      default:
        return nullptr;
    }
  }

  const char* finish_sum() {
    if (is_video()) return finish_video();
    if (!is_float(inst_.type)) {
      if (inst_.rounding != Rounding::kNone || inst_.ftz) return "a rounding does not apply";
      if (inst_.sat && inst_.type != Type::kS32) return ".sat needs .s32";
    }
    return nullptr;
  }

  const char* finish_video() {
    if (type_count_ != 3) return "a type is missing";
    inst_.source_type = inst_.type;
    if ((seen_ & kAtomOp) == 0) return nullptr;
    if (inst_.atom_op != AtomOp::kAdd) return "only .add is known after the types";
    form_->operands = "daaa";
    return nullptr;
  }

  const char* finish_product() {
    if (is_float(inst_.type)) {
      if (inst_.mul_mode != MulMode::kNone) return ".lo, .hi and .wide need an integer type";
      if (inst_.op == Opcode::kMad) inst_.op = Opcode::kFma;
      return nullptr;
    }
    if (inst_.rounding != Rounding::kNone || inst_.ftz) return "a rounding does not apply";
    if (inst_.mul_mode == MulMode::kNone) return ".lo, .hi or .wide is missing";
    if (inst_.mul_mode == MulMode::kWide) {
      if (type_size(inst_.type) == 8) return ".wide needs a 16 or 32 bit type";
      form_->operands = inst_.op == Opcode::kMul ? "Daa" : "Daaw";
    }
    return nullptr;
  }

  const char* finish_division() {
    const bool modified =
        inst_.approx || inst_.full || inst_.rounding != Rounding::kNone || inst_.ftz;
    if (!is_float(inst_.type)) return modified ? "a rounding does not apply" : nullptr;
    return modified ? nullptr : "a rounding is missing";
  }

  const char* finish_compare() {
    if (inst_.boolean != Boolean::kNone) {
      form_->operands = inst_.op == Opcode::kSetp ? "p:aaP" : "dssP";
    } else {
      form_->operands = inst_.op == Opcode::kSetp ? "p:aa" : "dss";
    }
    return nullptr;
  }

  const char* finish_conversion() {
    const bool pair = (inst_.type == Type::kF16x2 || inst_.type == Type::kBf16x2 ||
                       inst_.type == Type::kE4m3x2 || inst_.type == Type::kE5m2x2) &&
                      inst_.source_type == Type::kF32;
    form_->operands = pair ? "dss" : "ds";
    form_->own_syntax = false;
    return nullptr;
  }

  const char* finish_atomic() {
    const bool bitwise = inst_.atom_op == AtomOp::kAnd || inst_.atom_op == AtomOp::kOr ||
                         inst_.atom_op == AtomOp::kXor || inst_.atom_op == AtomOp::kExch ||
                         inst_.atom_op == AtomOp::kCas;
    if (inst_.type == Type::kB16 && inst_.atom_op != AtomOp::kCas) return "the type does not fit";
    if (is_bits(inst_.type) != bitwise && !(bitwise && !is_float(inst_.type))) {
      return "the type does not fit";
    }
    if (inst_.op == Opcode::kRed &&
        (inst_.atom_op == AtomOp::kExch || inst_.atom_op == AtomOp::kCas)) {
      return "red has no .exch and no .cas";
    }
    if (inst_.vector > 1 && bitwise) return "a vector needs .add, .min or .max";
    return nullptr;
  }

  const char* finish_redux() {
    const bool bitwise = inst_.atom_op == AtomOp::kAnd || inst_.atom_op == AtomOp::kOr ||
                         inst_.atom_op == AtomOp::kXor;
    const bool sum = inst_.atom_op == AtomOp::kAdd || inst_.atom_op == AtomOp::kMin ||
                     inst_.atom_op == AtomOp::kMax;
    if (!bitwise && !sum) return "unknown operation";
    if (bitwise != (inst_.type == Type::kB32)) return "the type does not fit";
    return nullptr;
  }

  std::string_view opcode_;
  const std::string_view* suffixes_;
  std::size_t count_;
  std::size_t next_ = 0;
  Form* form_;
  Instruction& inst_;
  std::uint32_t seen_ = 0;
  unsigned type_count_ = 0;
  bool has_shiftamt_ = false, has_uniform_ = false, has_redux_abs_ = false, has_xorsign_ = false;
};

constexpr std::string_view kTypeNames[] = {
    "",    "u8",   "u16",  "u32",    "u64",    "s8",    "s16",   "s32",    "s64",
    "b8",  "b16",  "b32",  "b64",    "f16",    "f16x2", "bf16",  "bf16x2", "f32",
    "f64", "pred", "tf32", "e4m3x2", "e5m2x2", "s16x2", "u16x2",
};

}  // namespace

Type type_from_name(std::string_view word) {
  if (word.size() < 2 || word.size() > 6) return Type::kNone;
  for (std::size_t i = 1; i < std::size(kTypeNames); ++i) {
    if (kTypeNames[i] == word) return static_cast<Type>(i);
  }
  return Type::kNone;
}

const char* type_name(Type type) {
  return kTypeNames[static_cast<unsigned>(type)].data();
}

unsigned type_size(Type type) {
  static constexpr std::uint8_t kSizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8,
                                            2, 4, 2, 4, 4, 8, 0, 4, 2, 2, 4, 4};
  static_assert(std::size(kSizes) == std::size(kTypeNames));
  return kSizes[static_cast<unsigned>(type)];
}

bool is_signed(Type type) {
  return type >= Type::kS8 && type <= Type::kS64;
}
bool is_unsigned(Type type) {
  return type >= Type::kU8 && type <= Type::kU64;
}
bool is_bits(Type type) {
  return type >= Type::kB8 && type <= Type::kB64;
}
bool is_float(Type type) {
  return (type >= Type::kF16 && type <= Type::kF64) || type == Type::kTf32;
}

bool decode_form(std::string_view opcode, const std::string_view* suffixes, std::size_t count,
                 Form* form, std::string* error) {
  std::string_view culprit;
  const char* problem = Decoder(opcode, suffixes, count, form).run(&culprit);
  if (problem == nullptr) return true;
  std::string name(opcode);
  for (std::size_t i = 0; i < count; ++i) name.append(".").append(suffixes[i]);
  *error = std::string(problem) + (culprit.empty() ? "" : " '." + std::string(culprit) + "'") +
           (culprit.empty() ? " '" : " in '") + name + "'";
  return false;
}

}  // namespace softgpu::ptx
