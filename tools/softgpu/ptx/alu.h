// SPDX-License-Identifier: Apache-2.0
// Scalar integer and bit semantics of PTX as pure functions: wrap-around, high halves, shifts that
// clamp, bit fields, byte permutes, lookup-table logic, dot products. Any thread; no state. T is
// the unsigned or signed C++ type of the instruction's type suffix.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace softgpu::ptx {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
inline constexpr unsigned kBits = sizeof(T) * 8;

// The type of double width, for mul.wide and mul.hi.
template <class T>
struct Wider;
template <>
struct Wider<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wider<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wider<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wider<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Wider<std::uint64_t> {
  __extension__ typedef unsigned __int128 type;
};
template <>
struct Wider<std::int64_t> {
  __extension__ typedef __int128 type;
};

// Arithmetic below int must not be promoted to signed overflow, and signed arithmetic wraps: go
// through unsigned, at least 32 bits wide.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, Unsigned<T>>;

template <class T>
inline T int_add(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
inline T int_sub(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T>
inline T int_mul_lo(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T>
inline T int_mul_hi(T a, T b) {
  using W = typename Wider<T>::type;
  return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> kBits<T>);
}
template <class T>
inline typename Wider<T>::type int_mul_wide(T a, T b) {
  using W = typename Wider<T>::type;
  return static_cast<W>(a) * static_cast<W>(b);
}

inline std::int32_t clamp_to_s32(std::int64_t value) {
  if (value > std::numeric_limits<std::int32_t>::max())
    return std::numeric_limits<std::int32_t>::max();
  if (value < std::numeric_limits<std::int32_t>::min())
    return std::numeric_limits<std::int32_t>::min();
  return static_cast<std::int32_t>(value);
}
inline std::int32_t add_sat(std::int32_t a, std::int32_t b) {
  return clamp_to_s32(std::int64_t{a} + b);
}
inline std::int32_t sub_sat(std::int32_t a, std::int32_t b) {
  return clamp_to_s32(std::int64_t{a} - b);
}
inline std::int32_t mad_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return add_sat(int_mul_hi(a, b), c);
}

// 24-bit products of 48 bits: lo is bits 31..0, hi is bits 47..16.
template <class T>
inline std::int64_t product24(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << 8) >> 8;
    const auto y = static_cast<std::int32_t>(static_cast<std::uint32_t>(b) << 8) >> 8;
    return std::int64_t{x} * y;
  } else {
    return static_cast<std::int64_t>(std::uint64_t{a & 0xffffffu} * (b & 0xffffffu));
  }
}
template <class T>
inline T mul24_lo(T a, T b) {
  return static_cast<T>(product24(a, b));
}
template <class T>
inline T mul24_hi(T a, T b) {
  return static_cast<T>(product24(a, b) >> 16);
}
inline std::int32_t mad24_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return add_sat(mul24_hi(a, b), c);
}

template <class T>
inline T int_sad(T a, T b, T c) {
  const T difference = a < b ? int_sub(b, a) : int_sub(a, b);
  return int_add(c, difference);
}

// Division by zero is unspecified in PTX; the code that ptxas emits gives all ones, and the
// dividend as remainder.
template <class T>
inline T int_div(T a, T b) {
  if (b == 0) return static_cast<T>(~Unsigned<T>{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return int_sub(T(0), a);
  }
  return static_cast<T>(a / b);
}
template <class T>
inline T int_rem(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return 0;
  }
  return static_cast<T>(a % b);
}

