// SPDX-License-Identifier: Apache-2.0
// CUDA by the library's own wrappers, so that a call made through this interface is treated like
// one that the program made itself: queued, counted, profiled. The wrapper is called directly and
// not by name, which could lead elsewhere when the library was opened late. Takes no lock.
#include <cstring>

#include "api/backend.h"
#include "api/failure.h"
#include "runtime/deferral.h"
#include "shim/thunk.h"

namespace api {
namespace {

using runtime::EntryId;

constexpr std::uintptr_t kLegacyStream = 1, kPerThreadStream = 2;  // CU_STREAM_LEGACY, _PER_THREAD

template <EntryId id, typename... Args>
CUresult call(Args... args) noexcept {
  return shim::Thunk<id>::call(args...);
}

// The entry's name is that of the driver's manual, without a version.
#define CALL(entry, ...) told(call<EntryId::entry>(__VA_ARGS__), row_name(EntryId::entry))

const char* row_name(EntryId id) noexcept {
  return runtime::row(id).api;
}

// Makes the context current and restores the one before. A thread that has none keeps it, as with
// the CUDA runtime.
class ContextScope {
 public:
  explicit ContextScope(void* context) noexcept {
    auto wanted = static_cast<CUcontext>(context);
    CUcontext now = nullptr;
    result_ = runtime::real.cuCtxGetCurrent(&now);
    if (result_ != CUDA_SUCCESS || now == wanted) return;
    if (now == nullptr) {
      result_ = call<EntryId::cuCtxSetCurrent>(wanted);
      return;
    }
    result_ = call<EntryId::cuCtxPushCurrent_v2>(wanted);
    is_pushed_ = result_ == CUDA_SUCCESS;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (is_pushed_) call<EntryId::cuCtxPopCurrent_v2>(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  bool is_entered() const noexcept { return result_ == CUDA_SUCCESS; }
  int failure() const noexcept { return told(result_, "making the context current"); }

 private:
  CUresult result_;
  bool is_pushed_ = false;
};

CUstream native(const Stream& stream) noexcept {
  return reinterpret_cast<CUstream>(stream.native.load(std::memory_order_relaxed));
}
CUevent native(const Event& event) noexcept {
  return reinterpret_cast<CUevent>(event.native);
}
CUfunction native(const Kernel& kernel) noexcept {
  return static_cast<CUfunction>(kernel.native);
}
void* context_of(const Stream& stream) noexcept {
  return stream.context.load(std::memory_order_relaxed);
}

int has_no_driver() noexcept {
  return fail(CAJETA_XPU_ERROR_NO_DEVICE, "there is no CUDA driver: libcuda.so.1 was not found");
}

std::uint64_t pick(const runtime::StreamCounts& counts, std::uint64_t pending, int which) noexcept {
  switch (which) {
    case CAJETA_XPU_DEFER_QUEUED:
      return counts.queued + pending;
    case CAJETA_XPU_DEFER_REPLAYED:
      return counts.replayed;
    case CAJETA_XPU_DEFER_DIRECT:
      return counts.direct;
    case CAJETA_XPU_DEFER_GRAPHS_BUILT:
      return counts.graphs_built;
    case CAJETA_XPU_DEFER_GRAPH_LAUNCHES:
      return counts.graph_launches;
    case CAJETA_XPU_DEFER_PATCHES:
      return counts.patches;
    default:
      return counts.flushes;
  }
}

// The queue of the stream, if it has one; its context must be current.
runtime::StreamQueue* queue_of(const Stream& stream) noexcept {
  const api::ErrnoKeeper keeper;
  return runtime::find_stream(native(stream), false).queue;
}

class CudaBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "cuda"; }
  int count_devices(int* count) noexcept override;
  int open(Device& device) noexcept override;
  int synchronize(Device& device) noexcept override {
    ContextScope scope(device.context);
    return scope.is_entered() ? CALL(cuCtxSynchronize) : scope.failure();
  }
  int priority_range(Device& device, int* least, int* greatest) noexcept override {
    ContextScope scope(device.context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuCtxGetStreamPriorityRange, least, greatest);
  }

