// SPDX-License-Identifier: Apache-2.0
// atom and red. Real host atomics, because other grids and the host may use the same memory at the
// same time. Runs on the thread that steps the grid.
#include <algorithm>
#include <cstdio>

#include "tools/softgpu/ptx/address.h"
#include "tools/softgpu/ptx/half.h"

namespace softgpu::ptx {

namespace {

int host_order(Order order) {
  switch (order) {
    case Order::kAcquire:
      return __ATOMIC_ACQUIRE;
    case Order::kRelease:
      return __ATOMIC_RELEASE;
    case Order::kAcqRel:
      return __ATOMIC_ACQ_REL;
    case Order::kSc:
      return __ATOMIC_SEQ_CST;
    default:
      return __ATOMIC_RELAXED;
  }
}

// Replaces the value by f(value) and returns the old one. acq_rel where the caller wants more than
// relaxed: a failed exchange needs only the load.
template <class U, class F>
U update(std::byte* at, Order order, F f) {
  auto* word = reinterpret_cast<typename Words<U>::type*>(at);
  const int success = order == Order::kWeak || order == Order::kVolatile || order == Order::kRelaxed
                          ? __ATOMIC_RELAXED
                          : __ATOMIC_SEQ_CST;
  U old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, f(old), true, success, __ATOMIC_RELAXED)) {
  }
  return old;
}

// The new value for the operations that integers of type T know.
template <class T>
T integer_result(AtomOp op, T old, T b) {
  switch (op) {
    case AtomOp::kAdd:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(b));
    case AtomOp::kMin:
      return std::min(old, b);
    case AtomOp::kMax:
      return std::max(old, b);
    case AtomOp::kAnd:
      return old & b;
    case AtomOp::kOr:
      return old | b;
    case AtomOp::kXor:
      return old ^ b;
    case AtomOp::kInc:
      return old >= b ? T(0) : static_cast<T>(old + 1);
    case AtomOp::kDec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    default:
      return b;
  }
}