template <class T>
inline T int_neg(T a) {
  return int_sub(T(0), a);
}
template <class T>
inline T int_abs(T a) {
  return a < 0 ? int_neg(a) : a;
}
template <class T>
inline T int_min(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T int_max(T a, T b) {
  return a > b ? a : b;
}

// Shift amounts are u32 and clamp at the width.
template <class T>
inline T shift_left(T a, std::uint32_t amount) {
  return amount >= kBits<T> ? T(0) : static_cast<T>(static_cast<Wrapping<T>>(a) << amount);
}
template <class T>
inline T shift_right(T a, std::uint32_t amount) {
  if (amount >= kBits<T>) {
    if constexpr (std::is_signed_v<T>) return a < 0 ? T(-1) : T(0);
    return 0;
  }
  return static_cast<T>(a >> amount);
}

// shf: the 64-bit value b:a shifted, high word (left) or low word (right) of the result.
template <bool kLeft, bool kWrap>
inline std::uint32_t funnel_shift(std::uint32_t a, std::uint32_t b, std::uint32_t amount) {
  const std::uint32_t n = kWrap ? amount & 31u : (amount > 32u ? 32u : amount);
  const std::uint64_t pair = (std::uint64_t{b} << 32) | a;
  if constexpr (kLeft) return static_cast<std::uint32_t>((pair << n) >> 32);
  return static_cast<std::uint32_t>(pair >> n);
}

template <class T>
inline std::uint32_t population(T a) {
  return static_cast<std::uint32_t>(std::popcount(static_cast<Unsigned<T>>(a)));
}
template <class T>
inline std::uint32_t leading_zeros(T a) {
  return static_cast<std::uint32_t>(std::countl_zero(static_cast<Unsigned<T>>(a)));
}
// Position of the most significant bit that differs from the sign (signed) or is set (unsigned);
// all ones if none.
template <class T, bool kShiftAmount>
inline std::uint32_t find_leading(T a) {
  auto bits = static_cast<Unsigned<T>>(a);
  if constexpr (std::is_signed_v<T>) {
    if (a < 0) bits = static_cast<Unsigned<T>>(~bits);
  }
  if (bits == 0) return 0xffffffffu;
  const std::uint32_t shift = leading_zeros(bits);
  return kShiftAmount ? shift : kBits<T> - 1 - shift;
}

template <class T>
inline T reverse_bits(T a) {
  T result = 0;
  for (unsigned i = 0; i < kBits<T>; ++i) {
    result = static_cast<T>((result << 1) | (a & 1));
    a = static_cast<T>(a >> 1);
  }
  return result;
}

// Position and length use their low 8 bits. Bits past the top read as the sign bit (signed) or
// zero.
template <class T>
inline T extract_field(T a, std::uint32_t position, std::uint32_t length) {
  constexpr unsigned kTop = kBits<T> - 1;
  const unsigned pos = position & 0xff;
  const unsigned len = length & 0xff;
  const auto bits = static_cast<Unsigned<T>>(a);
  bool fill = false;
  if constexpr (std::is_signed_v<T>) {
    if (len != 0) {
      const unsigned sign_at = pos + len - 1 > kTop ? kTop : pos + len - 1;
      fill = ((bits >> sign_at) & 1) != 0;
    }
  }
  const unsigned inside = pos > kTop ? 0 : (len > kTop + 1 - pos ? kTop + 1 - pos : len);
  Unsigned<T> result = inside == 0 ? 0 : static_cast<Unsigned<T>>(bits >> pos);
  if (inside < kBits<T>) {
    const auto mask = static_cast<Unsigned<T>>((Unsigned<T>{1} << inside) - 1);
    result = static_cast<Unsigned<T>>((result & mask) | (fill ? ~mask : Unsigned<T>{0}));
  }
  return static_cast<T>(result);
}

template <class T>
inline T insert_field(T field, T base, std::uint32_t position, std::uint32_t length) {
  const unsigned pos = position & 0xff;
  const unsigned len = length & 0xff;
  if (pos >= kBits<T> || len == 0) return base;
  const unsigned inside = len > kBits<T> - pos ? kBits<T> - pos : len;
  const T mask =
      inside == kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>(((T{1} << inside) - 1) << pos);
  return static_cast<T>((base & ~mask) | ((field << pos) & mask));
}

template <bool kWrap>
inline std::uint32_t bit_mask(std::uint32_t position, std::uint32_t width) {
  const std::uint32_t pos = kWrap ? position & 31u : position;
  const std::uint32_t len = kWrap ? width & 31u : width;
  if (pos >= 32 || len == 0) return 0;
  const std::uint32_t ones = len >= 32 ? 0xffffffffu : (1u << len) - 1;
  return ones << pos;
}

// szext: the low `width` bits, extended. Clamp: 32 or more keeps the value; width 0 gives 0.
template <class T, bool kWrap>
inline T extend_width(T a, std::uint32_t width) {
  const std::uint32_t n = kWrap ? width & 31u : width;
  if (n == 0) return 0;
  if (n >= 32) return a;
  const auto shifted = static_cast<T>(static_cast<std::uint32_t>(a) << (32 - n));
  return static_cast<T>(shifted >> (32 - n));
}

// fns: position of the n-th set bit from `base`, upwards for n > 0, downwards for n < 0; n = 0
// tests the base bit.
inline std::uint32_t find_nth_set(std::uint32_t mask, std::uint32_t base, std::int32_t n) {
  if (base > 31) return 0xffffffffu;
  if (n == 0) return (mask >> base) & 1 ? base : 0xffffffffu;
  const int direction = n > 0 ? 1 : -1;
  std::int64_t left = n > 0 ? std::int64_t{n} : -std::int64_t{n};
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += direction) {
    if (((mask >> at) & 1) && --left == 0) return static_cast<std::uint32_t>(at);
  }
  return 0xffffffffu;
}

