// SPDX-License-Identifier: Apache-2.0
// Streams: made, adopted, the default ones, and what can be asked of them and done to them.
#include "api/backend.h"
#include "api/borrow.h"
#include "api/failure.h"

namespace api {
namespace {

constinit thread_local cajeta_xpu_stream t_current [[gnu::tls_model("initial-exec")]] = nullptr;
constinit runtime::Mutex g_adopting;
pthread_key_t g_thread_end;
constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;
constinit bool g_has_key = false;  // written under g_once

void make_key() noexcept {
  g_has_key = pthread_key_create(&g_thread_end, [](void* stream) {
                const auto handle = static_cast<cajeta_xpu_stream>(stream);
                if (g_streams.retire(handle) != nullptr) g_streams.recycle(handle);
              }) == 0;
}

// The first device there is.
int open_current_device(Device** device) noexcept {
  int count = 0;
  if (cuda_backend().count_devices(&count) == CAJETA_XPU_SUCCESS && count > 0) {
    return open_device(cuda_backend(), 0, device);
  }
  return open_device(cpu_backend(), 0, device);
}

int fail_memory(const char* call) noexcept {
  return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "%s: no memory for a stream", call);
}

int fail_null(const char* call) noexcept {
  return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", call);
}

Stream* find_adopted(const Device& device, std::uintptr_t native) noexcept {
  Stream* found = nullptr;
  g_streams.for_each([&](Stream& stream, cajeta_xpu_stream) {
    bool is_it = stream.origin == Stream::Origin::kAdopted && stream.device == &device &&
                 stream.native.load() == native;
    if (is_it) found = &stream;
  });
  return found;
}

int adopt(Device& device, std::uintptr_t native, cajeta_xpu_stream* handle) noexcept {
  runtime::MutexGuard guard(g_adopting);
  Stream* known = find_adopted(device, native);
  Stream* line = native == 1 ? g_streams.find(device.default_stream) : nullptr;
  Stream* stream = known != nullptr ? known : make_stream(device, Stream::Origin::kAdopted, line);
  if (stream == nullptr) return fail_memory("cajeta_xpu_stream_from_native");
  stream->native = native;
  // Also when it is known: its owner may have destroyed it, and the driver given the number again.
  const int result = device.backend->adopt_stream(*stream);
  if (result != CAJETA_XPU_SUCCESS) {
    if (known == nullptr) g_streams.recycle(stream->handle);
    return result;
  }
  *handle = stream->handle;
  if (known == nullptr) g_streams.publish(stream->handle);
  return result;
}

}  // namespace

Stream* make_stream(Device& device, Stream::Origin origin, Stream* line) noexcept {
  cajeta_xpu_stream handle = nullptr;
  Stream* stream = g_streams.reserve(&handle);
  if (stream == nullptr) return nullptr;
  stream->device = &device;
  stream->handle = handle;
  stream->origin = origin;
  stream->native = 0;
  stream->context = device.context;
  stream->line = line != nullptr ? line : stream;
  stream->launched = 0;
  stream->finished = 0;
  stream->uncounted = 0;
  runtime::QueueGuard guard(stream->covers_lock);
  for (Cover& cover : stream->covers) cover = {};
  return stream;
}

}  // namespace api

using api::fail;
using api::fail_handle;
using api::fail_null;
using api::g_devices;
using api::g_streams;
using api::Stream;

