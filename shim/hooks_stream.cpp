// SPDX-License-Identifier: Apache-2.0
// The life of streams, and the program's own captures, during which nothing is queued in their
// context.
#include "runtime/deferral.h"
#include "shim/hooks.h"

namespace shim {
namespace {

template <EntryId id, typename... Args>
CUresult create_stream(CUstream* stream, unsigned flags, Args... args) noexcept {
  CUresult result = forward_with_rule<id>(stream, flags, args...);
  if (result != CUDA_SUCCESS || stream == nullptr) return result;
  const ErrnoKeeper keeper;
  if (runtime::ContextState* context = runtime::current_context()) {
    runtime::stream_created(*stream, context, flags);
  }
  return result;
}

template <EntryId id>
CUresult destroy_stream(CUstream stream) noexcept {
  CUresult submitted = before<id>(stream);
  {
    const ErrnoKeeper keeper;
    // Recordings go first, while the stream's context can free them.
    runtime::stream_destroyed(stream);
  }
  return combine(submitted, forward_with_rule<id>(stream));
}

template <EntryId id, typename... Args>
CUresult change_attributes(CUstream stream, Args... args) noexcept {
  CUresult result = forward_with_rule<id>(stream, args...);
  if (result != CUDA_SUCCESS) return result;
  const ErrnoKeeper keeper;
  runtime::stream_attributes_changed(stream, row(id).per_thread_default());
  return result;
}

template <EntryId id, typename... Args>
CUresult begin_capture(CUstream stream, Args... args) noexcept {
  // Ahead of capture_begins(), which closes what other threads still add and cannot report it.
  CUresult submitted = before<id>(stream, args...);
  runtime::ContextState* context = nullptr;
  {
    const ErrnoKeeper keeper;
    context = runtime::capture_begins(stream, row(id).per_thread_default());
  }
  CUresult result = forward_with_rule<id>(stream, args...);
  if (result != CUDA_SUCCESS) runtime::capture_ended(context);
  return combine(submitted, result);
}

template <EntryId id>
bool is_capturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result;
  if constexpr (row(id).per_thread_default()) {
    result = runtime::real.cuStreamIsCapturing_ptsz(stream, &status);
  } else {
    result = runtime::real.cuStreamIsCapturing(stream, &status);
  }
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// A wrong-thread error does not end a capture, so the status decides.
template <EntryId id>
CUresult end_capture(CUstream stream, CUgraph* graph) noexcept {
  bool was_capturing = is_capturing<id>(stream);
  CUresult result = forward_with_rule<id>(stream, graph);
  if (was_capturing && !is_capturing<id>(stream)) {
    const ErrnoKeeper keeper;
    runtime::capture_ended(runtime::find_stream(stream, row(id).per_thread_default()).context);
  }
  return result;
}

}  // namespace

CUresult Hooks::cuStreamCreate(CUstream* stream, unsigned flags) noexcept {
  return create_stream<EntryId::cuStreamCreate>(stream, flags);
}
CUresult Hooks::cuStreamCreateWithPriority(CUstream* stream, unsigned flags,
                                           int priority) noexcept {
  return create_stream<EntryId::cuStreamCreateWithPriority>(stream, flags, priority);
}
CUresult Hooks::cuStreamDestroy(CUstream stream) noexcept {
  return destroy_stream<EntryId::cuStreamDestroy>(stream);
}
CUresult Hooks::cuStreamDestroy_v2(CUstream stream) noexcept {
  return destroy_stream<EntryId::cuStreamDestroy_v2>(stream);
}

CUresult Hooks::cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                                     const CUstreamAttrValue* value) noexcept {
  return change_attributes<EntryId::cuStreamSetAttribute>(stream, attribute, value);
}
CUresult Hooks::cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attribute,
                                          const CUstreamAttrValue* value) noexcept {
  return change_attributes<EntryId::cuStreamSetAttribute_ptsz>(stream, attribute, value);
}
CUresult Hooks::cuStreamCopyAttributes(CUstream to, CUstream from) noexcept {
  return change_attributes<EntryId::cuStreamCopyAttributes>(to, from);
}
CUresult Hooks::cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) noexcept {
  return change_attributes<EntryId::cuStreamCopyAttributes_ptsz>(to, from);
}

CUresult Hooks::cuStreamBeginCapture(CUstream stream) noexcept {
  return begin_capture<EntryId::cuStreamBeginCapture>(stream);
}
CUresult Hooks::cuStreamBeginCapture_ptsz(CUstream stream) noexcept {
  return begin_capture<EntryId::cuStreamBeginCapture_ptsz>(stream);
}
CUresult Hooks::cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) noexcept {
  return begin_capture<EntryId::cuStreamBeginCapture_v2>(stream, mode);
}
CUresult Hooks::cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) noexcept {
  return begin_capture<EntryId::cuStreamBeginCapture_v2_ptsz>(stream, mode);
}
CUresult Hooks::cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                            const CUgraphNode* dependencies,
                                            const CUgraphEdgeData* edges, size_t count,
                                            CUstreamCaptureMode mode) noexcept {
  return begin_capture<EntryId::cuStreamBeginCaptureToGraph>(stream, graph, dependencies, edges,
                                                             count, mode);
}
CUresult Hooks::cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                 const CUgraphNode* dependencies,
                                                 const CUgraphEdgeData* edges, size_t count,
                                                 CUstreamCaptureMode mode) noexcept {
  return begin_capture<EntryId::cuStreamBeginCaptureToGraph_ptsz>(stream, graph, dependencies,
                                                                  edges, count, mode);
}

CUresult Hooks::cuStreamEndCapture(CUstream stream, CUgraph* graph) noexcept {
  return end_capture<EntryId::cuStreamEndCapture>(stream, graph);
}
CUresult Hooks::cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) noexcept {
  return end_capture<EntryId::cuStreamEndCapture_ptsz>(stream, graph);
}

}  // namespace shim