enum class PermuteMode : std::uint8_t { kIndex, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

inline std::uint32_t permute_selector(PermuteMode mode, std::uint32_t control) {
  static constexpr std::uint16_t kF4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
  static constexpr std::uint16_t kB4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
  static constexpr std::uint16_t kRc8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
  static constexpr std::uint16_t kEcl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
  static constexpr std::uint16_t kEcr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
  static constexpr std::uint16_t kRc16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
  const std::uint32_t row = control & 3;
  switch (mode) {
    case PermuteMode::kIndex:
      return control;
    case PermuteMode::kF4e:
      return kF4e[row];
    case PermuteMode::kB4e:
      return kB4e[row];
    case PermuteMode::kRc8:
      return kRc8[row];
    case PermuteMode::kEcl:
      return kEcl[row];
    case PermuteMode::kEcr:
      return kEcr[row];
    case PermuteMode::kRc16:
      return kRc16[row];
  }
  return control;
}

inline std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = (std::uint64_t{b} << 32) | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t pick = (selector >> (4 * i)) & 0xf;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = (byte & 0x80) ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// lop3: bit i of the table is the result for inputs (a, b, c) = the bits of i.
inline std::uint32_t lookup_logic(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                  std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if (!((table >> i) & 1)) continue;
    result |= ((i & 4) ? a : ~a) & ((i & 2) ? b : ~b) & ((i & 1) ? c : ~c);
  }
  return result;
}

template <bool kSigned>
inline std::int64_t lane_value(std::uint32_t word, unsigned index, unsigned bits) {
  const std::uint32_t raw = (word >> (index * bits)) & ((1u << bits) - 1);
  if constexpr (kSigned) {
    return static_cast<std::int32_t>(raw << (32 - bits)) >> (32 - bits);
  }
  return raw;
}
template <bool kSignedA, bool kSignedB>
inline std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::int64_t sum = 0;
  for (unsigned i = 0; i < 4; ++i)
    sum += lane_value<kSignedA>(a, i, 8) * lane_value<kSignedB>(b, i, 8);
  return c + static_cast<std::uint32_t>(sum);
}
// dp2a: two 16-bit values of a with the low or high two bytes of b.
template <bool kSignedA, bool kSignedB>
inline std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool high) {
  std::int64_t sum = 0;
  for (unsigned i = 0; i < 2; ++i) {
    sum += lane_value<kSignedA>(a, i, 16) * lane_value<kSignedB>(b, i + (high ? 2 : 0), 8);
  }
  return c + static_cast<std::uint32_t>(sum);
}

// Carry chains: the condition code is one bit per thread.
template <class T>
inline T add_with_carry(T a, T b, bool carry_in, bool* carry_out) {
  const T partial = static_cast<T>(a + b);
  const T sum = static_cast<T>(partial + (carry_in ? 1 : 0));
  *carry_out = partial < a || sum < partial;
  return sum;
}
// subc computes a - (b + borrow); the code after sub.cc/subc.cc is the borrow.
template <class T>
inline T sub_with_borrow(T a, T b, bool borrow_in, bool* borrow_out) {
  const T partial = static_cast<T>(a - b);
  const T difference = static_cast<T>(partial - (borrow_in ? 1 : 0));
  *borrow_out = a < b || (borrow_in && partial == 0);
  return difference;
}

}  // namespace softgpu::ptx
