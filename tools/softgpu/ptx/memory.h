// SPDX-License-Identifier: Apache-2.0
// How the interpreter reaches device memory. Device addresses are not host addresses: each
// allocation is a range with its own backing, so every access is translated and bounds-checked.
// Threads: a RangeTable is immutable; a running kernel keeps the snapshot it took and takes a new
// one at each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu::ptx {

// One allocation visible to kernels. Pinned and managed host memory has base == (uint64_t)backing.
struct Range {
  std::uint64_t base = 0;  // device address of the first byte
  std::uint64_t size = 0;  // bytes
  std::byte* backing = nullptr;
  std::uint64_t id = 0;  // allocation ordinal: same program, same ordinals
  bool writable = true;  // false: a store is an illegal address (constant banks)
};

// Ids beyond are of memory that no program knows of (the device heap): they depend on the order of
// execution.
inline constexpr std::uint64_t kLastOrdinal = ~std::uint64_t{0} >> 1;

// Sorted by base, non-overlapping.
struct RangeTable {
  std::vector<Range> ranges;
  // The range holding [address, address + size), or null.
  const Range* find(std::uint64_t address, std::uint64_t size) const;
};

// Supplies the current table. Called from the thread that steps a kernel; must not block on running
// kernels.
class GlobalMemory {
 public:
  virtual ~GlobalMemory() = default;
  virtual std::shared_ptr<const RangeTable> snapshot() = 0;
};

// Generic addresses: the windows that are not global memory. Chosen far from what the driver hands
// out.
inline constexpr std::uint64_t kSharedWindow =
    0x0000'7000'0000'0000ull;  // + offset in the CTA's shared memory
inline constexpr std::uint64_t kLocalWindow =
    0x0000'7100'0000'0000ull;  // + offset in the thread's local memory
inline constexpr std::uint64_t kWindowSize = 0x0000'0001'0000'0000ull;
inline constexpr std::uint64_t kParamWindow =
    0x0000'7300'0000'0000ull;  // + offset in the kernel's parameter buffer
inline constexpr std::uint64_t kCodeWindow =
    0x0000'7200'0000'0000ull;  // + function index, for indirect calls

}  // namespace softgpu::ptx
