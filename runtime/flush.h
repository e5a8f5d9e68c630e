// SPDX-License-Identifier: Apache-2.0
// Submission points as the wrappers call them. Each submits what the coming driver call could
// observe, on the calling thread, under no lock of the caller. `why` is the entry that is about to
// run; the flush is counted under it. A result other than CUDA_SUCCESS is the first failure of
// queued work; the wrapper reports it when the driver's own call succeeds. With nothing queued
// anywhere every function costs one atomic load.
#pragma once

#include <atomic>

#include "runtime/driver.h"

namespace runtime {

// Queues that hold at least one launch. Relaxed readers see at least their own thread's launches;
// launches of other threads are visible when the host program ordered them before this call (its
// own synchronisation orders the counter).
extern constinit std::atomic<std::uint32_t> g_nonempty_queues;

inline bool anything_queued() noexcept {
  return g_nonempty_queues.load(std::memory_order_relaxed) != 0;
}

// What work on `stream` must run behind: its own queue, and for blocking and legacy streams their
// order group. `per_thread_default`: the entry is a _ptsz twin, so stream 0 is the calling thread's
// own stream.
CUresult flush_stream(CUstream stream, bool per_thread_default, EntryId why) noexcept;
// The legacy queue and all blocking queues of the current context.
CUresult flush_legacy(EntryId why) noexcept;
// Every queue of `context` (null: of the current context).
CUresult flush_context(CUcontext context, EntryId why) noexcept;
// The queue of this stream, because the program asked for it through our own API.
CUresult submit_stream(CUstream stream) noexcept;
// Every queue of every context.
CUresult flush_all(EntryId why) noexcept;

// The driver has reported a failure. After a fault every later launch in that context must return
// it, so from here on launches are not queued until one succeeds. Cold.
void note_failure(CUresult result) noexcept;
// A launch of a suspect context went to the driver, and this is what it said.
void launched_after_fault(CUresult result) noexcept;

}  // namespace runtime
