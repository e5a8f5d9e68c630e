// SPDX-License-Identifier: Apache-2.0
// What a backend must do. The entries have checked handles and arguments before; results are those
// of cajeta/xpu.h, with fail() called for each that is not success. Any thread, also at once on the
// same object. A new backend is one class and one line in backends.cpp. One whose device has no
// graphs submits its queue launch by launch, as the cuda backend does under a driver without them.
#pragma once

#include "api/objects.h"

namespace api {

class Backend {
 public:
  virtual const char* name() const noexcept = 0;
  virtual int count_devices(int* count) noexcept = 0;
  // Fills in the context of a device whose ordinal is within the count.
  virtual int open(Device& device) noexcept = 0;
  virtual int synchronize(Device& device) noexcept = 0;
  virtual int priority_range(Device& device, int* least, int* greatest) noexcept = 0;

  virtual int create_stream(Stream& stream, unsigned flags, int priority) noexcept = 0;
  // The native handle is in place and not 0.
  virtual int adopt_stream(Stream& stream) noexcept = 0;
  virtual int destroy_stream(Stream& stream) noexcept = 0;
  virtual int stream_properties(Stream& stream, unsigned* flags, int* priority) noexcept = 0;
  virtual int query_stream(Stream& stream, bool* is_idle) noexcept = 0;
  virtual int synchronize_stream(Stream& stream) noexcept = 0;
  virtual int wait_event(Stream& stream, Event& event) noexcept = 0;

  virtual int set_deferred(Stream& stream, bool deferred) noexcept = 0;
  virtual bool is_deferred(Stream& stream) noexcept = 0;
  virtual int flush(Stream& stream) noexcept = 0;
  virtual std::uint64_t pending_launches(Stream& stream) noexcept = 0;
  // One counter: of the stream, and of everything that went through the backend.
  virtual std::uint64_t stream_stat(Stream& stream, int which) noexcept = 0;
  virtual std::uint64_t total_stat(int which) noexcept = 0;

  virtual int create_event(Event& event) noexcept = 0;
  virtual int destroy_event(Event& event) noexcept = 0;
  virtual int record_event(Event& event, Stream& stream) noexcept = 0;
  virtual int query_event(Event& event) noexcept = 0;
  virtual int synchronize_event(Event& event) noexcept = 0;
  virtual int elapsed_ms(Event& start, Event& end, float* milliseconds) noexcept = 0;

  virtual int allocate(Buffer& buffer) noexcept = 0;
  virtual int release(Buffer& buffer) noexcept = 0;
  // Behind the work of the stream, and done on return.
  virtual int write(Stream& stream, std::uint64_t to, const void* from,
                    std::size_t size) noexcept = 0;
  virtual int read(Stream& stream, void* to, std::uint64_t from, std::size_t size) noexcept = 0;

  virtual int load_module(Module& module, const void* image) noexcept = 0;
  virtual int make_module(Module& module, const cajeta_xpu_host_kernel* kernels,
                          std::size_t count) noexcept = 0;
  virtual int unload_module(Module& module) noexcept = 0;
  // Fills in everything of the kernel but its place in the module.
  virtual int find_kernel(Module& module, const char* name, Kernel& kernel) noexcept = 0;
  virtual int launch(Stream& stream, Kernel& kernel, const cajeta_xpu_launch_shape& shape,
                     void** arguments, bool is_cooperative) noexcept = 0;
  virtual int max_active_blocks(Kernel& kernel, int block_size, std::size_t shared_bytes,
                                int* blocks) noexcept = 0;
  virtual int max_potential_block_size(Kernel& kernel, std::size_t shared_bytes, int limit,
                                       int* grid, int* block) noexcept = 0;

 protected:
  ~Backend() = default;
};

// cuda_backend.cpp, cpu_backend.cpp.
Backend& cuda_backend() noexcept;
Backend& cpu_backend() noexcept;

// backends.cpp. Null: there is none of this name.
Backend* find_backend(const char* name) noexcept;
std::uint64_t total_stat(int which) noexcept;

}  // namespace api
