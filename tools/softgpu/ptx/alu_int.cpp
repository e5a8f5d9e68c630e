// SPDX-License-Identifier: Apache-2.0
// Picks the handlers of the integer, bit-field and logic instructions. The semantics are in alu.h.
#include "tools/softgpu/ptx/alu.h"
#include "tools/softgpu/ptx/alu_lanes.h"

namespace softgpu::ptx {

namespace {

using U32 = std::uint32_t;

template <class T, auto kFunction>
constexpr Handler kUnary = unary<true, T, T, Fn<kFunction>>;
template <class T, auto kFunction>
constexpr Handler kBinary = binary<true, T, T, T, Fn<kFunction>>;
template <class T, auto kFunction>
constexpr Handler kTernary = ternary<true, T, T, T, T, Fn<kFunction>>;

// Calls f with a value of the C++ type of an integer type suffix; bits types count as unsigned.
template <class F>
Handler with_integer(Type type, F f) {
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return f(std::uint16_t{});
    case Type::kS16:
      return f(std::int16_t{});
    case Type::kU32:
    case Type::kB32:
      return f(std::uint32_t{});
    case Type::kS32:
      return f(std::int32_t{});
    case Type::kU64:
    case Type::kB64:
      return f(std::uint64_t{});
    case Type::kS64:
      return f(std::int64_t{});
    default:
      return nullptr;
  }
}
template <class F>
Handler with_bits(Type type, F f) {
  switch (type_size(type)) {
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return nullptr;
  }
}
template <class F>
Handler with_word(Type type, F f) {  // u32 or s32
  if (type == Type::kS32) return f(std::int32_t{});
  if (type == Type::kU32 || type == Type::kB32) return f(std::uint32_t{});
  return nullptr;
}

// --- carry chains
// -----------------------------------------------------------------------------------------------------

template <class T, bool kSub>
void carry_chain(Exec& x, const Op& op, Mask mask) {
  Row& d = x.dst(op.d);
  const Row& a = x.src(op.a);
  const Row& b = x.src(op.b);
  const bool in = op.source->carry_in;
  Mask carry = x.frame->carry;
  for_each_lane(mask, [&](unsigned lane) {
    const Mask bit = Mask{1} << lane;
    bool out = false;
    const bool carry_in = in && (carry & bit) != 0;
    const T left = load_lane<T>(a, lane);
    const T right = load_lane<T>(b, lane);
    store_lane<T>(d, lane,
                  kSub ? sub_with_borrow(left, right, carry_in, &out)
                       : add_with_carry(left, right, carry_in, &out));
    carry = out ? carry | bit : carry & ~bit;
  });
  if (op.source->carry_out) x.frame->carry = carry;
}

template <class T, bool kHigh>
void mad_carry(Exec& x, const Op& op, Mask mask) {
  using U = Unsigned<T>;
  Row& d = x.dst(op.d);
  const bool in = op.source->carry_in;
  Mask carry = x.frame->carry;
  for_each_lane(mask, [&](unsigned lane) {
    const Mask bit = Mask{1} << lane;
    const T a = load_lane<T>(x.src(op.a), lane);
    const T b = load_lane<T>(x.src(op.b), lane);
    const U product = static_cast<U>(kHigh ? int_mul_hi(a, b) : int_mul_lo(a, b));
    bool out = false;
    const U sum =
        add_with_carry(product, load_lane<U>(x.src(op.c), lane), in && (carry & bit) != 0, &out);
    store_lane<U>(d, lane, sum);
    carry = out ? carry | bit : carry & ~bit;
  });
  if (op.source->carry_out) x.frame->carry = carry;
}

// --- functors without a plain function
// ------------------------------------------------------------------------------

template <class T, MulMode kMode>
struct Multiply {
  auto operator()(T a, T b) const {
    if constexpr (kMode == MulMode::kHi) {
      return int_mul_hi(a, b);
    } else if constexpr (kMode == MulMode::kWide) {
      return int_mul_wide(a, b);
    } else {
      return int_mul_lo(a, b);
    }
  }
};
template <class T, MulMode kMode>
struct MultiplyAdd {
  template <class C>
  C operator()(T a, T b, C c) const {
    return int_add<C>(Multiply<T, kMode>{}(a, b), c);
  }
};
template <class T, bool kHigh>
struct Multiply24 {
  T operator()(T a, T b) const { return kHigh ? mul24_hi(a, b) : mul24_lo(a, b); }
  T operator()(T a, T b, T c) const { return int_add(operator()(a, b), c); }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};

// --- predicates
// -------------------------------------------------------------------------------------------------------

template <class F>
void logic_predicate(Exec& x, const Op& op, Mask mask) {
  x.set_predicate(op.d, mask, F{}(x.predicate(op.a), x.predicate(op.b)));
}
void not_predicate(Exec& x, const Op& op, Mask mask) {
  x.set_predicate(op.d, mask, ~x.predicate(op.a));
}

template <class F>
Handler logic(const Instruction& i) {
  if (i.type == Type::kPred) return logic_predicate<F>;
  return with_bits(i.type, [](auto t) -> Handler {
    using T = decltype(t);
    return binary<true, T, T, T, F>;
  });
}

// --- operations with fields of the instruction
// ------------------------------------------------------------------------

void lop3(Exec& x, const Op& op, Mask mask) {
  const Row& lut = x.src(op.e);
  Row& d = x.dst(op.d);
  map_lanes<true, U32, U32, U32, U32, U32>(mask, Fn<lookup_logic>{}, d, x.src(op.a), x.src(op.b),
                                           x.src(op.c), lut);
  if (!op.has_p) return;
  const Mask nonzero = test_lanes<U32>(
      mask, [](U32 v) { return v != 0; }, d);
  const Mask q = x.predicate(x.frame->code->refs[op.list + op.source->dst_count + 4]);
  x.set_predicate(op.p, mask,
                  op.source->boolean == Boolean::kOr    ? nonzero | q
                  : op.source->boolean == Boolean::kXor ? nonzero ^ q
                                                        : nonzero & q);
}

template <PermuteMode kMode>
struct Permute {
  U32 operator()(U32 a, U32 b, U32 c) const {
    return permute_bytes(a, b, permute_selector(kMode, c));
  }
};

Handler select_prmt(PrmtMode mode) {
  switch (mode) {
    case PrmtMode::kDefault:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kIndex>>;
    case PrmtMode::kF4e:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kF4e>>;
    case PrmtMode::kB4e:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kB4e>>;
    case PrmtMode::kRc8:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kRc8>>;
    case PrmtMode::kEcl:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kEcl>>;
    case PrmtMode::kEcr:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kEcr>>;
    case PrmtMode::kRc16:
      return ternary<true, U32, U32, U32, U32, Permute<PermuteMode::kRc16>>;
  }
  return nullptr;
}

template <bool kA, bool kB, bool kHigh>
struct Dot2 {
  U32 operator()(U32 a, U32 b, U32 c) const { return dot2<kA, kB>(a, b, c, kHigh); }
};

template <bool kA, bool kB>
Handler dot_handler(const Instruction& i) {
  if (i.op == Opcode::kDp4a) return kTernary<U32, dot4<kA, kB>>;
  if (i.mul_mode == MulMode::kHi) return ternary<true, U32, U32, U32, U32, Dot2<kA, kB, true>>;
  return ternary<true, U32, U32, U32, U32, Dot2<kA, kB, false>>;
}

Handler select_dot(const Instruction& i) {
  const bool a = is_signed(i.type);
  const bool b = is_signed(i.source_type);
  if (a) return b ? dot_handler<true, true>(i) : dot_handler<true, false>(i);
  return b ? dot_handler<false, true>(i) : dot_handler<false, false>(i);
}

Handler select_shf(const Instruction& i) {
  if (i.shift_left) {
    return i.wrap ? kTernary<U32, funnel_shift<true, true>>
                  : kTernary<U32, funnel_shift<true, false>>;
  }
  return i.wrap ? kTernary<U32, funnel_shift<false, true>>
                : kTernary<U32, funnel_shift<false, false>>;
}

// Sixteen-bit lanes of add, min and max .u16x2 / .s16x2.
template <class T, auto kFunction>
struct Pair16 {
  U32 operator()(U32 a, U32 b) const {
    const auto low = static_cast<std::uint16_t>(kFunction(static_cast<T>(a), static_cast<T>(b)));
    const auto high =
        static_cast<std::uint16_t>(kFunction(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return U32{low} | (U32{high} << 16);
  }
};

template <class T>
Handler select_pair(const Instruction& i) {
  switch (i.op) {
    case Opcode::kAdd:
      return binary<true, U32, U32, U32, Pair16<T, int_add<T>>>;
    case Opcode::kSub:
      return binary<true, U32, U32, U32, Pair16<T, int_sub<T>>>;
    case Opcode::kMin:
      return binary<true, U32, U32, U32, Pair16<T, int_min<T>>>;
    case Opcode::kMax:
      return binary<true, U32, U32, U32, Pair16<T, int_max<T>>>;
    default:
      return nullptr;
  }
}

// --- selection
// --------------------------------------------------------------------------------------------------------

Handler select_add(const Instruction& i) {
  const bool sub = i.op == Opcode::kSub;
  if (i.carry_in || i.carry_out) {
    return with_bits(i.type, [&](auto t) -> Handler {
      using T = decltype(t);
      return sub ? carry_chain<T, true> : carry_chain<T, false>;
    });
  }
  if (i.sat) {
    if (i.type != Type::kS32) return nullptr;
    return sub ? binary<true, std::int32_t, std::int32_t, std::int32_t, Fn<sub_sat>>
               : binary<true, std::int32_t, std::int32_t, std::int32_t, Fn<add_sat>>;
  }
  return with_bits(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    return sub ? kBinary<T, int_sub<T>> : kBinary<T, int_add<T>>;
  });
}

Handler select_mul(const Instruction& i) {
  return with_integer(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (i.mul_mode == MulMode::kHi) return binary<true, T, T, T, Multiply<T, MulMode::kHi>>;
    if (i.mul_mode == MulMode::kLo) return binary<true, T, T, T, Multiply<T, MulMode::kLo>>;
    if constexpr (sizeof(T) < 8) {
      using W = typename Wider<T>::type;
      if (i.mul_mode == MulMode::kWide) return binary<true, W, T, T, Multiply<T, MulMode::kWide>>;
    }
    return nullptr;
  });
}

Handler select_mad(const Instruction& i) {
  if (i.sat) {
    if (i.type != Type::kS32 || i.mul_mode != MulMode::kHi) return nullptr;
    return kTernary<std::int32_t, mad_hi_sat>;
  }
  return with_integer(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (i.carry_in || i.carry_out) {
      return i.mul_mode == MulMode::kHi ? mad_carry<T, true> : mad_carry<T, false>;
    }
    if (i.mul_mode == MulMode::kHi) return ternary<true, T, T, T, T, MultiplyAdd<T, MulMode::kHi>>;
    if (i.mul_mode == MulMode::kLo) return ternary<true, T, T, T, T, MultiplyAdd<T, MulMode::kLo>>;
    if constexpr (sizeof(T) < 8) {
      using W = typename Wider<T>::type;
      if (i.mul_mode == MulMode::kWide)
        return ternary<true, W, T, T, W, MultiplyAdd<T, MulMode::kWide>>;
    }
    return nullptr;
  });
}

