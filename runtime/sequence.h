// SPDX-License-Identifier: Apache-2.0
// An ordered list of launches with everything needed to submit them: the values the program last
// asked for. Its identity is the ordered functions with their attributes; grids, blocks, shared
// bytes and arguments are values. A Sequence belongs to one StreamQueue and is guarded by that
// queue's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/array.h"
#include "runtime/function_info.h"
#include "runtime/launch_attributes.h"

namespace runtime {

// Grid, block (elements) and dynamic shared memory (bytes) of a launch.
struct LaunchShape {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;

  bool operator==(const LaunchShape& other) const noexcept {
    return ((grid[0] ^ other.grid[0]) | (grid[1] ^ other.grid[1]) | (grid[2] ^ other.grid[2]) |
            (block[0] ^ other.block[0]) | (block[1] ^ other.block[1]) |
            (block[2] ^ other.block[2]) | (shared_bytes ^ other.shared_bytes)) == 0;
  }
};

// One cache line a launch.
struct LaunchSlot {
  LaunchKey key = kNoLaunch;  // function and attributes; the end marker's matches no launch
  const FunctionInfo* info;   // a version held by the sequence; null in the end marker
  std::uint64_t prefix_hash;  // identity of the launches up to and including this one
  LaunchShape shape;
  std::uint32_t arguments;  // offset in Sequence::arguments, a multiple of 16
  LaunchAttributes attributes;

  CUfunction function() const noexcept { return info->handle; }  // as the program passed it
};
static_assert(sizeof(LaunchSlot) <= 64);

struct GraphPlan;  // graphs/graph_plan.h: the executable graph of a sequence, if it has one

struct Sequence {
  Array<LaunchSlot> slots;  // size() == 1 launches behind count: the end marker
  Array<std::byte> arguments;
  Array<std::uint64_t> dirty;  // a bit a launch: its values differ from what the graph exec holds
  std::uint32_t count = 0;     // launches

  // Kept by graphs/: how often seen, its graph, its neighbours.
  std::uint32_t sightings = 0;
  std::uint32_t failures = 0;
  GraphPlan* plan = nullptr;
  Sequence* successor = nullptr;  // what followed it last time
  Sequence* chain = nullptr;      // hash chain
  Sequence* newer = nullptr;      // use order
  Sequence* older = nullptr;

  Sequence() = default;
  ~Sequence() { let_go(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  [[nodiscard]] bool start() noexcept {
    let_go();
    arguments.clear();
    dirty.clear();
    return slots.resize(0) && slots.resize(1);
  }
  // Adds a launch with zeroed arguments and an end marker behind it; returns its slot, null when
  // out of memory.
  LaunchSlot* append(const FunctionInfo* info, const LaunchShape& shape,
                     const LaunchAttributes& attributes = {}) noexcept;
  // Takes over the launches of `from`, which has none afterwards.
  void take(Sequence& from) noexcept;
  // No launches, and no memory for any.
  void release() noexcept;
  std::byte* arguments_of(const LaunchSlot& slot) noexcept {
    return arguments.data() + slot.arguments;
  }
  const std::byte* arguments_of(const LaunchSlot& slot) const noexcept {
    return arguments.data() + slot.arguments;
  }
  std::uint64_t hash() const noexcept { return count == 0 ? 0 : slots[count - 1].prefix_hash; }
  void mark_dirty(std::uint32_t index) noexcept { dirty[index / 64] |= 1ull << (index % 64); }
  // Same functions in the same lives of their handles, with the same attributes.
  bool same_prefix(const Sequence& other, std::uint32_t launches) const noexcept;
  // Takes over the first `launches` values of `from` (same identity), marking what differs.
  void take_values(const Sequence& from, std::uint32_t launches) noexcept;
  // A copy of the first `launches` of `from`. False when out of memory.
  [[nodiscard]] bool copy_prefix(const Sequence& from, std::uint32_t launches) noexcept;
  std::size_t memory_bytes() const noexcept {
    return sizeof *this + slots.capacity_bytes() + arguments.capacity_bytes() +
           dirty.capacity_bytes();
  }

 private:
  // The versions that the slots name are kept by them.
  void let_go() noexcept;
};

}  // namespace runtime
