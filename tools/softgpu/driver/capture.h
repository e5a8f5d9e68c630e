// SPDX-License-Identifier: Apache-2.0
// Stream capture: what streams and events remember about it, and the questions every other entry
// must ask before it enqueues, synchronises or does something that a capture forbids. All functions
// need the driver lock. A function that returns CUresult has already invalidated the captures that
// the documentation says are invalidated; the caller only returns the code if it is not
// CUDA_SUCCESS.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/softgpu/driver/work.h"

namespace softgpu {

struct Context;
struct Event;
struct Stream;
struct CaptureSequence;  // one BeginCapture .. EndCapture; capture_sequence.h

// One node that the next captured work depends on.
struct CaptureDependency {
  CUgraphNode node = nullptr;
  CUgraphEdgeData data{};
};

// A member of Stream: `StreamCapture capture;`.
struct StreamCapture {
  std::shared_ptr<CaptureSequence> sequence;  // null: not capturing
  std::vector<CaptureDependency> dependencies;
  // What cuStreamGetCaptureInfo handed out; valid until the next call that operates on the stream.
  std::vector<CUgraphNode> returned_nodes;
  std::vector<CUgraphEdgeData> returned_edges;
};

// A member of Event: `EventCapture capture;`. An ordinary record resets it to {}.
struct EventCapture {
  std::shared_ptr<CaptureSequence> sequence;  // null: not last recorded in a capture
  std::vector<CaptureDependency> dependencies;
};

// True while the stream takes part in a capture, also in an invalidated one.
bool is_capturing(const Stream& stream);

// Adds `work` as a node after the stream's capture dependencies. For streams that capture; `submit`
// calls it.
CUresult capture_work(Stream& stream, Work&& work);

// cuEventRecord[WithFlags] on a capturing stream: remembers the stream's dependencies in the event,
// or adds an event record node when `external` (CU_EVENT_RECORD_EXTERNAL).
CUresult capture_event_record(Stream& stream, const std::shared_ptr<Event>& event, bool external);
// True if cuStreamWaitEvent(stream, event) must go to capture_event_wait: the stream captures or
// the event was last recorded in a capture.
bool wait_concerns_capture(const Stream& stream, const Event& event);
// Joins the stream to the event's capture, or joins the event's work into the stream's. `external`
// is CU_EVENT_WAIT_EXTERNAL: an event wait node. `event_recorded`: an ordinary record exists, so a
// wait would reach outside the capture.
CUresult capture_event_wait(Stream& stream, const std::shared_ptr<Event>& event, bool external,
                            bool event_recorded);

// Any work for the legacy stream of `context` (also synchronous copies and memsets):
// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT while a blocking stream of that context captures.
CUresult capture_forbids_legacy(Context& context);
// cuStreamSynchronize, cuStreamQuery, cuStreamWaitValue... on this stream: UNSUPPORTED if it
// captures; if it is the legacy stream, as capture_forbids_legacy.
CUresult capture_forbids_sync(Stream& stream);
// cuCtxSynchronize and everything that waits for the whole context (or for all contexts: null):
// UNSUPPORTED while any stream of it captures, in every mode.
CUresult capture_forbids_context_sync(Context* context);
// cuEventQuery, cuEventSynchronize, cuEventElapsedTime: CUDA_ERROR_CAPTURED_EVENT if the event was
// last recorded in a capture; else as capture_forbids_unsafe for a query or a synchronise.
CUresult capture_forbids_event_sync(Event& event);
// A call that is not stream-ordered and would be missing from the graph (cuMemAlloc, cuMemFree,
// cuMemHostAlloc, cuMemHostRegister, module load and unload ...): UNSUPPORTED as the thread's
// capture mode and the running captures say.
CUresult capture_forbids_unsafe();
// Stream-ordered calls that cannot be captured (cuStreamAddCallback, cuMemAllocAsync ...):
// UNSUPPORTED if it captures.
CUresult capture_forbids_uncapturable(Stream& stream);

// cuStreamDestroy: a capture that began here is dropped, a fork leaves its capture.
void capture_stream_destroyed(Stream& stream);

}  // namespace softgpu