Handler select_24(const Instruction& i) {
  const bool high = i.mul_mode == MulMode::kHi;
  if (i.sat) {
    if (i.type != Type::kS32 || !high || i.op != Opcode::kMad24) return nullptr;
    return kTernary<std::int32_t, mad24_hi_sat>;
  }
  return with_word(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (i.op == Opcode::kMul24) {
      return high ? binary<true, T, T, T, Multiply24<T, true>>
                  : binary<true, T, T, T, Multiply24<T, false>>;
    }
    return high ? ternary<true, T, T, T, T, Multiply24<T, true>>
                : ternary<true, T, T, T, T, Multiply24<T, false>>;
  });
}

// The families that exist for every integer type with the same shape.
Handler select_plain(const Instruction& i) {
  return with_integer(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    switch (i.op) {
      case Opcode::kAbs:
        return kUnary<T, int_abs<T>>;
      case Opcode::kNeg:
        return kUnary<T, int_neg<T>>;
      case Opcode::kDiv:
        return binary<false, T, T, T, Fn<int_div<T>>>;
      case Opcode::kRem:
        return binary<false, T, T, T, Fn<int_rem<T>>>;
      case Opcode::kMin:
        return kBinary<T, int_min<T>>;
      case Opcode::kMax:
        return kBinary<T, int_max<T>>;
      case Opcode::kSad:
        return kTernary<T, int_sad<T>>;
      case Opcode::kShr:
        return binary<true, T, T, U32, Fn<shift_right<T>>>;
      default:
        return nullptr;
    }
  });
}

