// SPDX-License-Identifier: Apache-2.0
// Decides whether a call's site is kept, and keeps it. Called by the wrappers after the call, so
// that only calls over their kind's threshold pay for a stack. Any thread; no lock; errno kept.
#pragma once

#include <cstdint>

#include "profiler/call_stats.h"
#include "runtime/call_kind.h"

namespace profiler {

inline constexpr std::size_t kCallKinds = static_cast<std::size_t>(runtime::CallKind::kCount);

// Nanoseconds from which on a call's site is kept, by kind; UINT64_MAX: never, as for kCount.
// Written by enable_sites(), before profiling is enabled.
extern constinit std::uint64_t g_site_thresholds_ns[kCallKinds + 1];

// Prepares the table; after start_stack_walk(). `thresholds_ns`: one per kind.
void enable_sites(const std::uint64_t* thresholds_ns) noexcept;
bool sites_are_enabled() noexcept;

inline bool wants_site(runtime::CallKind kind, std::uint64_t ns) noexcept {
  return ns >= g_site_thresholds_ns[static_cast<std::size_t>(kind)];
}

// `frame`: see walk_stack().
void keep_site(runtime::EntryId entry, const void* frame, std::uint64_t ns,
               const CallFacts& facts) noexcept;

}  // namespace profiler
