// SPDX-License-Identifier: Apache-2.0
// Deferral as a whole: started once, told what the program does to streams, contexts, code and
// captures, stopped when in doubt. The hooks of shim/ call these around the driver's own call; none
// may be called with a queue lock held.
#pragma once

#include "runtime/options.h"
#include "runtime/stream_map.h"

namespace runtime {

// Reads the settings into place; set_sink() comes first. Once. False: no stream queues unless it
// asks for it, or none at all (settings).
bool start(const Options& options) noexcept;
// False: every launch goes directly.
bool is_queueing() noexcept;
DirectReason queueing_stopped_reason() noexcept;
// Switches the queueing of one stream. Off: what is queued is submitted first, and a failure that
// waits is told. Accepted and without effect where nothing may be queued: by the settings, in a
// forked child, on a per-thread default stream.
CUresult set_deferred(CUstream stream, bool deferred) noexcept;
// Submits everything and queues nothing more in this process; warns once with `why`.
void stop_queueing(const char* why) noexcept;
// In the child after fork: CUDA is gone, drop what was queued (the parent still has it) and forward
// for ever.
void forked_child() noexcept;
// Submits everything, ends the deadline threads. From the exit handler and before _exit. How many
// launches failed that no call has told of.
std::uint32_t flush_at_exit() noexcept;

// Asks the driver; false when it cannot tell.
bool is_capturing(CUstream stream, bool per_thread_default) noexcept;
// Captures: before the driver's BeginCapture (its rule has flushed); `began` when it failed, or
// when the capture ended.
ContextState* capture_begins(CUstream stream, bool per_thread_default) noexcept;
// The driver has begun it. Destroying the stream ends it too.
void capture_began(CUstream stream, bool per_thread_default) noexcept;
// The context of the capture that began on this stream and has not ended; null: none.
ContextState* capture_of(CUstream stream) noexcept;
// After an EndCapture that ended it.
void capture_ended_on(CUstream stream, bool per_thread_default) noexcept;
void capture_ended(ContextState* context) noexcept;
// The stream has waited for an event. One of a capture takes the stream into it, also from another
// context; that context queues nothing until no capture is active.
void stream_waited(CUstream stream, bool per_thread_default) noexcept;

// The stream has non-default attributes: nodes would not inherit them. Its queue has been flushed.
void stream_attributes_changed(CUstream stream, bool per_thread_default) noexcept;

// Code: before the driver's unload (everything has been flushed). Recordings that name its
// functions die.
void code_unloads(CUmodule module) noexcept;
void code_unloads(CUlibrary library) noexcept;
// Nothing is believed of the code in this context any more.
void forget_code_of(ContextState& context) noexcept;
// Texture or surface references of the module are in use: its functions may not go into graphs.
void code_is_tainted(CUmodule module) noexcept;
// Before a function is changed: submits the queues that hold it.
void submit_holders(const CodeScope& scope, EntryId why) noexcept;
// It has changed: limits are read again, graphs with the function are rebuilt.
void functions_changed(const CodeScope& scope) noexcept;

// The program ran out of memory: gives up all recordings, for what their graphs hold. False: there
// are no graphs.
bool give_back_graphs() noexcept;

// Before a context is destroyed, reset or released: its recordings die while the driver can still
// free them.
void context_dies(ContextState& context) noexcept;

}  // namespace runtime
