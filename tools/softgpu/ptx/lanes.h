// SPDX-License-Identifier: Apache-2.0
// Registers of a warp as rows of 32 lanes, and the loops that apply a scalar function to the active
// lanes. A lane is 64 bits wide whatever the register type: a value sits in the low bytes, and what
// lies above it is never read. Pure data.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace softgpu::ptx {

inline constexpr unsigned kLanes = 32;

using Mask = std::uint32_t;
inline constexpr Mask kFullMask = 0xffffffffu;

struct alignas(64) Row {
  std::uint64_t lane[kLanes];
};

// f16 and bf16 values as bits; arithmetic is in half.h.
struct Half {
  std::uint16_t bits;
};
struct BFloat {
  std::uint16_t bits;
};

template <class T>
inline T load_lane(const Row& row, unsigned lane) {
  T value;
  std::memcpy(&value, &row.lane[lane], sizeof value);
  return value;
}

// Signed values are extended to the whole lane, because a narrow load or conversion may target a
// wider register.
template <class T>
inline void store_lane(Row& row, unsigned lane, T value) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    row.lane[lane] = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<T>) {
    row.lane[lane] = value;
  } else {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    row.lane[lane] = bits;
  }
}

// Rows may be the same object, never partly overlapping, so the loops over lanes carry no
// dependence.
#if defined(__clang__)
// Clang's pragma makes every loop it cannot vectorise a warning; its checks at run time are cheap.
#define SOFTGPU_INDEPENDENT_LANES
#else
#define SOFTGPU_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

template <class F>
inline void for_each_lane(Mask mask, F f) {
  while (mask != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    mask &= mask - 1;
    f(lane);
  }
}

// A row of 32-bit values seen as 64 words: the odd ones are nobody's, but computing them too keeps
// the loop contiguous.
template <class T>
struct Words {
  using type [[gnu::may_alias]] = T;
};

template <class D, class... S>
inline constexpr bool kDense = (sizeof(D) == 4) &&
                               ((sizeof(S) == 4) && ...) && std::is_arithmetic_v<D> &&
                               (std::is_arithmetic_v<S> && ...);

// d = f(sources), lane by lane. kPure: f may also run on garbage (no traps, no division by
// integers).
template <bool kPure, class D, class... S, class F, class... Rows>
inline void map_lanes(Mask mask, F f, Row& d, const Rows&... sources) {
  if (mask == kFullMask) {
    if constexpr (kPure && kDense<D, S...>) {
      auto* to = reinterpret_cast<typename Words<D>::type*>(&d);
      SOFTGPU_INDEPENDENT_LANES
      for (unsigned i = 0; i < 2 * kLanes; ++i) {
        to[i] = f(reinterpret_cast<const typename Words<S>::type*>(&sources)[i]...);
      }
    } else {
      SOFTGPU_INDEPENDENT_LANES
      for (unsigned i = 0; i < kLanes; ++i) store_lane<D>(d, i, f(load_lane<S>(sources, i)...));
    }
    return;
  }
  for_each_lane(mask, [&](unsigned i) { store_lane<D>(d, i, f(load_lane<S>(sources, i)...)); });
}

// The lanes of `mask` where f(sources) is true.
template <class... S, class F, class... Rows>
inline Mask test_lanes(Mask mask, F f, const Rows&... sources) {
  Mask result = 0;
  if (mask == kFullMask) {
    std::uint8_t flags[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) flags[i] = f(load_lane<S>(sources, i)...) ? 1 : 0;
    // Eight flags at a time: the product gathers bit 0 of each byte into the top byte.
    for (unsigned i = 0; i < kLanes / 8; ++i) {
      std::uint64_t eight;
      std::memcpy(&eight, flags + 8 * i, 8);
      result |= static_cast<Mask>((eight * 0x0102040810204080u) >> 56) << (8 * i);
    }
    return result;
  }
  for_each_lane(mask, [&](unsigned i) {
    if (f(load_lane<S>(sources, i)...)) result |= Mask{1} << i;
  });
  return result;
}

}  // namespace softgpu::ptx
