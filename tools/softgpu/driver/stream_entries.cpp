// SPDX-License-Identifier: Apache-2.0
// The cuStream* entries except capture (driver/capture.cpp) and memory operations
// (stream_values.cpp).

#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

template <class T>
CUresult set(T* out, T value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

CUresult create(CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Context& context = exact_current_context();
  require_usable(context);
  *out = create_stream(context, flags, priority).handle;
  return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  destroy_stream(resolve_stream_any(handle, false));
  return CUDA_SUCCESS;
}

CUresult synchronize(Stream& stream) {
  check(capture_forbids_sync(stream));
  Context& context = *stream.context;
  wait_for_stream(stream);
  return sticky_error(context);
}

CUresult query(Stream& stream) {
  check(capture_forbids_sync(stream));
  Context& context = *stream.context;
  // Copies, and the stream kept: the lock is dropped while work makes progress.
  const auto unfinished =
      stream.kind == StreamKind::kLegacy ? stream_dependencies(stream) : stream.tail;
  const std::shared_ptr<Stream> kept = unfinished.empty() ? nullptr : shared_stream(stream);
  for (const auto& operation : unfinished) {
    if (!operation->done) progress_for_query(operation, stream.polls);
    if (operation->done) continue;
    trace_query(stream, unfinished, false);
    return CUDA_ERROR_NOT_READY;
  }
  trace_query(stream, unfinished, true);
  stream.polls = 0;
  return sticky_error(context);
}

CUresult wait_event(Stream& stream, CUevent handle, unsigned flags) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  const bool is_external = flags == CU_EVENT_WAIT_EXTERNAL;
  if (wait_concerns_capture(stream, *event)) {
    return capture_event_wait(stream, event, is_external, event->latest != nullptr);
  }
  if (is_external) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, EventWaitWork{event});
}

CUresult add_callback(Stream& stream, CUstream handle, CUstreamCallback callback, void* user_data,
                      unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  check(capture_forbids_uncapturable(stream));
  return submit(stream, CallbackWork{callback, handle, user_data});
}

CUresult get_attribute(const Stream& stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = stream.access_window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value->syncPolicy = stream.sync_policy;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = stream.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = stream.domain_map;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = stream.domain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(Stream& stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      stream.access_window = value->accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      stream.sync_policy = value->syncPolicy;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      stream.priority = value->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      stream.domain_map = value->memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      stream.domain = value->memSyncDomain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult copy_attributes(Stream& to, const Stream& from) {
  if (to.context != from.context) return CUDA_ERROR_INVALID_VALUE;
  to.access_window = from.access_window;
  to.sync_policy = from.sync_policy;
  to.domain_map = from.domain_map;
  to.domain = from.domain;
  return CUDA_SUCCESS;
}

// Managed memory is always visible here: the call is only checked.
CUresult attach_memory(CUdeviceptr address, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
      flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto allocation = find_allocation(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::kManaged) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::EntryId;
using softgpu::resolve_stream;
using softgpu::resolve_stream_any;
using softgpu::Stream;

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* out, unsigned flags) {
  return softgpu::call(EntryId::cuStreamCreate,
                       [&] { return softgpu::create(out, flags, softgpu::kLeastPriority); });
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return softgpu::call(EntryId::cuStreamCreateWithPriority,
                       [&] { return softgpu::create(out, flags, priority); });
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  return softgpu::call(EntryId::cuStreamDestroy_v2, [&] { return softgpu::destroy(stream); });
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  return softgpu::call(EntryId::cuStreamDestroy, [&] { return softgpu::destroy(stream); });
}

}  // extern "C"

SOFTGPU_TWIN_ENTRY(cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream stream),
                   { return softgpu::synchronize(resolve_stream(stream, kPerThread)); })

SOFTGPU_TWIN_ENTRY(cuStreamQuery, cuStreamQuery_ptsz, (CUstream stream),
                   { return softgpu::query(resolve_stream(stream, kPerThread)); })

SOFTGPU_TWIN_ENTRY(cuStreamWaitEvent, cuStreamWaitEvent_ptsz,
                   (CUstream stream, CUevent event, unsigned flags), {
                     return softgpu::wait_event(resolve_stream(stream, kPerThread), event, flags);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamGetFlags, cuStreamGetFlags_ptsz, (CUstream stream, unsigned* flags),
                   { return softgpu::set(flags, resolve_stream_any(stream, kPerThread).flags); })

SOFTGPU_TWIN_ENTRY(cuStreamGetPriority, cuStreamGetPriority_ptsz, (CUstream stream, int* priority),
                   {
                     return softgpu::set(priority, resolve_stream_any(stream, kPerThread).priority);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamGetId, cuStreamGetId_ptsz, (CUstream stream, unsigned long long* id), {
  return softgpu::set(id,
                      static_cast<unsigned long long>(resolve_stream_any(stream, kPerThread).id));
})

SOFTGPU_TWIN_ENTRY(cuStreamGetDevice, cuStreamGetDevice_ptsz, (CUstream stream, CUdevice* device), {
  return softgpu::set(device, resolve_stream_any(stream, kPerThread).context->device);
})

SOFTGPU_TWIN_ENTRY(cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream stream, CUcontext* context), {
  return softgpu::set(context, resolve_stream_any(stream, kPerThread).context->handle);
})

SOFTGPU_TWIN_ENTRY(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz,
                   (CUstream stream, CUcontext* context, CUgreenCtx* green), {
                     if (context == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     const softgpu::Context& of = *resolve_stream_any(stream, kPerThread).context;
                     *context = softgpu::owner_of(of).handle;
                     *green = of.green_handle;
                     return CUDA_SUCCESS;
                   })

SOFTGPU_TWIN_ENTRY(cuStreamAddCallback, cuStreamAddCallback_ptsz,
                   (CUstream stream, CUstreamCallback callback, void* user_data, unsigned flags), {
                     return softgpu::add_callback(resolve_stream(stream, kPerThread), stream,
                                                  callback, user_data, flags);
                   })

SOFTGPU_TWIN_ENTRY(cuLaunchHostFunc, cuLaunchHostFunc_ptsz,
                   (CUstream stream, CUhostFn function, void* user_data), {
                     if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
                     return softgpu::submit(resolve_stream(stream, kPerThread),
                                            softgpu::HostWork{function, user_data});
                   })

SOFTGPU_TWIN_ENTRY(cuStreamGetAttribute, cuStreamGetAttribute_ptsz,
                   (CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value), {
                     return softgpu::get_attribute(resolve_stream_any(stream, kPerThread), id,
                                                   value);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamSetAttribute, cuStreamSetAttribute_ptsz,
                   (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value), {
                     return softgpu::set_attribute(resolve_stream(stream, kPerThread), id, value);
                   })

SOFTGPU_TWIN_ENTRY(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz,
                   (CUstream to, CUstream from), {
                     return softgpu::copy_attributes(resolve_stream(to, kPerThread),
                                                     resolve_stream(from, kPerThread));
                   })

SOFTGPU_TWIN_ENTRY(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz,
                   (CUstream stream, CUdeviceptr address, size_t, unsigned flags), {
                     resolve_stream(stream, kPerThread);
                     return softgpu::attach_memory(address, flags);
                   })
