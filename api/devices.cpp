// SPDX-License-Identifier: Apache-2.0
// Devices, and the tables of all objects. A device is opened once and stays.
#include <new>

#include "api/backend.h"
#include "api/borrow.h"
#include "api/failure.h"

namespace api {

constinit HandleTable<Device, cajeta_xpu_device, 1> g_devices;
constinit HandleTable<Stream, cajeta_xpu_stream, 2> g_streams;
constinit HandleTable<Event, cajeta_xpu_event, 3> g_events;
constinit HandleTable<Buffer, cajeta_xpu_buffer, 4> g_buffers;
constinit HandleTable<Module, cajeta_xpu_module, 5> g_modules;
constinit HandleTable<Kernel, cajeta_xpu_kernel, 6> g_kernels;

namespace {

constinit runtime::Mutex g_opening;

Device* find_open(const Backend& backend, int ordinal) noexcept {
  Device* found = nullptr;
  g_devices.for_each([&](Device& device, cajeta_xpu_device) {
    if (device.backend == &backend && device.ordinal == ordinal) found = &device;
  });
  return found;
}

int open_new(Backend& backend, int ordinal, Device** opened) noexcept {
  cajeta_xpu_device handle = nullptr;
  Device* device = g_devices.reserve(&handle);
  if (device == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a device");
  device->backend = &backend;
  device->ordinal = ordinal;
  device->handle = handle;
  if (const int result = backend.open(*device)) {
    g_devices.recycle(handle);
    return result;
  }
  Stream* stream = make_stream(*device, Stream::Origin::kDefault, nullptr);
  if (stream == nullptr) {
    g_devices.recycle(handle);
    return CAJETA_XPU_ERROR_OUT_OF_MEMORY;
  }
  device->default_stream = stream->handle;
  g_streams.publish(stream->handle);
  g_devices.publish(handle);
  *opened = device;
  return CAJETA_XPU_SUCCESS;
}

// What the streams of a device had been given at one moment. Without the memory to note it, nothing
// counts as finished.
class Snapshot {
 public:
  explicit Snapshot(const Device& device) noexcept {
    std::size_t count = 0;
    g_streams.for_each([&](Stream&, cajeta_xpu_stream) { ++count; });
    marks_ = new (std::nothrow) Mark[count];
    if (marks_ == nullptr) return;
    g_streams.for_each([&](Stream& stream, cajeta_xpu_stream) {
      if (stream.device == &device && count_ < count) marks_[count_++] = mark_of(stream);
    });
  }
  ~Snapshot() { delete[] marks_; }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  void finish_all() const noexcept {
    for (std::size_t i = 0; i < count_; ++i) finish(marks_[i]);
  }

 private:
  Mark* marks_ = nullptr;
  std::size_t count_ = 0;
};

void raise(std::atomic<std::uint64_t>& counter, std::uint64_t value) noexcept {
  std::uint64_t now = counter.load();
  while (now < value && !counter.compare_exchange_weak(now, value)) {
  }
}

}  // namespace

int open_device(Backend& backend, int ordinal, Device** device) noexcept {
  runtime::MutexGuard guard(g_opening);
  *device = find_open(backend, ordinal);
  if (*device != nullptr) return CAJETA_XPU_SUCCESS;
  int count = 0;
  if (const int result = backend.count_devices(&count)) return result;
  if (count == 0) {
    return fail(CAJETA_XPU_ERROR_NO_DEVICE, "no %s device: no driver, or none that it knows",
                backend.name());
  }
  if (ordinal < 0 || ordinal >= count) {
    return fail(CAJETA_XPU_ERROR_INVALID_DEVICE, "no %s device %d; there are 0 to %d",
                backend.name(), ordinal, count - 1);
  }
  return open_new(backend, ordinal, device);
}

}  // namespace api

using api::fail;
using api::fail_handle;

namespace {

int fail_backend(const char* call, const char* name) noexcept {
  return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: no backend %.40s; there are cuda and cpu", call,
              name != nullptr ? name : "(null)");
}

}  // namespace

extern "C" {

uint32_t cajeta_xpu_version(void) {
  return 10000;
}

int cajeta_xpu_device_count(const char* backend, int* count) {
  const api::ErrnoKeeper keeper;
  api::Backend* found = backend != nullptr ? api::find_backend(backend) : nullptr;
  if (found == nullptr) return fail_backend(__func__, backend);
  if (count == nullptr) return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", __func__);
  int number = 0;
  const int result = found->count_devices(&number);
  if (result == CAJETA_XPU_SUCCESS) *count = number;
  return result;
}

int cajeta_xpu_device_open(const char* backend, int ordinal, cajeta_xpu_device* device) {
  const api::ErrnoKeeper keeper;
  api::Backend* found = backend != nullptr ? api::find_backend(backend) : nullptr;
  if (found == nullptr) return fail_backend(__func__, backend);
  if (device == nullptr) return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", __func__);
  api::Device* opened = nullptr;
  const int result = api::open_device(*found, ordinal, &opened);
  if (result == CAJETA_XPU_SUCCESS) *device = opened->handle;
  return result;
}

int cajeta_xpu_device_synchronize(cajeta_xpu_device handle) {
  const api::ErrnoKeeper keeper;
  api::Device* device = api::g_devices.find(handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  const std::uint64_t begun = device->syncs_begun.fetch_add(1) + 1;
  const api::Snapshot snapshot(*device);
  const int result = device->backend->synchronize(*device);
  if (result != CAJETA_XPU_SUCCESS) return result;
  snapshot.finish_all();
  api::raise(device->syncs_done, begun);
  return result;
}

int cajeta_xpu_device_priority_range(cajeta_xpu_device handle, int* least, int* greatest) {
  const api::ErrnoKeeper keeper;
  api::Device* device = api::g_devices.find(handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (least == nullptr || greatest == nullptr) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", __func__);
  }
  return device->backend->priority_range(*device, least, greatest);
}

int cajeta_xpu_device_identity(cajeta_xpu_device handle, const char** backend, int* ordinal) {
  api::Device* device = api::g_devices.find(handle);
  if (device == nullptr) return fail_handle(__func__, "device");
  if (backend == nullptr || ordinal == nullptr) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", __func__);
  }
  *backend = device->backend->name();
  *ordinal = device->ordinal;
  return CAJETA_XPU_SUCCESS;
}

}  // extern "C"
