// SPDX-License-Identifier: Apache-2.0
// One capture from begin to end, shared by the streams that take part and the events recorded in
// it. Driver lock held.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/graph.h"

namespace softgpu {

struct CaptureSequence {
  cuuint64_t id = 0;  // unique in the process
  std::shared_ptr<Graph> graph;
  bool owns_graph = true;  // false: captures into a client's graph
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  // that began it
  Stream* origin = nullptr;
  std::vector<Stream*> streams;  // origin and forks
  std::set<CUgraphNode>
      tails;  // captured nodes with no captured successor: work still to be joined
  bool is_invalid = false;
  bool has_ended = false;
};

// All that have not ended.
const std::vector<std::shared_ptr<CaptureSequence>>& running_captures();

// Where a capture puts its nodes. `graph` null: into a graph of its own.
struct CaptureTarget {
  std::shared_ptr<Graph> graph;
  std::vector<CaptureDependency> dependencies;
};

void begin_capture(Stream& stream, CUstreamCaptureMode mode, CaptureTarget target);
// Ends the capture that began in `stream`; what cuStreamEndCapture returns. `graph` is null unless
// it succeeds.
CUresult end_capture(Stream& stream, CUgraph* graph);
// The capture can only be ended from now on.
void invalidate(CaptureSequence& sequence);

// The legacy stream cannot say whether it captures while blocking streams of its context do.
// Changes nothing.
bool is_legacy_unusable(const Stream& stream);

CUstreamCaptureMode& thread_capture_mode();

}  // namespace softgpu
