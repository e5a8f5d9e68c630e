// SPDX-License-Identifier: Apache-2.0
// Events, and streams that wait for them.
#include "api/backend.h"
#include "api/borrow.h"
#include "api/failure.h"

using api::Event;
using api::fail;
using api::fail_handle;
using api::g_events;

namespace {

constexpr unsigned kAllFlags = CAJETA_XPU_EVENT_BLOCKING_SYNC | CAJETA_XPU_EVENT_DISABLE_TIMING |
                               CAJETA_XPU_EVENT_INTERPROCESS;

api::Mark recorded_in(Event& event) noexcept {
  runtime::QueueGuard guard(event.lock);
  return event.recorded;
}

// Null when legal.
const char* fault_of(unsigned flags) noexcept {
  if ((flags & ~kAllFlags) != 0) return "unknown flags; 0 to 7 are legal";
  bool is_timed = (flags & CAJETA_XPU_EVENT_DISABLE_TIMING) == 0;
  bool is_shared = (flags & CAJETA_XPU_EVENT_INTERPROCESS) != 0;
  return is_shared && is_timed ? "INTERPROCESS needs DISABLE_TIMING" : nullptr;
}

}  // namespace

extern "C" {

int cajeta_xpu_event_create(cajeta_xpu_device device_handle, unsigned flags,
                            cajeta_xpu_event* handle) {
  const api::ErrnoKeeper keeper;
  api::Device* device = api::g_devices.find(device_handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  const char* fault = handle == nullptr ? "null pointer" : fault_of(flags);
  if (fault != nullptr) return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: %s", __func__, fault);
  cajeta_xpu_event made = nullptr;
  Event* event = g_events.reserve(&made);
  if (event == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for an event");
  event->device = device;
  event->flags = flags;
  {
    runtime::QueueGuard guard(event->lock);
    event->recorded = {};
    event->recorded_ns = -1;
  }
  if (const int result = device->backend->create_event(*event)) {
    g_events.recycle(made);
    return result;
  }
  g_events.publish(made);
  *handle = made;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_event_destroy(cajeta_xpu_event handle) {
  const api::ErrnoKeeper keeper;
  Event* event = g_events.retire(handle);
  if (event == nullptr) {
    return g_events.is_ended(handle) ? CAJETA_XPU_SUCCESS : fail_handle(__func__, "event");
  }
  const int result = event->device->backend->destroy_event(*event);
  g_events.recycle(handle);
  return result;
}

int cajeta_xpu_event_record(cajeta_xpu_event handle, cajeta_xpu_stream stream_handle) {
  const api::ErrnoKeeper keeper;
  Event* event = g_events.find(handle);
  if (event == nullptr) return fail_handle(__func__, "event");
  api::Stream* stream = api::g_streams.find(stream_handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (event->device != stream->device) {
    return fail(CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE,
                "%s: the event and the stream belong to two devices", __func__);
  }
  const api::Mark mark = api::mark_of(*stream);
  const int result = event->device->backend->record_event(*event, *stream);
  if (result != CAJETA_XPU_SUCCESS) return result;
  runtime::QueueGuard guard(event->lock);
  event->recorded = mark;
  return result;
}

int cajeta_xpu_event_query(cajeta_xpu_event handle) {
  const api::ErrnoKeeper keeper;
  Event* event = g_events.find(handle);
  if (event == nullptr) return fail_handle(__func__, "event");
  return event->device->backend->query_event(*event);
}

int cajeta_xpu_event_synchronize(cajeta_xpu_event handle) {
  const api::ErrnoKeeper keeper;
  Event* event = g_events.find(handle);
  if (event == nullptr) return fail_handle(__func__, "event");
  const api::Mark mark = recorded_in(*event);
  const int result = event->device->backend->synchronize_event(*event);
  if (result != CAJETA_XPU_SUCCESS) return result;
  if (api::Stream* stream = api::g_streams.find(mark.stream)) api::finish_stream(*stream, mark);
  return result;
}

int cajeta_xpu_event_elapsed_ms(cajeta_xpu_event start_handle, cajeta_xpu_event end_handle,
                                float* milliseconds) {
  const api::ErrnoKeeper keeper;
  Event* start = g_events.find(start_handle);
  Event* end = g_events.find(end_handle);
  if (start == nullptr || end == nullptr) return fail_handle(__func__, "event");
  if (milliseconds == nullptr || start->device->backend != end->device->backend) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: %s", __func__,
                milliseconds == nullptr ? "null pointer" : "events of two backends");
  }
  return start->device->backend->elapsed_ms(*start, *end, milliseconds);
}

int cajeta_xpu_stream_wait_event(cajeta_xpu_stream stream_handle, cajeta_xpu_event handle) {
  const api::ErrnoKeeper keeper;
  api::Stream* stream = api::g_streams.find(stream_handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  Event* event = g_events.find(handle);
  if (event == nullptr) return fail_handle(__func__, "event");
  if (stream->device->backend != event->device->backend) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: the event is of another backend", __func__);
  }
  const api::Mark mark = recorded_in(*event);
  const int result = stream->device->backend->wait_event(*stream, *event);
  if (result == CAJETA_XPU_SUCCESS) api::cover(*stream, mark);
  return result;
}

}  // extern "C"