extern "C" {

int cajeta_xpu_stream_current(cajeta_xpu_stream* handle) {
  const api::ErrnoKeeper keeper;
  if (handle == nullptr) return fail_null(__func__);
  if (api::t_current == nullptr) {
    pthread_once(&api::g_once, [] { api::make_key(); });
    api::Device* device = nullptr;
    if (const int result = api::open_current_device(&device)) return result;
    Stream* line = g_streams.find(device->default_stream);
    Stream* stream = api::make_stream(*device, Stream::Origin::kDefault, line);
    if (stream == nullptr) return api::fail_memory(__func__);
    g_streams.publish(stream->handle);
    api::t_current = stream->handle;
    // Without a key the object stays when the thread ends, and nothing else is wrong.
    if (api::g_has_key) pthread_setspecific(api::g_thread_end, api::t_current);
  }
  *handle = api::t_current;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_default(cajeta_xpu_device handle, cajeta_xpu_stream* stream) {
  api::Device* device = g_devices.find(handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (stream == nullptr) return fail_null(__func__);
  *stream = device->default_stream;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_create(cajeta_xpu_device device_handle, unsigned flags, int priority,
                             cajeta_xpu_stream* handle) {
  const api::ErrnoKeeper keeper;
  api::Device* device = g_devices.find(device_handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (handle == nullptr) return fail_null(__func__);
  if ((flags & ~unsigned{CAJETA_XPU_STREAM_NON_BLOCKING}) != 0) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: unknown flags 0x%x; 0 and 1 are legal",
                __func__, flags);
  }
  Stream* stream = api::make_stream(*device, Stream::Origin::kCreated, nullptr);
  if (stream == nullptr) return api::fail_memory(__func__);
  const cajeta_xpu_stream made = stream->handle;
  if (const int result = device->backend->create_stream(*stream, flags, priority)) {
    g_streams.recycle(made);
    return result;
  }
  g_streams.publish(made);
  *handle = made;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_from_native(cajeta_xpu_device device_handle, uintptr_t native,
                                  cajeta_xpu_stream* handle) {
  const api::ErrnoKeeper keeper;
  api::Device* device = g_devices.find(device_handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (handle == nullptr) return fail_null(__func__);
  if (native == 0) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE,
                "%s: handle 0 is the default stream, which cajeta_xpu_stream_default gives",
                __func__);
  }
  return api::adopt(*device, native, handle);
}

int cajeta_xpu_stream_destroy(cajeta_xpu_stream handle) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) {
    return g_streams.is_ended(handle) ? CAJETA_XPU_SUCCESS : fail_handle(__func__, "stream");
  }
  if (stream->origin != Stream::Origin::kCreated) return CAJETA_XPU_SUCCESS;
  stream = g_streams.retire(handle);
  if (stream == nullptr) return CAJETA_XPU_SUCCESS;  // another thread was first
  const int result = stream->device->backend->destroy_stream(*stream);
  g_streams.recycle(handle);
  return result;
}

int cajeta_xpu_stream_device(cajeta_xpu_stream handle, cajeta_xpu_device* device) {
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (device == nullptr) return fail_null(__func__);
  *device = stream->device->handle;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_native(cajeta_xpu_stream handle, uintptr_t* native) {
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (native == nullptr) return fail_null(__func__);
  *native = stream->native.load();
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_is_default(cajeta_xpu_stream handle, int* is_default) {
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (is_default == nullptr) return fail_null(__func__);
  *is_default = stream->origin == Stream::Origin::kDefault ? 1 : 0;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_properties(cajeta_xpu_stream handle, unsigned* flags, int* priority) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (flags == nullptr || priority == nullptr) return fail_null(__func__);
  return stream->device->backend->stream_properties(*stream, flags, priority);
}

int cajeta_xpu_stream_query_idle(cajeta_xpu_stream handle, int* is_idle) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (is_idle == nullptr) return fail_null(__func__);
  bool idle = false;
  const int result = stream->device->backend->query_stream(*stream, &idle);
  if (result == CAJETA_XPU_SUCCESS) *is_idle = idle ? 1 : 0;
  return result;
}

int cajeta_xpu_stream_synchronize(cajeta_xpu_stream handle) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  const api::Mark mark = api::mark_of(*stream);
  const int result = stream->device->backend->synchronize_stream(*stream);
  if (result == CAJETA_XPU_SUCCESS) api::finish_stream(*stream, mark);
  return result;
}

int cajeta_xpu_stream_set_deferred(cajeta_xpu_stream handle, int deferred) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  return stream->device->backend->set_deferred(*stream, deferred != 0);
}

int cajeta_xpu_stream_is_deferred(cajeta_xpu_stream handle, int* is_deferred) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (is_deferred == nullptr) return fail_null(__func__);
  *is_deferred = stream->device->backend->is_deferred(*stream) ? 1 : 0;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_flush(cajeta_xpu_stream handle) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  return stream->device->backend->flush(*stream);
}

int cajeta_xpu_stream_pending_launches(cajeta_xpu_stream handle, uint64_t* launches) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (launches == nullptr) return fail_null(__func__);
  *launches = stream->device->backend->pending_launches(*stream);
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_defer_stat(int which, uint64_t* value) {
  const api::ErrnoKeeper keeper;
  if (value == nullptr) return fail_null(__func__);
  if (which < CAJETA_XPU_DEFER_QUEUED || which > CAJETA_XPU_DEFER_FLUSHES) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: no counter %d; 0 to 6 are legal", __func__,
                which);
  }
  *value = api::total_stat(which);
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_stream_defer_stat(cajeta_xpu_stream handle, int which, uint64_t* value) {
  const api::ErrnoKeeper keeper;
  Stream* stream = g_streams.find(handle);
  if (stream == nullptr) return fail_handle(__func__, "stream");
  if (value == nullptr) return fail_null(__func__);
  if (which < CAJETA_XPU_DEFER_QUEUED || which > CAJETA_XPU_DEFER_FLUSHES) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: no counter %d; 0 to 6 are legal", __func__,
                which);
  }
  *value = stream->device->backend->stream_stat(*stream, which);
  return CAJETA_XPU_SUCCESS;
}

}  // extern "C"
