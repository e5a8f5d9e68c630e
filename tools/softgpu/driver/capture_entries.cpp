// SPDX-License-Identifier: Apache-2.0
// The capture entries in all their ABI versions. Each takes the driver lock.
#include <algorithm>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/capture_sequence.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

// A list of nodes of `graph` with optional annotations.
std::vector<CaptureDependency> dependencies_in(const Graph& graph, const CUgraphNode* nodes,
                                               const CUgraphEdgeData* data, std::size_t count) {
  if (count > 0 && nodes == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  std::vector<CaptureDependency> dependencies;
  for (std::size_t i = 0; i < count; ++i) {
    if (node_of(nodes[i]).graph != &graph) fail(CUDA_ERROR_INVALID_VALUE);
    dependencies.push_back({nodes[i], data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  return dependencies;
}

struct GraphTarget {
  CUgraph graph;
  const CUgraphNode* nodes;
  const CUgraphEdgeData* data;
  std::size_t count;
};

// `into` null: capture into a new graph.
CUresult begin(Stream& stream, CUstreamCaptureMode mode, const GraphTarget* into) {
  if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (stream.kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (is_capturing(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  CaptureTarget target;
  if (into != nullptr) {
    target.graph = graphs().find_shared(into->graph);
    if (target.graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    target.dependencies = dependencies_in(*target.graph, into->nodes, into->data, into->count);
  }
  begin_capture(stream, mode, std::move(target));
  return CUDA_SUCCESS;
}

CUresult end(Stream& stream, CUgraph* graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return end_capture(stream, graph);
}

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (!is_capturing(stream)) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture.sequence->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// Where cuStreamGetCaptureInfo puts its answers; all but the status are optional.
struct InfoOut {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** dependencies = nullptr;
  const CUgraphEdgeData** data = nullptr;
  std::size_t* count = nullptr;
};

CUresult fill_info(Stream& stream, const InfoOut& out) {
  StreamCapture& capture = stream.capture;
  const bool has_data = std::any_of(capture.dependencies.begin(), capture.dependencies.end(),
                                    [](const CaptureDependency& d) { return !is_default(d.data); });
  if (out.dependencies != nullptr && out.data == nullptr && has_data) return CUDA_ERROR_LOSSY_QUERY;
  capture.returned_nodes.clear();
  capture.returned_edges.clear();
  for (const CaptureDependency& dependency : capture.dependencies) {
    capture.returned_nodes.push_back(dependency.node);
    capture.returned_edges.push_back(dependency.data);
  }
  if (out.id != nullptr) *out.id = capture.sequence->id;
  if (out.graph != nullptr) *out.graph = capture.sequence->graph->handle;
  if (out.dependencies != nullptr) *out.dependencies = capture.returned_nodes.data();
  if (out.data != nullptr) *out.data = capture.returned_edges.data();
  if (out.count != nullptr) *out.count = capture.returned_nodes.size();
  return CUDA_SUCCESS;
}

CUresult get_info(Stream& stream, const InfoOut& out) {
  if (out.status == nullptr || (out.data != nullptr && out.dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (is_legacy_unusable(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *out.status = status_of(stream);
  return *out.status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? fill_info(stream, out) : CUDA_SUCCESS;
}

// Leaving the set is the client's way to say that these nodes need no join.
void forget_tails(const StreamCapture& capture) {
  for (const CaptureDependency& dependency : capture.dependencies) {
    capture.sequence->tails.erase(dependency.node);
  }
}

CUresult update_dependencies(Stream& stream, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                             std::size_t count, unsigned flags) {
  StreamCapture& capture = stream.capture;
  if (!is_capturing(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture.sequence->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<CaptureDependency> given =
      dependencies_in(*capture.sequence->graph, nodes, data, count);
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    forget_tails(capture);
    capture.dependencies.clear();
  }
  for (const CaptureDependency& dependency : given) {
    const bool is_known =
        std::any_of(capture.dependencies.begin(), capture.dependencies.end(),
                    [&](const CaptureDependency& known) { return known.node == dependency.node; });
    if (!is_known) capture.dependencies.push_back(dependency);
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

SOFTGPU_TWIN_ENTRY(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, (CUstream hStream), {
  return begin(resolve_stream(hStream, kPerThread), CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr);
})

SOFTGPU_TWIN_ENTRY(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz,
                   (CUstream hStream, CUstreamCaptureMode mode),
                   { return begin(resolve_stream(hStream, kPerThread), mode, nullptr); })

SOFTGPU_TWIN_ENTRY(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
                   (CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                    const CUgraphEdgeData* dependencyData, size_t numDependencies,
                    CUstreamCaptureMode mode),
                   {
                     const GraphTarget into{hGraph, dependencies, dependencyData, numDependencies};
                     return begin(resolve_stream(hStream, kPerThread), mode, &into);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamEndCapture, cuStreamEndCapture_ptsz,
                   (CUstream hStream, CUgraph* phGraph),
                   { return end(resolve_stream(hStream, kPerThread), phGraph); })

SOFTGPU_TWIN_ENTRY(cuStreamIsCapturing, cuStreamIsCapturing_ptsz,
                   (CUstream hStream, CUstreamCaptureStatus* captureStatus),
                   { return get_info(resolve_stream(hStream, kPerThread), {captureStatus}); })

SOFTGPU_TWIN_ENTRY(
    cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz,
    (CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out), {
      return get_info(resolve_stream(hStream, kPerThread), {captureStatus_out, id_out});
    })

SOFTGPU_TWIN_ENTRY(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
                   (CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                    CUgraph* graph_out, const CUgraphNode** dependencies_out,
                    size_t* numDependencies_out),
                   {
                     return get_info(resolve_stream(hStream, kPerThread),
                                     {captureStatus_out, id_out, graph_out, dependencies_out,
                                      nullptr, numDependencies_out});
                   })

SOFTGPU_TWIN_ENTRY(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz,
                   (CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                    CUgraph* graph_out, const CUgraphNode** dependencies_out,
                    const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out),
                   {
                     return get_info(resolve_stream(hStream, kPerThread),
                                     {captureStatus_out, id_out, graph_out, dependencies_out,
                                      edgeData_out, numDependencies_out});
                   })

SOFTGPU_TWIN_ENTRY(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz,
                   (CUstream hStream, CUgraphNode* dependencies, size_t numDependencies,
                    unsigned flags),
                   {
                     return update_dependencies(resolve_stream(hStream, kPerThread), dependencies,
                                                nullptr, numDependencies, flags);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz,
                   (CUstream hStream, CUgraphNode* dependencies,
                    const CUgraphEdgeData* dependencyData, size_t numDependencies, unsigned flags),
                   {
                     return update_dependencies(resolve_stream(hStream, kPerThread), dependencies,
                                                dependencyData, numDependencies, flags);
                   })

extern "C" {

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call(EntryId::cuThreadExchangeStreamCaptureMode, [&]() -> CUresult {
    if (mode == nullptr || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, thread_capture_mode());
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