  int create_stream(Stream& stream, unsigned flags, int priority) noexcept override {
    stream.context = stream.device->context;
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    CUstream made = nullptr;
    const int result = CALL(cuStreamCreateWithPriority, &made, flags, priority);
    stream.native = reinterpret_cast<std::uintptr_t>(made);
    return result;
  }
  int adopt_stream(Stream& stream) noexcept override;
  int destroy_stream(Stream& stream) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuStreamDestroy_v2, native(stream));
  }
  int stream_properties(Stream& stream, unsigned* flags, int* priority) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    const int result = CALL(cuStreamGetFlags, native(stream), flags);
    return result != 0 ? result : CALL(cuStreamGetPriority, native(stream), priority);
  }
  int query_stream(Stream& stream, bool* is_idle) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    const CUresult result = call<EntryId::cuStreamQuery>(native(stream));
    *is_idle = result == CUDA_SUCCESS;
    return told(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result, "cuStreamQuery");
  }
  int synchronize_stream(Stream& stream) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuStreamSynchronize, native(stream));
  }
  int wait_event(Stream& stream, Event& event) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuStreamWaitEvent, native(stream), native(event), 0U);
  }

  int set_deferred(Stream& stream, bool deferred) noexcept override;
  bool is_deferred(Stream& stream) noexcept override {
    if (!runtime::is_queueing()) return false;
    ContextScope scope(context_of(stream));
    const shim::ErrnoKeeper keeper;
    runtime::StreamQueue* queue = runtime::find_or_make_stream(native(stream), false).queue;
    return queue != nullptr && queue->is_deferred();
  }
  int flush(Stream& stream) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    const api::ErrnoKeeper keeper;
    return told(runtime::submit_stream(native(stream)), "submitting the queue");
  }
  std::uint64_t pending_launches(Stream& stream) noexcept override {
    ContextScope scope(context_of(stream));
    runtime::StreamQueue* queue = queue_of(stream);
    if (queue == nullptr) return 0;
    return queue->pending();
  }
  std::uint64_t stream_stat(Stream& stream, int which) noexcept override;
  std::uint64_t total_stat(int which) noexcept override {
    const api::ErrnoKeeper keeper;
    const runtime::CounterSnapshot now = runtime::snapshot_counters();
    return pick({now.queued, now.replayed, now.direct, now.graphs_built, now.graph_launches,
                 now.patches, now.flushes},
                0, which);
  }

  int create_event(Event& event) noexcept override {
    ContextScope scope(event.device->context);
    if (!scope.is_entered()) return scope.failure();
    CUevent made = nullptr;
    const int result = CALL(cuEventCreate, &made, event.flags);
    event.native = reinterpret_cast<std::uintptr_t>(made);
    return result;
  }
  int destroy_event(Event& event) noexcept override {
    ContextScope scope(event.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuEventDestroy_v2, native(event));
  }
  int record_event(Event& event, Stream& stream) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuEventRecord, native(event), native(stream));
  }
  int query_event(Event& event) noexcept override {
    ContextScope scope(event.device->context);
    return scope.is_entered() ? CALL(cuEventQuery, native(event)) : scope.failure();
  }
  int synchronize_event(Event& event) noexcept override {
    ContextScope scope(event.device->context);
    return scope.is_entered() ? CALL(cuEventSynchronize, native(event)) : scope.failure();
  }
  int elapsed_ms(Event& start, Event& end, float* milliseconds) noexcept override {
    ContextScope scope(start.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuEventElapsedTime, milliseconds, native(start), native(end));
  }

  int allocate(Buffer& buffer) noexcept override {
    ContextScope scope(buffer.device->context);
    if (!scope.is_entered()) return scope.failure();
    CUdeviceptr address = 0;
    const int result = CALL(cuMemAlloc_v2, &address, buffer.size);
    buffer.address = address;
    return result;
  }
  int release(Buffer& buffer) noexcept override {
    ContextScope scope(buffer.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuMemFree_v2, static_cast<CUdeviceptr>(buffer.address));
  }
  int write(Stream& stream, std::uint64_t to, const void* from,
            std::size_t size) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    const int result =
        CALL(cuMemcpyHtoDAsync_v2, static_cast<CUdeviceptr>(to), from, size, native(stream));
    return result != 0 ? result : CALL(cuStreamSynchronize, native(stream));
  }
  int read(Stream& stream, void* to, std::uint64_t from, std::size_t size) noexcept override {
    ContextScope scope(context_of(stream));
    if (!scope.is_entered()) return scope.failure();
    const int result =
        CALL(cuMemcpyDtoHAsync_v2, to, static_cast<CUdeviceptr>(from), size, native(stream));
    return result != 0 ? result : CALL(cuStreamSynchronize, native(stream));
  }

  int load_module(Module& module, const void* image) noexcept override {
    ContextScope scope(module.device->context);
    if (!scope.is_entered()) return scope.failure();
    CUlibrary library = nullptr;
    const int result =
        CALL(cuLibraryLoadData, &library, image, nullptr, nullptr, 0U, nullptr, nullptr, 0U);
    module.native = library;
    return result;
  }
  int make_module(Module&, const cajeta_xpu_host_kernel*, std::size_t) noexcept override {
    return fail(CAJETA_XPU_ERROR_UNSUPPORTED, "host functions do not run on the cuda backend");
  }
  int unload_module(Module& module) noexcept override {
    ContextScope scope(module.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuLibraryUnload, static_cast<CUlibrary>(module.native));
  }
  int find_kernel(Module& module, const char* name, Kernel& kernel) noexcept override;
  int launch(Stream& stream, Kernel& kernel, const cajeta_xpu_launch_shape& shape, void** arguments,
             bool is_cooperative) noexcept override;
  int max_active_blocks(Kernel& kernel, int block_size, std::size_t shared_bytes,
                        int* blocks) noexcept override {
    ContextScope scope(kernel.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, native(kernel), block_size,
                shared_bytes);
  }
  int max_potential_block_size(Kernel& kernel, std::size_t shared_bytes, int limit, int* grid,
                               int* block) noexcept override {
    ContextScope scope(kernel.device->context);
    if (!scope.is_entered()) return scope.failure();
    return CALL(cuOccupancyMaxPotentialBlockSize, grid, block, native(kernel), nullptr,
                shared_bytes, limit);
  }
};

