// SPDX-License-Identifier: Apache-2.0
// The C++ interface of cajeta-xpu: header-only over cajeta/xpu.h, C++17. libcajeta_xpu.so is found
// at run time: preloaded, linked, or by CAJETA_XPU_LIBRARY; where it is absent the first call
// throws LibraryNotFoundError, which says so. Objects own their handles and may be moved, not
// copied. Failures are exceptions, one class for each named result. What the calls do, which errors
// they have and which threads may call them is in xpu.h; nothing here adds a lock, and launching
// allocates nothing. Names: KernelStream has those of the cajeta language, all else is snake_case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "cajeta/xpu.h"
#include "cajeta/xpu_loader.h"

namespace cajeta::xpu {

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// A class of its own for each result that programs handle; any other is an Error with its code.
template <int kCode>
class NamedError : public Error {
 public:
  explicit NamedError(const std::string& what) : Error(kCode, what) {}
};
using InvalidArgumentError = NamedError<CAJETA_XPU_ERROR_INVALID_VALUE>;
using InvalidValueError = InvalidArgumentError;
using OutOfMemoryError = NamedError<CAJETA_XPU_ERROR_OUT_OF_MEMORY>;
using NoDeviceError = NamedError<CAJETA_XPU_ERROR_NO_DEVICE>;
using InvalidDeviceError = NamedError<CAJETA_XPU_ERROR_INVALID_DEVICE>;
using InvalidImageError = NamedError<CAJETA_XPU_ERROR_INVALID_IMAGE>;
using InvalidResourceHandleError = NamedError<CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE>;
using NotFoundError = NamedError<CAJETA_XPU_ERROR_NOT_FOUND>;
using NotReadyError = NamedError<CAJETA_XPU_ERROR_NOT_READY>;
using IllegalAddressError = NamedError<CAJETA_XPU_ERROR_ILLEGAL_ADDRESS>;
using OutOfResourcesError = NamedError<CAJETA_XPU_ERROR_OUT_OF_RESOURCES>;
using LaunchTimeoutError = NamedError<CAJETA_XPU_ERROR_LAUNCH_TIMEOUT>;
using LaunchFailureError = NamedError<CAJETA_XPU_ERROR_LAUNCH_FAILURE>;
using CooperativeLaunchTooLargeError = NamedError<CAJETA_XPU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE>;
using UnsupportedError = NamedError<CAJETA_XPU_ERROR_UNSUPPORTED>;
using LibraryNotFoundError = NamedError<CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND>;

[[noreturn]] inline void raise(int code, const std::string& what) {
  switch (code) {
    case CAJETA_XPU_ERROR_INVALID_VALUE:
      throw InvalidArgumentError(what);
    case CAJETA_XPU_ERROR_OUT_OF_MEMORY:
      throw OutOfMemoryError(what);
    case CAJETA_XPU_ERROR_NO_DEVICE:
      throw NoDeviceError(what);
    case CAJETA_XPU_ERROR_INVALID_DEVICE:
      throw InvalidDeviceError(what);
    case CAJETA_XPU_ERROR_INVALID_IMAGE:
      throw InvalidImageError(what);
    case CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE:
      throw InvalidResourceHandleError(what);
    case CAJETA_XPU_ERROR_NOT_FOUND:
      throw NotFoundError(what);
    case CAJETA_XPU_ERROR_NOT_READY:
      throw NotReadyError(what);
    case CAJETA_XPU_ERROR_ILLEGAL_ADDRESS:
      throw IllegalAddressError(what);
    case CAJETA_XPU_ERROR_OUT_OF_RESOURCES:
      throw OutOfResourcesError(what);
    case CAJETA_XPU_ERROR_LAUNCH_TIMEOUT:
      throw LaunchTimeoutError(what);
    case CAJETA_XPU_ERROR_LAUNCH_FAILURE:
      throw LaunchFailureError(what);
    case CAJETA_XPU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      throw CooperativeLaunchTooLargeError(what);
    case CAJETA_XPU_ERROR_UNSUPPORTED:
      throw UnsupportedError(what);
    case CAJETA_XPU_ERROR_LIBRARY_NOT_FOUND:
      throw LibraryNotFoundError(what);
    default:
      throw Error(code, what);
  }
}

// The library's functions, found at the first call. Throws where it is absent, each time.
inline const cajeta_xpu_api& api() {
  static const cajeta_xpu_api found = [] {
    cajeta_xpu_api functions{};
    char why[512] = "";
    if (const int code = cajeta_xpu_load(&functions, why, sizeof why)) raise(code, why);
    return functions;
  }();
  return found;
}

inline void check(int code) {
  if (code != CAJETA_XPU_SUCCESS) raise(code, api().error_message());
}

// Owns a handle, or merely names one that has no owner. `kEnd` is the member of the api that ends
// it; a failure there is not worth more than what the next call reports, so destruction is silent.
template <typename Handle, auto kEnd>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) noexcept : handle_(handle) {}
  ~Owned() { end(); }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      end();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Handle get() const noexcept { return handle_; }

 private:
  void end() noexcept {
    if (handle_ != nullptr) (api().*kEnd)(handle_);
  }
  Handle handle_ = nullptr;
};

