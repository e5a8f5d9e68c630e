// SPDX-License-Identifier: Apache-2.0
// The driver profile's view of a call: reads what the arguments say, times the wrapper's whole work
// (submitting, the driver, our bookkeeping) and records it. Reached only in Mode::kProfiled. Any
// thread; no lock but for calls that allocate or free; errno kept.
#pragma once

#include "profiler/clock.h"
#include "runtime/thread_state.h"
#include "shim/call_facts.h"
#include "shim/forward.h"

namespace shim {

// Kernel launches: timed by the way they take, not by entry.
constexpr bool is_launch(EntryId id) {
  return row(id).entry_class == EntryClass::kLaunch ||
         row(id).entry_class == EntryClass::kLaunchDirect;
}

// Entries whose host time the driver profile shows: all that submit queued work, and the event
// queries.
constexpr bool is_timed(EntryId id) {
  const Rule rule = row(id).rule;
  const bool observes = rule != Rule::kPass && rule != Rule::kLookup && !is_launch(id);
  return observes || row(id).entry_class == EntryClass::kEventObserve;
}

// Launch entries that never queue, and do not say so on the way.
constexpr bool is_always_direct(EntryId id) {
  return id == EntryId::cuLaunch || id == EntryId::cuLaunchGrid ||
         id == EntryId::cuLaunchCooperativeKernelMultiDevice;
}

// What a timed call is compared with when it is over.
struct CallStart {
  profiler::Submissions submissions = profiler::t_submissions;
  std::uint32_t direct_launches = runtime::t_thread.direct_launches;
  std::uint64_t ticks = profiler::now_ticks();  // last
};

// Stops the clock and records. `frame`: of the function that the wrapper entered by a jump.
void finish_launch(const CallStart& start, bool is_always_direct, CUresult result) noexcept;
void finish_call(EntryId id, const CallStart& start, CUresult result, CallFacts facts,
                 const void* frame) noexcept;

// Inlined into the function that the wrapper jumps to: its frame is where the stack walk begins.
template <EntryId id, typename Body, typename... Args>
[[gnu::always_inline]] inline CUresult profile_call(Body body, Args... args) noexcept {
  if constexpr (is_launch(id)) {
    const CallStart start;
    const CUresult result = body(args...);
    finish_launch(start, is_always_direct(id), result);
    return result;
  } else {
    const CallFacts facts = facts_of<id>(args...);
    const CallStart start;
    const CUresult result = body(args...);
    finish_call(id, start, result, facts, __builtin_frame_address(0));
    if (result == CUDA_SUCCESS) follow_host_memory<id>(args...);
    return result;
  }
}

}  // namespace shim