Handler select_bits(const Instruction& i) {
  return with_bits(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    switch (i.op) {
      case Opcode::kPopc:
        return unary<true, U32, T, Fn<population<T>>>;
      case Opcode::kClz:
        return unary<true, U32, T, Fn<leading_zeros<T>>>;
      case Opcode::kBrev:
        return kUnary<T, reverse_bits<T>>;
      case Opcode::kBfi:
        return quaternary<true, T, T, T, U32, U32, Fn<insert_field<T>>>;
      case Opcode::kShl:
        return binary<true, T, T, U32, Fn<shift_left<T>>>;
      case Opcode::kNot:
        return unary<true, T, T, Not>;
      case Opcode::kCnot:
        return unary<true, T, T, Cnot>;
      default:
        return nullptr;
    }
  });
}

Handler select_fields(const Instruction& i) {
  return with_integer(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (i.op == Opcode::kBfe) return ternary<true, T, T, U32, U32, Fn<extract_field<T>>>;
    return i.shiftamt ? unary<true, U32, T, Fn<find_leading<T, true>>>
                      : unary<true, U32, T, Fn<find_leading<T, false>>>;
  });
}

Handler select_szext(const Instruction& i) {
  return with_word(i.type, [&](auto t) -> Handler {
    using T = decltype(t);
    return i.wrap ? binary<true, T, T, U32, Fn<extend_width<T, true>>>
                  : binary<true, T, T, U32, Fn<extend_width<T, false>>>;
  });
}

}  // namespace