int CudaBackend::count_devices(int* count) noexcept {
  *count = 0;
  const CUresult started = call<EntryId::cuInit>(0U);
  if (started == CUDA_ERROR_NO_DEVICE) return CAJETA_XPU_SUCCESS;
  if (started == CUDA_ERROR_NOT_FOUND && !runtime::driver_is_loaded()) return CAJETA_XPU_SUCCESS;
  return started != CUDA_SUCCESS ? told(started, "cuInit") : CALL(cuDeviceGetCount, count);
}

int CudaBackend::open(Device& device) noexcept {
  if (!runtime::driver_is_loaded()) return has_no_driver();
  CUdevice number = 0;
  const int result = CALL(cuDeviceGet, &number, device.ordinal);
  if (result != 0) return result;
  CUcontext context = nullptr;
  const int retained = CALL(cuDevicePrimaryCtxRetain, &context, number);
  device.context = context;
  return retained;
}

int CudaBackend::adopt_stream(Stream& stream) noexcept {
  const std::uintptr_t handle = stream.native.load();
  if (handle == kLegacyStream || handle == kPerThreadStream) {
    stream.context = stream.device->context;
    return CAJETA_XPU_SUCCESS;
  }
  ContextScope device_scope(stream.device->context);
  if (!device_scope.is_entered()) return device_scope.failure();
  CUcontext context = nullptr;
  const int result = CALL(cuStreamGetCtx, native(stream), &context);
  if (result != 0) return result;
  ContextScope scope(context);
  if (!scope.is_entered()) return scope.failure();
  CUdevice device = 0;
  const int asked = CALL(cuCtxGetDevice, &device);
  if (asked != 0) return asked;
  if (device != stream.device->ordinal) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "the stream belongs to device %d, not to %d",
                device, stream.device->ordinal);
  }
  stream.context = context;
  return CAJETA_XPU_SUCCESS;
}