// A device; a name that may be copied. Devices are never closed.
class Device {
 public:
  explicit Device(const char* backend = "cuda", int ordinal = 0) {
    check(api().device_open(backend, ordinal, &handle_));
  }
  explicit Device(cajeta_xpu_device handle) noexcept : handle_(handle) {}
  static int count(const char* backend) {
    int number = 0;
    check(api().device_count(backend, &number));
    return number;
  }

  void synchronize() const { check(api().device_synchronize(handle_)); }
  // Least, greatest.
  std::pair<int, int> priority_range() const {
    std::pair<int, int> range;
    check(api().device_priority_range(handle_, &range.first, &range.second));
    return range;
  }
  std::string backend() const { return identity().first; }
  int ordinal() const { return identity().second; }
  cajeta_xpu_device handle() const noexcept { return handle_; }
  bool operator==(const Device& other) const noexcept { return handle_ == other.handle_; }
  bool operator!=(const Device& other) const noexcept { return handle_ != other.handle_; }

 private:
  std::pair<const char*, int> identity() const {
    std::pair<const char*, int> found;
    check(api().device_identity(handle_, &found.first, &found.second));
    return found;
  }
  cajeta_xpu_device handle_ = nullptr;
};

// Device memory. Launches borrow it until a synchronisation ordered after them.
class Buffer {
 public:
  Buffer(const Device& device, std::size_t size) {
    cajeta_xpu_buffer made = nullptr;
    check(api().buffer_create(device.handle(), size, &made));
    handle_ = Owned(made);
  }
  void release() { check(api().buffer_release(handle())); }
  std::uint64_t address() const { return range().first; }
  std::size_t size() const { return range().second; }
  bool is_borrowed() const {
    int borrowed = 0;
    check(api().buffer_is_borrowed(handle(), &borrowed));
    return borrowed != 0;
  }
  cajeta_xpu_buffer handle() const noexcept { return handle_.get(); }

 private:
  using Owned = xpu::Owned<cajeta_xpu_buffer, &cajeta_xpu_api::buffer_release>;
  std::pair<std::uint64_t, std::size_t> range() const {
    std::pair<std::uint64_t, std::size_t> found;
    check(api().buffer_range(handle(), &found.first, &found.second));
    return found;
  }
  Owned handle_;
};

class Event {
 public:
  enum Flags : unsigned {
    kDefault = CAJETA_XPU_EVENT_DEFAULT,
    kBlockingSync = CAJETA_XPU_EVENT_BLOCKING_SYNC,
    kDisableTiming = CAJETA_XPU_EVENT_DISABLE_TIMING,
    kInterprocess = CAJETA_XPU_EVENT_INTERPROCESS,
  };
  explicit Event(const Device& device, unsigned flags = kDefault) {
    cajeta_xpu_event made = nullptr;
    check(api().event_create(device.handle(), flags, &made));
    handle_ = Owned(made);
  }
  template <typename AnyStream>
  void record(const AnyStream& stream) {
    check(api().event_record(handle(), stream.handle()));
  }
  // True when the recorded work is done.
  bool query() const {
    const int code = api().event_query(handle());
    if (code != CAJETA_XPU_ERROR_NOT_READY) check(code);
    return code == CAJETA_XPU_SUCCESS;
  }
  void synchronize() const { check(api().event_synchronize(handle())); }
  // Milliseconds since `start` was recorded.
  float elapsed_ms(const Event& start) const {
    float milliseconds = 0;
    check(api().event_elapsed_ms(start.handle(), handle(), &milliseconds));
    return milliseconds;
  }
  void destroy() { check(api().event_destroy(handle())); }
  cajeta_xpu_event handle() const noexcept { return handle_.get(); }

 private:
  using Owned = xpu::Owned<cajeta_xpu_event, &cajeta_xpu_api::event_destroy>;
  Owned handle_;
};

