// SPDX-License-Identifier: Apache-2.0
// The host memory that the program page-locked or made managed, as our wrappers saw it, so that a
// copy can be told to be pageable without asking the driver. Filled while the profile is on.
// host_side_of() runs on every thread on the call path: no lock, no allocation; note and forget
// take a lock, inside calls that allocate anyway.
//
// Not seen: memory page-locked before the profile began or behind our back (RTLD_DEEPBIND), and
// host memory mapped by cuMemMap or taken from a host pool; copies to it count as pageable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/call_stats.h"

namespace profiler {

// 4096 ranges: allocators of page-locked memory keep hundreds at most; 64 KiB here.
inline constexpr std::size_t kMaxLockedRanges = 4096;

void note_locked_memory(std::uintptr_t start, std::size_t bytes) noexcept;
// The range that starts here, if there is one.
void forget_locked_memory(std::uintptr_t start) noexcept;

// kLocked or kPageable by the address of one byte; kUnknown when the table ran full once, or is
// just being changed.
HostSide host_side_of(std::uintptr_t address) noexcept;

}  // namespace profiler
