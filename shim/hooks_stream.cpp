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
  if (is_mutant(Mutant::kStreamEndUnnoticed)) return runtime::slot_of<id>()(stream);
  before<id>(stream);
  runtime::ContextState* capture = nullptr;
  {
    const ErrnoKeeper keeper;
    capture = runtime::capture_of(stream);
    // Recordings go first, while the stream's context can free them.
    runtime::stream_destroyed(stream);
  }
  // Without the rule: the stream is unknown by now, and ahead of unknown streams everything goes.
  CUresult result = call_driver<id>(stream);
  if (capture != nullptr && result == CUDA_SUCCESS) runtime::capture_ended(capture);
  return result;
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
  // Ahead of capture_begins(), which closes what other threads still add.
  before<id>(stream, args...);
  runtime::ContextState* context = nullptr;
  {
    const ErrnoKeeper keeper;
    context = runtime::capture_begins(stream, row(id).per_thread_default());
  }
  CUresult result = forward_with_rule<id>(stream, args...);
  if (result == CUDA_SUCCESS) {
    runtime::capture_began(stream, row(id).per_thread_default());
  } else {
    runtime::capture_ended(context);
  }
  return result;
}

// A wrong-thread error does not end a capture, so the status decides.
template <EntryId id>
CUresult end_capture(CUstream stream, CUgraph* graph) noexcept {
  constexpr bool is_per_thread = row(id).per_thread_default();
  bool was_capturing = runtime::is_capturing(stream, is_per_thread);
  CUresult result = forward_with_rule<id>(stream, graph);
  if (was_capturing && !runtime::is_capturing(stream, is_per_thread)) {
    const ErrnoKeeper keeper;
    runtime::capture_ended_on(stream, is_per_thread);
  }
  return result;
}

template <EntryId id>
CUresult wait_event(CUstream stream, CUevent event, unsigned flags) noexcept {
  CUresult result = forward_with_rule<id>(stream, event, flags);
  if (result == CUDA_SUCCESS) runtime::stream_waited(stream, row(id).per_thread_default());
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

CUresult Hooks::cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) noexcept {
  return wait_event<EntryId::cuStreamWaitEvent>(stream, event, flags);
}
CUresult Hooks::cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) noexcept {
  return wait_event<EntryId::cuStreamWaitEvent_ptsz>(stream, event, flags);
}

}  // namespace shim