int CudaBackend::set_deferred(Stream& stream, bool deferred) noexcept {
  ContextScope scope(context_of(stream));
  if (!scope.is_entered()) return scope.failure();
  const api::ErrnoKeeper keeper;
  const runtime::Options& options = shim::options();
  const bool is_off =
      options.disabled || options.launch_blocking || options.defer == runtime::DeferMode::kNever;
  if (deferred && !is_off && !shim::is_in_front()) {
    return fail(CAJETA_XPU_ERROR_UNSUPPORTED,
                "loaded too late to defer: start with LD_PRELOAD=libcajeta_xpu.so, or link it "
                "ahead of libcuda");
  }
  return told(runtime::set_deferred(native(stream), deferred), "submitting the queue");
}

std::uint64_t CudaBackend::stream_stat(Stream& stream, int which) noexcept {
  const std::uint64_t uncounted =
      which == CAJETA_XPU_DEFER_DIRECT ? stream.line->uncounted.load() : 0;
  ContextScope scope(context_of(stream));
  runtime::StreamQueue* queue = queue_of(stream);
  if (queue == nullptr) return uncounted;
  return uncounted + pick(queue->counts, queue->pending(), which);
}

int CudaBackend::find_kernel(Module& module, const char* name, Kernel& kernel) noexcept {
  ContextScope scope(module.device->context);
  if (!scope.is_entered()) return scope.failure();
  CUkernel found = nullptr;
  const CUresult result =
      call<EntryId::cuLibraryGetKernel>(&found, static_cast<CUlibrary>(module.native), name);
  if (result == CUDA_ERROR_NOT_FOUND) {
    return fail(result, "the module has no kernel %.80s", name);
  }
  if (result != CUDA_SUCCESS) return told(result, "cuLibraryGetKernel");
  kernel.native = found;
  std::size_t offset = 0, size = 0, count = 0;
  CUresult asked;
  while ((asked = call<EntryId::cuKernelGetParamInfo>(found, count, &offset, &size)) ==
         CUDA_SUCCESS) {
    if (count < Kernel::kSizes) kernel.parameter_sizes[count] = static_cast<std::uint32_t>(size);
    ++count;
  }
  // Anything else: a driver that cannot tell.
  if (asked == CUDA_ERROR_INVALID_VALUE) kernel.parameter_count = count;
  return CAJETA_XPU_SUCCESS;
}

int CudaBackend::launch(Stream& stream, Kernel& kernel, const cajeta_xpu_launch_shape& shape,
                        void** arguments, bool is_cooperative) noexcept {
  ContextScope scope(context_of(stream));
  if (!scope.is_entered()) [[unlikely]]
    return scope.failure();
  const CUstream handle = native(stream);
  if (!runtime::is_queueing() || stream.native.load() == kPerThreadStream) {
    stream.line->uncounted.fetch_add(1, std::memory_order_relaxed);
  }
  if (is_cooperative) {
    return CALL(cuLaunchCooperativeKernel, native(kernel), shape.grid[0], shape.grid[1],
                shape.grid[2], shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes,
                handle, arguments);
  }
  return CALL(cuLaunchKernel, native(kernel), shape.grid[0], shape.grid[1], shape.grid[2],
              shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes, handle, arguments,
              nullptr);
}

constinit CudaBackend g_cuda;

}  // namespace

Backend& cuda_backend() noexcept {
  return g_cuda;
}

}  // namespace api
