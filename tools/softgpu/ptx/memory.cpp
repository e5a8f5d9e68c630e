// SPDX-License-Identifier: Apache-2.0
// Looks addresses up in a sorted range table. Pure; any thread.
#include "tools/softgpu/ptx/memory.h"

#include <algorithm>

namespace softgpu::ptx {

const Range* RangeTable::find(std::uint64_t address, std::uint64_t size) const {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](std::uint64_t a, const Range& r) { return a < r.base; });
  if (after == ranges.begin()) return nullptr;
  const Range& range = *(after - 1);
  const std::uint64_t offset = address - range.base;
  if (offset >= range.size || range.size - offset < size) return nullptr;
  return &range;
}

}  // namespace softgpu::ptx
