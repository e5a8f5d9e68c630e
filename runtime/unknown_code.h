// SPDX-License-Identifier: Apache-2.0
// After an entry that the table does not know has run, nothing that is remembered of the driver is
// believed: it may have begun a capture, switched the thread's context, destroyed a stream or
// unloaded code. Such calls are not followed; the driver is asked before anything is queued again.
// Costs nothing until there is one. Any thread.
#pragma once

#include <atomic>

#include "runtime/counters.h"
#include "runtime/driver.h"

namespace runtime {

struct ContextState;

// Calls of unknown entries, and threads that have come back from one. 0: none.
extern constinit std::atomic<std::uint32_t> g_unknown_code;

inline bool has_unknown_code_run() noexcept {
  return g_unknown_code.load(std::memory_order_relaxed) != 0;
}

// The calling thread is about to run an unknown entry; what waits has been submitted. `is_tame`: it
// is a newer form of an entry that changes no code, streams or captures.
void unknown_code_runs(bool is_tame) noexcept;

// Before a batch of the context is opened, which must be current: asks the driver which streams
// capture; after an unknown call, also whether the streams are what they were, and forgets all
// code. kCount: launches may be queued.
DirectReason verify_context(ContextState& context) noexcept;

}  // namespace runtime
