// SPDX-License-Identifier: Apache-2.0
// From a 64-bit key to the number that was given to it: 1, 2, 3 and so on up to the table's size.
// Nothing is ever taken out. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/trace/mapped_array.h"

namespace profiler {

// A finaliser of MurmurHash3: every bit of the key reaches every bit of the result.
constexpr std::uint64_t mix_bits(std::uint64_t key) noexcept {
  key = (key ^ key >> 33) * 0xff51afd7ed558ccd;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53;
  return key ^ key >> 33;
}

constexpr std::uint64_t hash_next(std::uint64_t hash, std::uint64_t value) noexcept {
  return mix_bits(hash * 0x9e3779b97f4a7c15 + value);
}

template <std::size_t kMost>
class IdTable {
 public:
  static_assert((kMost & (kMost - 1)) == 0, "a power of two");

  [[nodiscard]] bool map() noexcept { return slots_.map(); }
  void unmap() noexcept { slots_.unmap(); }

  std::uint32_t count() const noexcept { return count_; }
  bool is_full() const noexcept { return count_ == kMost; }

  // 0: not there.
  std::uint32_t find(std::uint64_t key) const noexcept { return slots_[slot_of(key)].number; }
  // The key is not there, the table is not full.
  std::uint32_t add(std::uint64_t key) noexcept {
    slots_[slot_of(key)] = {key, ++count_};
    return count_;
  }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint32_t number;  // 0: free
  };
  // Half of them stay free, so that a search ends soon.
  static constexpr std::size_t kSlots = 2 * kMost;

  std::size_t slot_of(std::uint64_t key) const noexcept {
    std::size_t at = mix_bits(key) % kSlots;
    while (slots_[at].number != 0 && slots_[at].key != key) at = (at + 1) % kSlots;
    return at;
  }

  MappedArray<Slot, kSlots> slots_;
  std::uint32_t count_ = 0;
};

}  // namespace profiler
