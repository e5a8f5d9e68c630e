// SPDX-License-Identifier: Apache-2.0
// One argument of an entry, at compile time. Not a std::tuple: 672 wrappers would compile one each.
#pragma once

#include <cstddef>

namespace shim {

// The argument at `position`, 0-based.
template <std::size_t position, typename First, typename... Rest>
constexpr auto argument(First first, [[maybe_unused]] Rest... rest) noexcept {
  if constexpr (position == 0) {
    return first;
  } else {
    return argument<position - 1>(rest...);
  }
}

}  // namespace shim
