// SPDX-License-Identifier: Apache-2.0
// Events and the cuEvent* entries. What a record and a wait do when their turn comes is in
// engine_operations.cpp.

#include "tools/softgpu/driver/event.h"

#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {

EventTable& events() {
  static auto* const table = new EventTable();
  return *table;
}

std::shared_ptr<Event> event_of(CUevent handle) {
  std::shared_ptr<Event> event = events().find_shared(handle);
  if (event == nullptr) fail(CUDA_ERROR_INVALID_HANDLE);
  return event;
}

bool is_pending(const Event& event) {
  return event.latest != nullptr && !event.latest->done;
}

void destroy_events(Context& context) {
  for (const auto& event : events().all()) {
    if (event->context != &context) continue;
    event->is_destroyed = true;
    events().remove(event->handle);
  }
}

namespace {

CUresult create(CUevent* out, unsigned flags) {
  constexpr unsigned kAll =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~kAll) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  static std::uint64_t created = 0;
  auto event = std::make_shared<Event>();
  event->context = &usable_context();
  event->flags = flags;
  event->ordinal = ++created;
  event->handle = events().add(event);
  *out = event->handle;
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent handle) {
  const std::shared_ptr<Event> event = events().remove(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->is_destroyed = true;
  return CUDA_SUCCESS;
}

CUresult record(CUevent handle, Stream& stream, unsigned flags) {
  const std::shared_ptr<Event> event = event_of(handle);
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (event->context != &owner_of(*stream.context)) {
    note_misuse(Misuse::kContext);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const bool is_external = flags == CU_EVENT_RECORD_EXTERNAL;
  if (is_capturing(stream)) return capture_event_record(stream, event, is_external);
  if (is_external) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, EventRecordWork{event});
}

// The answer to a query of the latest record. The lock may be dropped.
bool is_done(Event& event) {
  const std::shared_ptr<Operation> record = event.latest;
  if (record == nullptr) return true;
  if (!record->done) progress_for_query(record, event.polls);
  trace_query(event, record, record->done);
  return !is_pending(event);
}

CUresult query(CUevent handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  require_usable(*event->context);
  check(capture_forbids_event_sync(*event));
  if (!is_done(*event)) return CUDA_ERROR_NOT_READY;
  event->polls = 0;
  return event->context->sticky_error;
}

CUresult synchronize(CUevent handle) {
  const std::shared_ptr<Event> event = event_of(handle);
  require_usable(*event->context);
  check(capture_forbids_event_sync(*event));
  if (event->latest != nullptr) wait_for(std::shared_ptr<Operation>(event->latest));
  return event->context->sticky_error;
}

CUresult elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const std::shared_ptr<Event> start = event_of(start_handle), end = event_of(end_handle);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& event : {start, end}) {
    require_usable(*event->context);
    if ((event->flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    check(capture_forbids_event_sync(*event));
    if (event->latest == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  for (const auto& event : {start, end}) {
    if (!is_done(*event)) return CUDA_ERROR_NOT_READY;
  }
  const auto nanoseconds = static_cast<std::int64_t>(end->time_ns - start->time_ns);
  *milliseconds = static_cast<float>(static_cast<double>(nanoseconds) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::EntryId;
using softgpu::resolve_stream;

extern "C" {

CUresult CUDAAPI cuEventCreate(CUevent* out, unsigned flags) {
  return softgpu::call(EntryId::cuEventCreate, [&] { return softgpu::create(out, flags); });
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  return softgpu::call(EntryId::cuEventDestroy_v2, [&] { return softgpu::destroy(event); });
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
  return softgpu::call(EntryId::cuEventDestroy, [&] { return softgpu::destroy(event); });
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  return softgpu::call(EntryId::cuEventQuery, [&] { return softgpu::query(event); });
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  return softgpu::call(EntryId::cuEventSynchronize, [&] { return softgpu::synchronize(event); });
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return softgpu::call(EntryId::cuEventElapsedTime,
                       [&] { return softgpu::elapsed(milliseconds, start, end); });
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return softgpu::call(EntryId::cuEventElapsedTime_v2,
                       [&] { return softgpu::elapsed(milliseconds, start, end); });
}

}  // extern "C"

SOFTGPU_TWIN_ENTRY(cuEventRecord, cuEventRecord_ptsz, (CUevent event, CUstream stream),
                   { return softgpu::record(event, resolve_stream(stream, kPerThread), 0); })

SOFTGPU_TWIN_ENTRY(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz,
                   (CUevent event, CUstream stream, unsigned flags),
                   { return softgpu::record(event, resolve_stream(stream, kPerThread), flags); })
