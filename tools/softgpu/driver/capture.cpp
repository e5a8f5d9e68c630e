// SPDX-License-Identifier: Apache-2.0
// Captures: turning stream work into nodes, forks and joins through events, and which calls they
// forbid. The entries are in capture_entries.cpp. Driver lock held throughout.
#include "tools/softgpu/driver/capture.h"

#include <algorithm>
#include <utility>

#include "tools/softgpu/driver/capture_sequence.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {

namespace {

using SequencePtr = std::shared_ptr<CaptureSequence>;

std::vector<SequencePtr>& running() {
  static std::vector<SequencePtr>& list = *new std::vector<SequencePtr>;
  return list;
}

void enter(Stream& stream, const SequencePtr& sequence,
           std::vector<CaptureDependency> dependencies) {
  stream.capture.sequence = sequence;
  stream.capture.dependencies = std::move(dependencies);
  sequence->streams.push_back(&stream);
  ++stream.context->active_captures;
}

void leave(Stream& stream) {
  auto& streams = stream.capture.sequence->streams;
  streams.erase(std::remove(streams.begin(), streams.end(), &stream), streams.end());
  stream.capture = {};
  --stream.context->active_captures;
}

void add_dependency(std::vector<CaptureDependency>& dependencies, const CaptureDependency& added) {
  const bool is_known = std::any_of(
      dependencies.begin(), dependencies.end(), [&](const CaptureDependency& dependency) {
        return dependency.node == added.node && same_edge_data(dependency.data, added.data);
      });
  if (!is_known) dependencies.push_back(added);
}

bool is_launch_only(CUlaunchAttributeID id) {
  return id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
         id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
         id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

// Launch attributes become node attributes: the stream's priority is kept, what only a launch can
// have is dropped. True if the launch may overlap with its predecessor in the stream.
bool convert_attributes(KernelWork& kernel, int stream_priority) {
  bool is_programmatic = false;
  bool has_priority = false;
  for (const CUlaunchAttribute& attribute : kernel.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      is_programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
    }
    has_priority = has_priority || attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
  }
  auto& attributes = kernel.attributes;
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                  [](const CUlaunchAttribute& attribute) {
                                    return is_launch_only(attribute.id);
                                  }),
                   attributes.end());
  if (!has_priority) {
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = stream_priority;
    attributes.push_back(priority);
  }
  return is_programmatic;
}

std::vector<GraphEdge> edges_for(const StreamCapture& capture, const Work& work,
                                 bool is_programmatic) {
  std::vector<GraphEdge> edges;
  for (const CaptureDependency& dependency : capture.dependencies) {
    GraphNode* node = graph_nodes().find(dependency.node);
    if (node == nullptr) continue;
    CUgraphEdgeData data = dependency.data;
    if (is_programmatic && is_default(data) && std::holds_alternative<KernelWork>(node->work)) {
      data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    // An annotation that the client set for a kernel means nothing to another kind of node.
    if (!is_valid_edge(node->work, work, data)) data = {};
    const bool is_known = std::any_of(edges.begin(), edges.end(), [&](const GraphEdge& edge) {
      return edge.node == node && same_edge_data(edge.data, data);
    });
    if (!is_known) edges.push_back({node, data});
  }
  return edges;
}

void add_node(Stream& stream, Work work) {
  CaptureSequence& sequence = *stream.capture.sequence;
  bool is_programmatic = false;
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    is_programmatic = convert_attributes(*kernel, stream.priority);
  }
  const std::vector<GraphEdge> edges = edges_for(stream.capture, work, is_programmatic);
  const GraphNode& node = append_node(*sequence.graph, std::move(work), edges);
  for (const GraphEdge& edge : edges) sequence.tails.erase(edge.node->handle);
  sequence.tails.insert(node.handle);
  stream.capture.dependencies.assign(1, {node.handle, {}});
}

