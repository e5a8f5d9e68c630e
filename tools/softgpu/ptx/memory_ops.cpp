// SPDX-License-Identifier: Apache-2.0
// ld, st and fences for a warp. Runs on the thread that steps the grid; the memory itself may be
// shared with the host and with other grids.
#include <cstdio>

#include "tools/softgpu/ptx/address.h"

namespace softgpu::ptx {

namespace {

template <class T, Space kSpace, bool kVector, int kOrder>
void load(Exec& x, const Op& op, Mask mask) {
  const unsigned count = kVector ? op.source->vector : 1;
  Access<kSpace, AccessKind::kLoad> access(x, op, static_cast<unsigned>(sizeof(T)) * count);
  access.note(mask);
  if (op.source->order != Order::kWeak) ++x.warp->polls;
  Row* single = &x.dst(op.d);
  const Ref* refs = x.frame->code->refs.data() + op.list;
  while (mask != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    mask &= mask - 1;
    const std::byte* from = access.at(lane);
    if (from == nullptr) return;
    if constexpr (kVector) {
      for (unsigned k = 0; k < count; ++k)
        store_lane<T>(x.dst(refs[k]), lane, read_memory<T>(from + k * sizeof(T), kOrder));
    } else {
      store_lane<T>(*single, lane, read_memory<T>(from, kOrder));
    }
  }
}

template <class T, Space kSpace, bool kVector, int kOrder>
void store(Exec& x, const Op& op, Mask mask) {
  const unsigned count = kVector ? op.source->vector : 1;
  Access<kSpace, AccessKind::kStore> access(x, op, static_cast<unsigned>(sizeof(T)) * count);
  access.note(mask);
  const Row* single = &x.src(op.b);
  const Ref* refs = x.frame->code->refs.data() + op.list + 1;  // after the address
  while (mask != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    mask &= mask - 1;
    std::byte* to = access.at(lane);
    if (to == nullptr) return;
    if constexpr (kVector) {
      for (unsigned k = 0; k < count; ++k)
        write_memory<T>(to + k * sizeof(T), load_lane<T>(x.src(refs[k]), lane), kOrder);
    } else {
      write_memory<T>(to, load_lane<T>(*single, lane), kOrder);
    }
  }
}

template <class T, Space kSpace, bool kVector>
Handler pick_order(const Instruction& i) {
  const bool ordered = i.order == Order::kAcquire || i.order == Order::kRelease ||
                       i.order == Order::kAcqRel || i.order == Order::kSc;
  if (i.op == Opcode::kLd) {
    if constexpr (kSpace == Space::kParam || kSpace == Space::kConst) {
      return load<T, kSpace, kVector, __ATOMIC_RELAXED>;
    } else {
      return ordered ? load<T, kSpace, kVector, __ATOMIC_ACQUIRE>
                     : load<T, kSpace, kVector, __ATOMIC_RELAXED>;
    }
  }
  if constexpr (std::is_signed_v<T> || kSpace == Space::kParam || kSpace == Space::kConst) {
    return nullptr;
  } else {
    return ordered ? store<T, kSpace, kVector, __ATOMIC_RELEASE>
                   : store<T, kSpace, kVector, __ATOMIC_RELAXED>;
  }
}

template <class T>
Handler pick_space(const Instruction& i) {
  const bool vector = i.vector > 1;
  switch (i.space) {
    case Space::kGeneric:
      return vector ? pick_order<T, Space::kGeneric, true>(i)
                    : pick_order<T, Space::kGeneric, false>(i);
    case Space::kGlobal:
    case Space::kConst:
      return vector ? pick_order<T, Space::kGlobal, true>(i)
                    : pick_order<T, Space::kGlobal, false>(i);
    case Space::kShared:
      return vector ? pick_order<T, Space::kShared, true>(i)
                    : pick_order<T, Space::kShared, false>(i);
    case Space::kLocal:
      return vector ? pick_order<T, Space::kLocal, true>(i)
                    : pick_order<T, Space::kLocal, false>(i);
    case Space::kParam:
      return vector ? pick_order<T, Space::kParam, true>(i)
                    : pick_order<T, Space::kParam, false>(i);
  }
  return nullptr;
}

// A read-modify-write of one word that all fences share orders as much as a fence does, and unlike
// a fence the thread sanitizer understands it.
void fence(Exec&, const Op&, Mask) {
  static std::uint32_t meeting_point = 0;
  __atomic_fetch_add(&meeting_point, 0u, __ATOMIC_SEQ_CST);
}

}  // namespace

Handler select_memory(const Instruction& i) {
  if (i.op == Opcode::kFence) return fence;
  if (i.op != Opcode::kLd && i.op != Opcode::kSt) return nullptr;
  const bool widen_sign = i.op == Opcode::kLd && is_signed(i.type);
  switch (type_size(i.type)) {
    case 1:
      return widen_sign ? pick_space<std::int8_t>(i) : pick_space<std::uint8_t>(i);
    case 2:
      return widen_sign ? pick_space<std::int16_t>(i) : pick_space<std::uint16_t>(i);
    case 4:
      return widen_sign ? pick_space<std::int32_t>(i) : pick_space<std::uint32_t>(i);
    case 8:
      return pick_space<std::uint64_t>(i);
    default:
      return nullptr;
  }
}

bool read_generic(Exec& x, unsigned lane, std::uint64_t address, unsigned bytes, void* to) {
  Op op;
  Row row;
  row.lane[lane] = address;
  op.base = Base::kRow;
  op.a = 0;
  Exec view = x;
  view.rows = &row;
  Access<Space::kGeneric, AccessKind::kLoad> access(view, op, bytes);
  access.note(Mask{1} << lane);
  const std::byte* from = access.at(lane);
  if (from == nullptr) {
    x.event = view.event;
    return false;
  }
  std::memcpy(to, from, bytes);
  return true;
}

bool read_string(Exec& x, unsigned lane, std::uint64_t address, std::string* text) {
  // The longest string a kernel may print; without a limit a missing NUL would print an allocation.
  constexpr std::size_t kLongest = 64 * 1024;
  text->clear();
  while (text->size() < kLongest) {
    char c = 0;
    if (!read_generic(x, lane, address + text->size(), 1, &c)) return false;
    if (c == 0) break;
    text->push_back(c);
  }
  return true;
}

}  // namespace softgpu::ptx