template <class T>
std::make_unsigned_t<T> integer_atomic(std::byte* at, const Instruction& i,
                                       std::make_unsigned_t<T> b, std::make_unsigned_t<T> c) {
  using U = std::make_unsigned_t<T>;
  auto* word = reinterpret_cast<typename Words<U>::type*>(at);
  const int order = host_order(i.order);
  switch (i.atom_op) {
    case AtomOp::kAdd:
      return __atomic_fetch_add(word, b, order);
    case AtomOp::kAnd:
      return __atomic_fetch_and(word, b, order);
    case AtomOp::kOr:
      return __atomic_fetch_or(word, b, order);
    case AtomOp::kXor:
      return __atomic_fetch_xor(word, b, order);
    case AtomOp::kExch:
      return __atomic_exchange_n(word, b, order);
    case AtomOp::kCas: {
      U expected = b;
      // The failure order must not be stronger than the success order, nor release.
      if (order == __ATOMIC_RELAXED) {
        __atomic_compare_exchange_n(word, &expected, c, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
      } else {
        __atomic_compare_exchange_n(word, &expected, c, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
      }
      return expected;
    }
    default:
      return update<U>(at, i.order, [&](U old) {
        return static_cast<U>(integer_result<T>(i.atom_op, static_cast<T>(old), static_cast<T>(b)));
      });
  }
}

// --- floating operations on the bits
// ---------------------------------------------------------------------------------

struct FloatRule {
  AtomOp op;
  bool flush_subnormals;
};

std::uint32_t float_result(const FloatRule& rule, std::uint32_t old, std::uint32_t b) {
  float x = std::bit_cast<float>(old);
  float y = std::bit_cast<float>(b);
  if (rule.op == AtomOp::kMin)
    return std::bit_cast<std::uint32_t>(float_extreme<false, false>(x, y));
  if (rule.op == AtomOp::kMax)
    return std::bit_cast<std::uint32_t>(float_extreme<true, false>(x, y));
  if (!rule.flush_subnormals) return std::bit_cast<std::uint32_t>(canonical(x + y));
  return std::bit_cast<std::uint32_t>(canonical(flush(flush(x) + flush(y))));
}

std::uint64_t double_result(const FloatRule& rule, std::uint64_t old, std::uint64_t b) {
  const auto x = std::bit_cast<double>(old);
  const auto y = std::bit_cast<double>(b);
  if (rule.op == AtomOp::kMin)
    return std::bit_cast<std::uint64_t>(float_extreme<false, false>(x, y));
  if (rule.op == AtomOp::kMax)
    return std::bit_cast<std::uint64_t>(float_extreme<true, false>(x, y));
  return std::bit_cast<std::uint64_t>(x + y);
}

template <class H>
std::uint16_t half_result(const FloatRule& rule, std::uint16_t old, std::uint16_t b) {
  if (rule.op == AtomOp::kMin) return half_extreme<H, false, false>(H{old}, H{b}).bits;
  if (rule.op == AtomOp::kMax) return half_extreme<H, true, false>(H{old}, H{b}).bits;
  return half_add(H{old}, H{b}).bits;
}

template <class H>
std::uint32_t pair_result(const FloatRule& rule, std::uint32_t old, std::uint32_t b) {
  const std::uint32_t low =
      half_result<H>(rule, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
  const std::uint32_t high = half_result<H>(rule, static_cast<std::uint16_t>(old >> 16),
                                            static_cast<std::uint16_t>(b >> 16));
  return low | (high << 16);
}

// How one element is updated; the bits of old value, operands and result.
template <class U>
using Apply = U (*)(std::byte* at, const Instruction& i, U b, U c, bool global);

template <class U, U (*kResult)(const FloatRule&, U, U)>
U float_atomic(std::byte* at, const Instruction& i, U b, U, bool global) {
  // atom.add.f32 flushes subnormals in global memory and keeps them in shared memory.
  const FloatRule rule{i.atom_op, global && i.type == Type::kF32 && i.atom_op == AtomOp::kAdd};
  return update<U>(at, i.order, [&](U old) { return kResult(rule, old, b); });
}
template <class T>
std::make_unsigned_t<T> plain_atomic(std::byte* at, const Instruction& i, std::make_unsigned_t<T> b,
                                     std::make_unsigned_t<T> c, bool) {
  return integer_atomic<T>(at, i, b, c);
}

template <class U, Space kSpace, Apply<U> kApply>
void atomic(Exec& x, const Op& op, Mask mask) {
  const Instruction& i = *op.source;
  const unsigned count = i.vector;
  Access<kSpace, AccessKind::kAtomic> access(x, op, static_cast<unsigned>(sizeof(U)) * count);
  access.note(mask);
  const Ref* refs = x.frame->code->refs.data() + op.list;
  const Ref* sources = refs + i.dst_count + 1;  // after the address
  ++x.warp->polls;
  const bool keeps = i.op == Opcode::kAtom && i.dst_count > 0;
  while (mask != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    mask &= mask - 1;
    std::byte* at = access.at(lane);
    if (at == nullptr) return;
    for (unsigned k = 0; k < count; ++k) {
      const U b = load_lane<U>(x.src(sources[k]), lane);
      const U c = i.atom_op == AtomOp::kCas ? load_lane<U>(x.src(sources[count]), lane) : U{0};
      const U old = kApply(at + k * sizeof(U), i, b, c, access.is_global());
      if (keeps) store_lane<U>(x.dst(refs[k]), lane, old);
    }
  }
}

template <class U, Apply<U> kApply>
Handler pick_space(const Instruction& i) {
  switch (i.space) {
    case Space::kGeneric:
      return atomic<U, Space::kGeneric, kApply>;
    case Space::kGlobal:
      return atomic<U, Space::kGlobal, kApply>;
    case Space::kShared:
      return atomic<U, Space::kShared, kApply>;
    default:
      return nullptr;
  }
}

template <class U, U (*kResult)(const FloatRule&, U, U)>
Handler pick_float(const Instruction& i) {
  return pick_space<U, float_atomic<U, kResult>>(i);
}
template <class T>
Handler pick_integer(const Instruction& i) {
  return pick_space<std::make_unsigned_t<T>, plain_atomic<T>>(i);
}

}  // namespace

Handler select_atomic(const Instruction& i) {
  if (i.op != Opcode::kAtom && i.op != Opcode::kRed) return nullptr;
  const bool exchanges = i.atom_op == AtomOp::kCas || i.atom_op == AtomOp::kExch;
  if (is_float(i.type) && !exchanges) {
    switch (i.type) {
      case Type::kF32:
        return pick_float<std::uint32_t, float_result>(i);
      case Type::kF64:
        return pick_float<std::uint64_t, double_result>(i);
      case Type::kF16:
        return pick_float<std::uint16_t, half_result<Half>>(i);
      case Type::kBf16:
        return pick_float<std::uint16_t, half_result<BFloat>>(i);
      case Type::kF16x2:
        return pick_float<std::uint32_t, pair_result<Half>>(i);
      case Type::kBf16x2:
        return pick_float<std::uint32_t, pair_result<BFloat>>(i);
      default:
        return nullptr;
    }
  }
  switch (type_size(i.type)) {
    case 2:
      return exchanges ? pick_integer<std::uint16_t>(i) : nullptr;
    case 4:
      return is_signed(i.type) ? pick_integer<std::int32_t>(i) : pick_integer<std::uint32_t>(i);
    case 8:
      return is_signed(i.type) ? pick_integer<std::int64_t>(i) : pick_integer<std::uint64_t>(i);
    default:
      return nullptr;
  }
}

}  // namespace softgpu::ptx
