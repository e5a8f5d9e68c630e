// SPDX-License-Identifier: Apache-2.0
// The synchronous backend: one device, kernels are host functions that run at the call, on the
// caller's thread. Everything given to a stream is done when the call returns, so nothing is ever
// queued and waiting is free. The only lock is the stream's own, which a kernel may take again.
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "api/backend.h"
#include "api/failure.h"
#include "runtime/float_scope.h"

namespace api {
namespace {

constinit std::atomic<std::uint64_t> g_launches{0};
constinit std::atomic<std::uintptr_t> g_next_native{1};

// Followed by its kernels, with names of their own.
struct FunctionTable {
  std::size_t count;
  cajeta_xpu_host_kernel* kernels() noexcept {
    return reinterpret_cast<cajeta_xpu_host_kernel*>(this + 1);
  }
};

void free_table(FunctionTable* table) noexcept {
  for (std::size_t i = 0; i < table->count; ++i) {
    std::free(const_cast<char*>(table->kernels()[i].name));
  }
  std::free(table);
}

class InOrder {
 public:
  explicit InOrder(Stream& stream) noexcept : mutex_(stream.line->order) {
    pthread_mutex_lock(&mutex_);
  }
  ~InOrder() { pthread_mutex_unlock(&mutex_); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

class CpuBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "cpu"; }
  int count_devices(int* count) noexcept override { return *count = 1, CAJETA_XPU_SUCCESS; }
  int open(Device&) noexcept override { return CAJETA_XPU_SUCCESS; }
  // Of other threads' launches too: each is done when its lock is free.
  int synchronize(Device& device) noexcept override {
    g_streams.for_each([&](Stream& stream, cajeta_xpu_stream) {
      if (stream.device == &device) InOrder{stream};
    });
    return CAJETA_XPU_SUCCESS;
  }
  int priority_range(Device&, int* least, int* greatest) noexcept override {
    *least = *greatest = 0;
    return CAJETA_XPU_SUCCESS;
  }

  int create_stream(Stream& stream, unsigned flags, int) noexcept override {
    stream.native = g_next_native.fetch_add(1) << 1 | (flags & CAJETA_XPU_STREAM_NON_BLOCKING);
    return CAJETA_XPU_SUCCESS;
  }
  int adopt_stream(Stream&) noexcept override {
    return fail(CAJETA_XPU_ERROR_UNSUPPORTED, "the cpu backend has no streams to adopt");
  }
  int destroy_stream(Stream& stream) noexcept override { return synchronize_stream(stream); }
  int stream_properties(Stream& stream, unsigned* flags, int* priority) noexcept override {
    *flags = stream.native.load() & CAJETA_XPU_STREAM_NON_BLOCKING;
    *priority = 0;
    return CAJETA_XPU_SUCCESS;
  }
  int query_stream(Stream& stream, bool* is_idle) noexcept override {
    *is_idle = pthread_mutex_trylock(&stream.line->order) == 0;
    if (*is_idle) pthread_mutex_unlock(&stream.line->order);
    return CAJETA_XPU_SUCCESS;
  }
  int synchronize_stream(Stream& stream) noexcept override {
    InOrder{stream};
    return CAJETA_XPU_SUCCESS;
  }
  // Whatever was recorded was done by then.
  int wait_event(Stream&, Event&) noexcept override { return CAJETA_XPU_SUCCESS; }

  int set_deferred(Stream&, bool) noexcept override { return CAJETA_XPU_SUCCESS; }
  bool is_deferred(Stream&) noexcept override { return false; }
  int flush(Stream&) noexcept override { return CAJETA_XPU_SUCCESS; }
  std::uint64_t pending_launches(Stream&) noexcept override { return 0; }
  std::uint64_t stream_stat(Stream& stream, int which) noexcept override {
    return which == CAJETA_XPU_DEFER_DIRECT ? stream.uncounted.load() : 0;
  }
  std::uint64_t total_stat(int which) noexcept override {
    return which == CAJETA_XPU_DEFER_DIRECT ? g_launches.load() : 0;
  }

  int create_event(Event& event) noexcept override {
    if ((event.flags & CAJETA_XPU_EVENT_INTERPROCESS) == 0) return CAJETA_XPU_SUCCESS;
    return fail(CAJETA_XPU_ERROR_UNSUPPORTED, "the cpu backend has no interprocess events");
  }
  int destroy_event(Event&) noexcept override { return CAJETA_XPU_SUCCESS; }
  int record_event(Event& event, Stream& stream) noexcept override {
    InOrder order(stream);
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    runtime::QueueGuard guard(event.lock);
    event.recorded_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    return CAJETA_XPU_SUCCESS;
  }
  int query_event(Event&) noexcept override { return CAJETA_XPU_SUCCESS; }
  int synchronize_event(Event&) noexcept override { return CAJETA_XPU_SUCCESS; }
  int elapsed_ms(Event& start, Event& end, float* milliseconds) noexcept override;

