// SPDX-License-Identifier: Apache-2.0
#include "profiler/call_site.h"

#include <algorithm>

#include "profiler/loaded_object.h"
#include "profiler/python_frame.h"
#include "profiler/site_table.h"
#include "profiler/stack_walk.h"
#include "runtime/log.h"

namespace profiler {

constinit std::uint64_t g_site_thresholds_ns[kCallKinds + 1] = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                                                UINT64_MAX, UINT64_MAX, UINT64_MAX};

void enable_sites(const std::uint64_t* thresholds_ns) noexcept {
  if (!start_sites()) {
    runtime::warn("no memory for call sites: the report goes without them");
    return;
  }
  start_loaded_objects();
  std::copy_n(thresholds_ns, kCallKinds, g_site_thresholds_ns);
}

bool sites_are_enabled() noexcept {
  return std::any_of(g_site_thresholds_ns, g_site_thresholds_ns + kCallKinds,
                     [](std::uint64_t threshold) { return threshold != UINT64_MAX; });
}

void keep_site(runtime::EntryId entry, const void* frame, std::uint64_t ns,
               const CallFacts& facts) noexcept {
  std::uintptr_t addresses[kSiteDepth];
  const std::size_t depth = walk_stack(frame, addresses, kSiteDepth);
  record_site(entry, {addresses, depth, find_python_call()}, ns, facts);
}

}  // namespace profiler
