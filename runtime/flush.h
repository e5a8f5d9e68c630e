// SPDX-License-Identifier: Apache-2.0
// Submission points as the wrappers call them. Each submits what the coming driver call could
// observe, under no lock of the caller, and returns when it is in the driver. `why` is the entry
// that is about to run; the flush is counted under it. Failures are entered in the ledger of their
// context (error_ledger.h). With nothing queued anywhere every function costs one atomic load.
#pragma once

#include <atomic>

#include "runtime/driver.h"

namespace runtime {

struct ContextState;

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
void flush_stream(CUstream stream, bool per_thread_default, EntryId why) noexcept;
// The legacy queue and all blocking queues of the current context.
void flush_legacy(EntryId why) noexcept;
// Every queue of `context` (null: of the current context).
void flush_context(CUcontext context, EntryId why) noexcept;
// Every queue of every context.
void flush_all(EntryId why) noexcept;

// For a call that blocks the host until work is done that may wait for any other: every queue is
// on its way, oldest first, but only what CUDA's own order asks for is waited for without bound,
// so that a stream whose submission is stuck (a full launch queue) holds up nobody else. That is
// what the stream runs behind, the default streams of all contexts, or nothing.
void flush_for_stream_wait(CUstream stream, bool per_thread_default, EntryId why) noexcept;
void flush_for_default_streams(EntryId why) noexcept;
void flush_for_liveness(EntryId why) noexcept;

// The queue of this stream, because the program asked for it through our own API. What it tells.
CUresult submit_stream(CUstream stream) noexcept;

// A queued launch failed.
void launch_failed(ContextState& context, CUresult failure) noexcept;
// What a call tells that names this stream (a context; null: the current one) and that the driver
// has answered with `called`; see ErrorLedger::tell().
CUresult tell_of_stream(CUstream stream, bool per_thread_default, CUresult called) noexcept;
CUresult tell_of_context(CUcontext context, CUresult called) noexcept;

// The driver has reported a failure. After a fault every later launch in that context must return
// it, so from here on launches are not queued until one succeeds. Cold.
void note_failure(CUresult result) noexcept;
// A launch of a suspect context went to the driver, and this is what it said.
void launched_after_fault(CUresult result) noexcept;

}  // namespace runtime
