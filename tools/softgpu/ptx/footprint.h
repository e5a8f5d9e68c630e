// SPDX-License-Identifier: Apache-2.0
// Which memory an operation touched, by granules of allocations. Filled by whoever performs the
// operation, one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace softgpu::ptx {

enum class AccessKind : std::uint8_t { kLoad, kStore, kAtomic };
inline constexpr std::size_t kAccessKinds = 3;

class Footprint {
 public:
  // `bytes` > 0 from `offset` on of the allocation with this ordinal.
  void add(AccessKind kind, std::uint64_t allocation, std::uint64_t offset, std::uint64_t bytes);

  // All that `other` touched.
  void add(const Footprint& other);

  // As a trace writes it (tools/softgpu/trace_format.h): "r3:0-7,9;w4:0", "-" for nothing.
  std::string text() const;

 private:
  using Bits = std::vector<std::uint64_t>;  // one per granule
  using Touched = std::array<Bits, kAccessKinds>;

  std::map<std::uint64_t, Touched> touched_;  // by allocation
  Touched* last_ = nullptr;                   // the entry of the last add()
  std::uint64_t last_allocation_ = 0;
};

}  // namespace softgpu::ptx