  int allocate(Buffer& buffer) noexcept override {
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, buffer.size) != 0) {
      return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "%zu bytes are not to be had", buffer.size);
    }
    buffer.address = reinterpret_cast<std::uint64_t>(memory);
    return CAJETA_XPU_SUCCESS;
  }
  int release(Buffer& buffer) noexcept override {
    std::free(reinterpret_cast<void*>(buffer.address));
    return CAJETA_XPU_SUCCESS;
  }
  int write(Stream& stream, std::uint64_t to, const void* from,
            std::size_t size) noexcept override {
    InOrder order(stream);
    std::memcpy(reinterpret_cast<void*>(to), from, size);
    return CAJETA_XPU_SUCCESS;
  }
  int read(Stream& stream, void* to, std::uint64_t from, std::size_t size) noexcept override {
    InOrder order(stream);
    std::memcpy(to, reinterpret_cast<const void*>(from), size);
    return CAJETA_XPU_SUCCESS;
  }

  int load_module(Module&, const void*) noexcept override {
    return fail(CAJETA_XPU_ERROR_UNSUPPORTED, "the cpu backend runs host functions, not images");
  }
  int make_module(Module& module, const cajeta_xpu_host_kernel* kernels,
                  std::size_t count) noexcept override;
  int unload_module(Module& module) noexcept override {
    free_table(static_cast<FunctionTable*>(module.native));
    return CAJETA_XPU_SUCCESS;
  }
  int find_kernel(Module& module, const char* name, Kernel& kernel) noexcept override;
  int launch(Stream& stream, Kernel& kernel, const cajeta_xpu_launch_shape& shape, void** arguments,
             bool) noexcept override {
    InOrder order(stream);
    ++g_launches;
    ++stream.uncounted;
    const int result = kernel.host_function(&shape, arguments, kernel.user);
    if (result == CAJETA_XPU_SUCCESS) return result;
    return fail(result, "a host kernel returned %s", cajeta_xpu_error_name(result));
  }
  int max_active_blocks(Kernel&, int, std::size_t, int* blocks) noexcept override {
    return *blocks = 1, CAJETA_XPU_SUCCESS;
  }
  int max_potential_block_size(Kernel&, std::size_t, int, int* grid, int* block) noexcept override {
    return *grid = *block = 1, CAJETA_XPU_SUCCESS;
  }
};

int CpuBackend::elapsed_ms(Event& start, Event& end, float* milliseconds) noexcept {
  std::int64_t recorded_ns[2];
  Event* events[] = {&start, &end};
  for (int i = 0; i < 2; ++i) {
    runtime::QueueGuard guard(events[i]->lock);
    recorded_ns[i] = events[i]->recorded_ns;
    if (recorded_ns[i] >= 0 && (events[i]->flags & CAJETA_XPU_EVENT_DISABLE_TIMING) == 0) continue;
    return fail(CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE,
                "elapsed time needs events with timing that were recorded");
  }
  const runtime::DefaultFloats scope;
  *milliseconds = static_cast<float>(static_cast<double>(recorded_ns[1] - recorded_ns[0]) / 1e6);
  return CAJETA_XPU_SUCCESS;
}

int CpuBackend::make_module(Module& module, const cajeta_xpu_host_kernel* kernels,
                            std::size_t count) noexcept {
  // calloc() refuses what does not fit; the table itself takes less than one entry.
  static_assert(sizeof(FunctionTable) <= sizeof *kernels);
  auto* table = static_cast<FunctionTable*>(std::calloc(count + 1, sizeof *kernels));
  if (table == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a module");
  for (; table->count < count; ++table->count) {
    cajeta_xpu_host_kernel& copy = table->kernels()[table->count];
    copy = kernels[table->count];
    copy.name = strdup(copy.name);
    if (copy.name != nullptr) continue;
    free_table(table);
    return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a module");
  }
  module.native = table;
  return CAJETA_XPU_SUCCESS;
}

int CpuBackend::find_kernel(Module& module, const char* name, Kernel& kernel) noexcept {
  auto* table = static_cast<FunctionTable*>(module.native);
  for (std::size_t i = 0; i < table->count; ++i) {
    if (std::strcmp(table->kernels()[i].name, name) != 0) continue;
    kernel.host_function = table->kernels()[i].function;
    kernel.user = table->kernels()[i].user;
    return CAJETA_XPU_SUCCESS;
  }
  return fail(CAJETA_XPU_ERROR_NOT_FOUND, "the module has no kernel %.80s", name);
}

constinit CpuBackend g_cpu;

}  // namespace

Backend& cpu_backend() noexcept {
  return g_cpu;
}

}  // namespace api
