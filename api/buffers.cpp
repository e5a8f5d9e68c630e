// SPDX-License-Identifier: Apache-2.0
// Device memory as an object, so that launches can borrow it.
#include "api/backend.h"
#include "api/borrow.h"
#include "api/failure.h"

using api::Buffer;
using api::fail;
using api::fail_handle;
using api::g_buffers;

namespace {

// Common to both directions of a host transfer. Success: the objects are in place.
int check_transfer(const char* call, Buffer* buffer, std::size_t offset, const void* host,
                   std::size_t size, api::Stream* stream) noexcept {
  if (buffer == nullptr) return fail_handle(call, "buffer");
  if (stream == nullptr) return fail_handle(call, "stream");
  if (host == nullptr) return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", call);
  if (buffer->device != stream->device) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: the buffer is of another device", call);
  }
  if (offset > buffer->size || size > buffer->size - offset) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: %zu bytes at %zu, and the buffer has %zu",
                call, size, offset, buffer->size);
  }
  return CAJETA_XPU_SUCCESS;
}

}  // namespace

extern "C" {

int cajeta_xpu_buffer_create(cajeta_xpu_device device_handle, size_t size,
                             cajeta_xpu_buffer* handle) {
  const api::ErrnoKeeper keeper;
  api::Device* device = api::g_devices.find(device_handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (handle == nullptr || size == 0) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: %s", __func__,
                handle == nullptr ? "null pointer" : "size 0");
  }
  cajeta_xpu_buffer made = nullptr;
  Buffer* buffer = g_buffers.reserve(&made);
  if (buffer == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a buffer");
  buffer->device = device;
  buffer->size = size;
  {
    runtime::QueueGuard guard(buffer->lock);
    for (api::Mark& mark : buffer->borrowers) mark = {};
    buffer->is_widely_borrowed = false;
  }
  if (const int result = device->backend->allocate(*buffer)) {
    g_buffers.recycle(made);
    return result;
  }
  g_buffers.publish(made);
  *handle = made;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_buffer_release(cajeta_xpu_buffer handle) {
  const api::ErrnoKeeper keeper;
  Buffer* buffer = g_buffers.retire(handle);
  if (buffer == nullptr) {
    return g_buffers.is_ended(handle) ? CAJETA_XPU_SUCCESS : fail_handle(__func__, "buffer");
  }
  api::Backend& backend = *buffer->device->backend;
  int submitted = CAJETA_XPU_SUCCESS;
  api::for_each_borrower(*buffer, [&](api::Stream& stream) {
    const int result = backend.flush(stream);
    if (submitted == CAJETA_XPU_SUCCESS) submitted = result;
  });
  const int result = backend.release(*buffer);
  g_buffers.recycle(handle);
  return result != CAJETA_XPU_SUCCESS ? result : submitted;
}

int cajeta_xpu_buffer_range(cajeta_xpu_buffer handle, uint64_t* address, size_t* size) {
  Buffer* buffer = g_buffers.find(handle);
  if (buffer == nullptr) return fail_handle(__func__, "buffer");
  if (address != nullptr) *address = buffer->address;
  if (size != nullptr) *size = buffer->size;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_buffer_is_borrowed(cajeta_xpu_buffer handle, int* is_borrowed) {
  Buffer* buffer = g_buffers.find(handle);
  if (buffer == nullptr) return fail_handle(__func__, "buffer");
  if (is_borrowed == nullptr) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", __func__);
  }
  *is_borrowed = api::is_borrowed(*buffer) ? 1 : 0;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_buffer_write(cajeta_xpu_buffer handle, size_t offset, const void* source,
                            size_t size, cajeta_xpu_stream stream_handle) {
  const api::ErrnoKeeper keeper;
  Buffer* buffer = g_buffers.find(handle);
  api::Stream* stream = api::g_streams.find(stream_handle);
  if (const int fault = check_transfer(__func__, buffer, offset, source, size, stream)) {
    return fault;
  }
  const api::Mark mark = api::mark_of(*stream);
  const int result =
      stream->device->backend->write(*stream, buffer->address + offset, source, size);
  if (result == CAJETA_XPU_SUCCESS) api::finish_stream(*stream, mark);
  return result;
}

int cajeta_xpu_buffer_read(cajeta_xpu_buffer handle, size_t offset, void* destination, size_t size,
                           cajeta_xpu_stream stream_handle) {
  const api::ErrnoKeeper keeper;
  Buffer* buffer = g_buffers.find(handle);
  api::Stream* stream = api::g_streams.find(stream_handle);
  if (const int fault = check_transfer(__func__, buffer, offset, destination, size, stream)) {
    return fault;
  }
  const api::Mark mark = api::mark_of(*stream);
  const int result =
      stream->device->backend->read(*stream, destination, buffer->address + offset, size);
  if (result == CAJETA_XPU_SUCCESS) api::finish_stream(*stream, mark);
  return result;
}

}  // extern "C"