// A kernel; a name that may be copied. It lives as long as its module.
class Kernel {
 public:
  explicit Kernel(cajeta_xpu_kernel handle) noexcept : handle_(handle) {}
  int max_active_blocks(int block_size, std::size_t shared_bytes = 0) const {
    int blocks = 0;
    check(api().max_active_blocks(handle_, block_size, shared_bytes, &blocks));
    return blocks;
  }
  struct BlockSize {
    int grid, block;
  };
  BlockSize max_potential_block_size(std::size_t shared_bytes = 0, int block_limit = 0) const {
    BlockSize size{};
    check(api().max_potential_block_size(handle_, shared_bytes, block_limit, &size.grid,
                                         &size.block));
    return size;
  }
  cajeta_xpu_kernel handle() const noexcept { return handle_; }

 private:
  cajeta_xpu_kernel handle_;
};

class Module {
 public:
  // PTX as text, or a cubin or fatbin.
  Module(const Device& device, const void* image) {
    cajeta_xpu_module made = nullptr;
    check(api().module_load(device.handle(), image, &made));
    handle_ = Owned(made);
  }
  // Host functions, for the cpu backend.
  Module(const Device& device, const cajeta_xpu_host_kernel* kernels, std::size_t count) {
    cajeta_xpu_module made = nullptr;
    check(api().module_from_functions(device.handle(), kernels, count, &made));
    handle_ = Owned(made);
  }
  Kernel kernel(const char* name) const {
    cajeta_xpu_kernel found = nullptr;
    check(api().module_kernel(handle(), name, &found));
    return Kernel(found);
  }
  void unload() { check(api().module_unload(handle())); }
  cajeta_xpu_module handle() const noexcept { return handle_.get(); }

 private:
  using Owned = xpu::Owned<cajeta_xpu_module, &cajeta_xpu_api::module_unload>;
  Owned handle_;
};

// The threads of a launch.
struct Shape {
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned shared_bytes = 0;
};

enum DeferStat {
  DEFER_QUEUED = CAJETA_XPU_DEFER_QUEUED,
  DEFER_REPLAYED = CAJETA_XPU_DEFER_REPLAYED,
  DEFER_DIRECT = CAJETA_XPU_DEFER_DIRECT,
  DEFER_GRAPHS_BUILT = CAJETA_XPU_DEFER_GRAPHS_BUILT,
  DEFER_GRAPH_LAUNCHES = CAJETA_XPU_DEFER_GRAPH_LAUNCHES,
  DEFER_PATCHES = CAJETA_XPU_DEFER_PATCHES,
  DEFER_FLUSHES = CAJETA_XPU_DEFER_FLUSHES,
};

// A counter of the whole process.
inline std::uint64_t defer_stat(DeferStat which) {
  std::uint64_t value = 0;
  check(api().defer_stat(which, &value));
  return value;
}

// What Stream and KernelStream have in common: a handle, which ends with the object if the object
// made it, and launches.
class StreamHandle {
 public:
  // Arguments are buffers or plain values; a value must have the size of the kernel's parameter.
  template <typename... Args>
  void launch(const Kernel& kernel, const Shape& shape, const Args&... arguments) const {
    submit(api().launch, kernel, shape, arguments...);
  }
  template <typename... Args>
  void launch_cooperative(const Kernel& kernel, const Shape& shape,
                          const Args&... arguments) const {
    submit(api().launch_cooperative, kernel, shape, arguments...);
  }
  // Host transfers: behind the stream's work, and done on return.
  void write(const Buffer& to, const void* from, std::size_t size, std::size_t offset = 0) const {
    check(api().buffer_write(to.handle(), offset, from, size, handle()));
  }
  void read(void* to, const Buffer& from, std::size_t size, std::size_t offset = 0) const {
    check(api().buffer_read(from.handle(), offset, to, size, handle()));
  }
  Device device() const {
    cajeta_xpu_device found = nullptr;
    check(api().stream_device(handle(), &found));
    return Device(found);
  }
  std::uintptr_t native_handle() const {
    std::uintptr_t native = 0;
    check(api().stream_native(handle(), &native));
    return native;
  }
  bool is_default() const {
    int yes = 0;
    check(api().stream_is_default(handle(), &yes));
    return yes != 0;
  }
  // A counter of this stream alone.
  std::uint64_t stream_stat(DeferStat which) const {
    std::uint64_t value = 0;
    check(api().stream_defer_stat(handle(), which, &value));
    return value;
  }
  // Whether launches on it may be queued.
  bool is_deferred() const {
    int yes = 0;
    check(api().stream_is_deferred(handle(), &yes));
    return yes != 0;
  }
  cajeta_xpu_stream handle() const noexcept { return handle_; }
  bool operator==(const StreamHandle& other) const noexcept { return handle_ == other.handle_; }
  bool operator!=(const StreamHandle& other) const noexcept { return handle_ != other.handle_; }