Handler select_integer(const Instruction& i) {
  if (i.type == Type::kU16x2) return select_pair<std::uint16_t>(i);
  if (i.type == Type::kS16x2) return select_pair<std::int16_t>(i);
  if (is_float(i.type)) return nullptr;
  switch (i.op) {
    case Opcode::kAdd:
    case Opcode::kSub:
      return select_add(i);
    case Opcode::kMul:
      return select_mul(i);
    case Opcode::kMad:
      return select_mad(i);
    case Opcode::kMul24:
    case Opcode::kMad24:
      return select_24(i);
    case Opcode::kAbs:
    case Opcode::kNeg:
    case Opcode::kDiv:
    case Opcode::kRem:
    case Opcode::kMin:
    case Opcode::kMax:
    case Opcode::kSad:
    case Opcode::kShr:
      return select_plain(i);
    case Opcode::kNot:
      return i.type == Type::kPred ? not_predicate : select_bits(i);
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBrev:
    case Opcode::kBfi:
    case Opcode::kShl:
    case Opcode::kCnot:
      return select_bits(i);
    case Opcode::kBfe:
    case Opcode::kBfind:
      return select_fields(i);
    case Opcode::kSzext:
      return select_szext(i);
    case Opcode::kFns:
      return ternary<true, U32, U32, U32, std::int32_t, Fn<find_nth_set>>;
    case Opcode::kBmsk:
      return i.wrap ? kBinary<U32, bit_mask<true>> : kBinary<U32, bit_mask<false>>;
    case Opcode::kDp4a:
    case Opcode::kDp2a:
      return select_dot(i);
    case Opcode::kShf:
      return select_shf(i);
    case Opcode::kAnd:
      return logic<And>(i);
    case Opcode::kOr:
      return logic<Or>(i);
    case Opcode::kXor:
      return logic<Xor>(i);
    case Opcode::kLop3:
      return lop3;
    case Opcode::kPrmt:
      return select_prmt(i.prmt_mode);
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
