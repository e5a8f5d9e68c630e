// SPDX-License-Identifier: Apache-2.0
// Where calls came from: each distinct stack of an entry once, with its counts. A table of fixed
// size, allocated at start; a stack that finds no room is dropped and counted. Any thread; no lock,
// no wait, no allocation; errno kept.
//
// A stack is known by its addresses and the Python code above them. Code that is loaded where other
// code was unloaded, with the same return addresses all the way, would be counted with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/call_stats.h"
#include "profiler/python_frame.h"
#include "runtime/entry.h"

namespace profiler {

// 16 frames reach past most wrappers of libraries; 4096 stacks are some 1.5 MiB. Programs with more
// distinct stacks than that exist: what is dropped is told.
inline constexpr std::size_t kSiteDepth = 16;
inline constexpr std::size_t kMaxSites = 4096;

struct Site {
  // Written before the site is published, then constant.
  runtime::EntryId entry;
  std::uint32_t depth;
  std::uint64_t hash;
  std::uintptr_t addresses[kSiteDepth];  // innermost first, our own frames left out
  std::uint16_t modules[kSiteDepth];     // of module_list.h
  PythonCall python_call;
  const PythonPlace* python;  // null: no Python, or its frames were not read

  std::atomic<std::uint64_t> calls, total_ns, max_ns, flushed, failed, not_ready, bytes,
      pageable_calls;
};

// False when out of memory: no site will be kept.
[[nodiscard]] bool start_sites() noexcept;

struct Stack {
  const std::uintptr_t* addresses;
  std::size_t depth;
  PythonCall python = {};
};

void record_site(runtime::EntryId entry, const Stack& stack, std::uint64_t ns,
                 const CallFacts& facts) noexcept;

// The slot's site, null when it has none; kMaxSites slots.
const Site* site_at(std::size_t slot) noexcept;
std::uint64_t dropped_site_calls() noexcept;

}  // namespace profiler