// Refuses what a stream with an invalid capture may not do.
CUresult check_valid(const Stream& stream) {
  return stream.capture.sequence->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult refuse(CaptureSequence& sequence, CUresult code) {
  invalidate(sequence);
  return code;
}

CUresult join(Stream& stream, const Event& event, bool event_recorded) {
  const SequencePtr& ours = stream.capture.sequence;
  const SequencePtr& theirs = event.capture.sequence;
  if (theirs == nullptr) {
    // A wait for an event that was never recorded is nothing; any other reaches outside the
    // capture.
    return event_recorded ? refuse(*ours, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  }
  if (theirs->has_ended) return refuse(*ours, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (theirs != ours) {
    invalidate(*theirs);
    return refuse(*ours, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  for (const CaptureDependency& dependency : event.capture.dependencies) {
    add_dependency(stream.capture.dependencies, dependency);
  }
  return CUDA_SUCCESS;
}

CUresult fork(Stream& stream, const Event& event) {
  const SequencePtr sequence = event.capture.sequence;
  if (sequence->has_ended) return CUDA_ERROR_CAPTURED_EVENT;
  if (sequence->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.kind == StreamKind::kLegacy) {
    if (const CUresult code = capture_forbids_legacy(*stream.context); code != CUDA_SUCCESS)
      return code;
    return refuse(*sequence, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  enter(stream, sequence, event.capture.dependencies);
  return CUDA_SUCCESS;
}

bool takes_part(const CaptureSequence& sequence, const Context& context, bool only_blocking) {
  return std::any_of(sequence.streams.begin(), sequence.streams.end(), [&](const Stream* stream) {
    if (only_blocking) return stream->context == &context && stream->is_blocking();
    return covers(context, *stream->context);
  });
}

// Everything captured must lead to what the origin's next work would depend on.
bool is_joined(const CaptureSequence& sequence) {
  std::set<CUgraphNode> loose = sequence.tails;
  for (const CaptureDependency& dependency : sequence.origin->capture.dependencies) {
    loose.erase(dependency.node);
  }
  return loose.empty();
}

void terminate(const SequencePtr& sequence) {
  sequence->has_ended = true;
  while (!sequence->streams.empty()) leave(*sequence->streams.back());
  --sequence->graph->captures;
  running().erase(std::find(running().begin(), running().end(), sequence));
}

void drop_graph(CaptureSequence& sequence) {
  if (sequence.owns_graph) retire_graph(*sequence.graph);
  sequence.graph.reset();
}

}  // namespace

const std::vector<SequencePtr>& running_captures() {
  return running();
}

CUstreamCaptureMode& thread_capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void begin_capture(Stream& stream, CUstreamCaptureMode mode, CaptureTarget target) {
  static cuuint64_t captures_begun = 0;
  auto sequence = std::make_shared<CaptureSequence>();
  sequence->id = ++captures_begun;
  sequence->owns_graph = target.graph == nullptr;
  sequence->graph = sequence->owns_graph ? create_graph() : std::move(target.graph);
  ++sequence->graph->captures;
  sequence->mode = mode;
  sequence->thread = thread_ordinal();
  sequence->origin = &stream;
  running().push_back(sequence);
  enter(stream, sequence, std::move(target.dependencies));
}

CUresult end_capture(Stream& stream, CUgraph* graph) {
  *graph = nullptr;
  if (!is_capturing(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  const SequencePtr sequence = stream.capture.sequence;
  if (sequence->origin != &stream) return refuse(*sequence, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (sequence->mode != CU_STREAM_CAPTURE_MODE_RELAXED && sequence->thread != thread_ordinal()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult code = CUDA_SUCCESS;
  if (sequence->is_invalid) {
    code = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!is_joined(*sequence)) {
    code = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  terminate(sequence);
  if (code == CUDA_SUCCESS) {
    *graph = sequence->graph->handle;
    sequence->graph.reset();
  } else {
    drop_graph(*sequence);
  }
  return code;
}

void invalidate(CaptureSequence& sequence) {
  sequence.is_invalid = true;
}

bool is_legacy_unusable(const Stream& stream) {
  return stream.kind == StreamKind::kLegacy &&
         std::any_of(running().begin(), running().end(), [&](const SequencePtr& sequence) {
           return takes_part(*sequence, *stream.context, true);
         });
}

bool is_capturing(const Stream& stream) {
  return stream.capture.sequence != nullptr;
}

CUresult capture_work(Stream& stream, Work&& work) {
  CUresult code = check_valid(stream);
  const bool is_capturable =
      !std::holds_alternative<CallbackWork>(work) && !std::holds_alternative<FreeAsyncWork>(work);
  if (code == CUDA_SUCCESS && !is_capturable) {
    code = refuse(*stream.capture.sequence, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (code == CUDA_SUCCESS) {
    add_node(stream, std::move(work));
  } else if (auto* child = std::get_if<ChildGraphWork>(&work)) {
    retire_graph(*child->graph);
  }
  return code;
}

CUresult capture_event_record(Stream& stream, const std::shared_ptr<Event>& event, bool external) {
  if (const CUresult code = check_valid(stream); code != CUDA_SUCCESS) return code;
  if (external) {
    add_node(stream, EventRecordWork{event});
    return CUDA_SUCCESS;
  }
  event->capture = {stream.capture.sequence, stream.capture.dependencies};
  event->latest.reset();
  return CUDA_SUCCESS;
}

bool wait_concerns_capture(const Stream& stream, const Event& event) {
  return is_capturing(stream) || event.capture.sequence != nullptr;
}

CUresult capture_event_wait(Stream& stream, const std::shared_ptr<Event>& event, bool external,
                            bool event_recorded) {
  if (!is_capturing(stream)) return fork(stream, *event);
  if (const CUresult code = check_valid(stream); code != CUDA_SUCCESS) return code;
  if (!external) return join(stream, *event, event_recorded);
  add_node(stream, EventWaitWork{event});
  return CUDA_SUCCESS;
}

CUresult capture_forbids_legacy(Context& context) {
  if (context.active_captures == 0) return CUDA_SUCCESS;
  CUresult code = CUDA_SUCCESS;
  for (const SequencePtr& sequence : running()) {
    if (takes_part(*sequence, context, true))
      code = refuse(*sequence, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  return code;
}

CUresult capture_forbids_sync(Stream& stream) {
  if (stream.kind == StreamKind::kLegacy) return capture_forbids_legacy(*stream.context);
  return capture_forbids_uncapturable(stream);
}

CUresult capture_forbids_context_sync(Context* context) {
  CUresult code = CUDA_SUCCESS;
  for (const SequencePtr& sequence : running()) {
    if (context != nullptr && !takes_part(*sequence, *context, false)) continue;
    code = refuse(*sequence, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return code;
}

CUresult capture_forbids_event_sync(Event& event) {
  if (event.capture.sequence == nullptr) return capture_forbids_unsafe();
  return refuse(*event.capture.sequence, CUDA_ERROR_CAPTURED_EVENT);
}

CUresult capture_forbids_unsafe() {
  if (running().empty()) return CUDA_SUCCESS;
  const CUstreamCaptureMode mode = thread_capture_mode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult code = CUDA_SUCCESS;
  for (const SequencePtr& sequence : running()) {
    const bool is_ours =
        sequence->thread == thread_ordinal() && sequence->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool is_global =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && sequence->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (is_ours || is_global) code = refuse(*sequence, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return code;
}

CUresult capture_forbids_uncapturable(Stream& stream) {
  if (!is_capturing(stream)) {
    return stream.kind == StreamKind::kLegacy ? capture_forbids_legacy(*stream.context)
                                              : CUDA_SUCCESS;
  }
  if (const CUresult code = check_valid(stream); code != CUDA_SUCCESS) return code;
  return refuse(*stream.capture.sequence, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void capture_stream_destroyed(Stream& stream) {
  if (!is_capturing(stream)) return;
  const SequencePtr sequence = stream.capture.sequence;
  if (sequence->origin != &stream) {
    leave(stream);
    return;
  }
  terminate(sequence);
  sequence->is_invalid = true;
  drop_graph(*sequence);
}

}  // namespace softgpu