 protected:
  // Default and adopted streams survive being destroyed, so no stream is ended that is not ours.
  explicit StreamHandle(cajeta_xpu_stream handle) noexcept : owned_(handle), handle_(handle) {}
  static cajeta_xpu_stream make(const Device& device, unsigned flags, int priority) {
    cajeta_xpu_stream made = nullptr;
    check(api().stream_create(device.handle(), flags, priority, &made));
    return made;
  }
  std::uint64_t pending() const {
    std::uint64_t launches = 0;
    check(api().stream_pending_launches(handle(), &launches));
    return launches;
  }

 private:
  static cajeta_xpu_argument argument(const Buffer& buffer) noexcept {
    return {nullptr, 0, buffer.handle()};
  }
  template <typename T>
  static cajeta_xpu_argument argument(const T& value) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "an argument is copied byte by byte");
    return {&value, sizeof value, nullptr};
  }
  template <typename Launch, typename... Args>
  void submit(Launch launch, const Kernel& kernel, const Shape& shape, const Args&... args) const {
    const cajeta_xpu_launch_shape threads{{shape.grid[0], shape.grid[1], shape.grid[2]},
                                          {shape.block[0], shape.block[1], shape.block[2]},
                                          shape.shared_bytes};
    const cajeta_xpu_argument list[] = {argument(args)..., {nullptr, 0, nullptr}};
    check(launch(handle(), kernel.handle(), &threads, list, sizeof...(args)));
  }

  Owned<cajeta_xpu_stream, &cajeta_xpu_api::stream_destroy> owned_;
  cajeta_xpu_stream handle_ = nullptr;  // kept by a moved-from object too, which still names it
};

// A stream whose launches may be deferred.
class KernelStream : public StreamHandle {
 public:
  // The calling thread's stream: handle 0, the same stream for the same thread.
  static KernelStream current() {
    cajeta_xpu_stream found = nullptr;
    check(api().stream_current(&found));
    return KernelStream(found);
  }
  // On the device of current().
  static KernelStream create() { return create(current().device()); }
  static KernelStream create(const Device& device, unsigned flags = CAJETA_XPU_STREAM_NON_BLOCKING,
                             int priority = 0) {
    return KernelStream(make(device, flags, priority));
  }

  void sync() const { check(api().stream_synchronize(handle())); }
  void waitFor(const Event& event) const {
    check(api().stream_wait_event(handle(), event.handle()));
  }
  // Does nothing for the current stream, and the second time.
  void destroy() { check(api().stream_destroy(handle())); }

  void setDeferred(bool deferred) const {
    check(api().stream_set_deferred(handle(), deferred ? 1 : 0));
  }
  void flush() const { check(api().stream_flush(handle())); }
  std::uint64_t pendingLaunches() const { return pending(); }
  // Of the whole process; stream_stat() counts this stream alone.
  static std::uint64_t deferStat(DeferStat which) { return defer_stat(which); }

 private:
  using StreamHandle::StreamHandle;
};

// A stream of a device, made, adopted, or the default one.
class Stream : public StreamHandle {
 public:
  static Stream create(const Device& device, unsigned flags = CAJETA_XPU_STREAM_DEFAULT,
                       int priority = 0) {
    return Stream(make(device, flags, priority));
  }
  static Stream default_stream(const Device& device) {
    cajeta_xpu_stream found = nullptr;
    check(api().stream_default(device.handle(), &found));
    return Stream(found);
  }
  // Never destroyed by us. The same handle on the same device gives an equal stream; 0 is an
  // InvalidArgumentError, a backend that cannot adopt an UnsupportedError.
  static Stream from_native_handle(const Device& device, std::uintptr_t native) {
    cajeta_xpu_stream found = nullptr;
    check(api().stream_from_native(device.handle(), native, &found));
    return Stream(found);
  }

  // A hint, not a barrier.
  bool query_idle() const {
    int idle = 0;
    check(api().stream_query_idle(handle(), &idle));
    return idle != 0;
  }
  void synchronize() const { check(api().stream_synchronize(handle())); }
  void wait_event(const Event& event) const {
    check(api().stream_wait_event(handle(), event.handle()));
  }
  unsigned flags() const { return properties().first; }
  int priority() const { return properties().second; }
  void destroy() { check(api().stream_destroy(handle())); }

  void set_deferred(bool deferred) const {
    check(api().stream_set_deferred(handle(), deferred ? 1 : 0));
  }
  void flush() const { check(api().stream_flush(handle())); }
  std::uint64_t pending_launches() const { return pending(); }

 private:
  using StreamHandle::StreamHandle;
  std::pair<unsigned, int> properties() const {
    std::pair<unsigned, int> found;
    check(api().stream_properties(handle(), &found.first, &found.second));
    return found;
  }
};

}  // namespace cajeta::xpu
