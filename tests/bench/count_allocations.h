// SPDX-License-Identifier: Apache-2.0
// How many heap allocations the calling thread has made so far.
#pragma once

#include <cstdint>

namespace bench {
std::uint64_t allocations();
}  // namespace bench
