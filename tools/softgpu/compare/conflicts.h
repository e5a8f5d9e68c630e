// SPDX-License-Identifier: Apache-2.0
// Finds the pairs of operations that touch the same memory, one of them writing.
#pragma once

#include <cstdint>
#include <functional>

#include "tools/softgpu/compare/order.h"
#include "tools/softgpu/compare/trace.h"

namespace softgpu::compare {

struct Conflict {
  OperationIndex first = 0, second = 0;  // in order of submission
  std::uint64_t allocation = 0;
  std::uint64_t granule = 0;  // one that both touch
};

// Calls `ordered` for conflicting pairs with first before second, enough of them that every other
// one follows by transitivity; and `racing` for unordered ones, of which it leaves out some but
// none when there are any in that memory. A pair may come once for each piece of memory it touches.
// Pairs of atomic updates are never racing.
void find_conflicts(const Trace& trace, const Order& order,
                    const std::function<void(const Conflict&)>& ordered,
                    const std::function<void(const Conflict&)>& racing);

}  // namespace softgpu::compare
