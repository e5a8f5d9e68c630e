// SPDX-License-Identifier: Apache-2.0
// Modules, their kernels, and launches. A launch allocates nothing: the pointers to its arguments
// are on the stack, and the launch path of the library copies what they lead to.
#include "api/backend.h"
#include "api/borrow.h"
#include "api/failure.h"

namespace api {
namespace {

// 8 KiB of stack; CUDA allows 32,764 bytes of parameters, and kernels have some dozens.
constexpr std::size_t kMaxArguments = 1024;

int fail_null(const char* call) noexcept {
  return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: null pointer", call);
}

int fail_argument(const char* call, std::size_t index, const char* what) noexcept {
  return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: argument %zu %s", call, index, what);
}

// Makes a module whose code `load(module)` fills in.
template <typename Load>
int make_module(cajeta_xpu_device device_handle, cajeta_xpu_module* handle, Load load) noexcept {
  cajeta_xpu_module made = nullptr;
  Module* module = g_modules.reserve(&made);
  if (module == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a module");
  module->device = g_devices.find(device_handle);
  module->kernels = nullptr;
  if (const int result = load(*module)) {
    g_modules.recycle(made);
    return result;
  }
  g_modules.publish(made);
  *handle = made;
  return CAJETA_XPU_SUCCESS;
}

// The handle of the same kernel, if it was asked for before. The module's lock is held.
cajeta_xpu_kernel find_known(const Module& module, const Kernel& found) noexcept {
  for (cajeta_xpu_kernel handle = module.kernels; handle != nullptr;) {
    const Kernel& known = *g_kernels.find(handle);
    if (known.native == found.native && known.host_function == found.host_function &&
        known.user == found.user) {
      return handle;
    }
    handle = known.next;
  }
  return nullptr;
}

void end_kernels(Module& module) noexcept {
  for (cajeta_xpu_kernel handle = module.kernels; handle != nullptr;) {
    const cajeta_xpu_kernel next = g_kernels.find(handle)->next;
    g_kernels.retire(handle);
    g_kernels.recycle(handle);
    handle = next;
  }
  module.kernels = nullptr;
}

struct Pointers {
  void* of[kMaxArguments + 1];  // never an empty list
};

int point_to(const char* call, const cajeta_xpu_argument* arguments, std::size_t count,
             const Stream& stream, const Kernel& kernel, Pointers* pointers) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const cajeta_xpu_argument& argument = arguments[i];
    std::size_t size = argument.size;
    if (argument.buffer != nullptr) {
      Buffer* buffer = g_buffers.find(argument.buffer);
      if (buffer == nullptr) return fail_handle(call, "buffer");
      if (buffer->device != stream.device) return fail_argument(call, i, "is of another device");
      pointers->of[i] = &buffer->address;
      size = sizeof buffer->address;
    } else {
      if (argument.data == nullptr) return fail_argument(call, i, "has no data");
      pointers->of[i] = const_cast<void*>(argument.data);
    }
    bool is_known = kernel.parameter_count != Kernel::kUnknown && i < Kernel::kSizes;
    if (is_known && size != 0 && size != kernel.parameter_sizes[i]) {
      return fail_argument(call, i, "has another size than the kernel's parameter");
    }
  }
  return CAJETA_XPU_SUCCESS;
}

bool has_threads(const cajeta_xpu_launch_shape& shape) noexcept {
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] == 0 || shape.block[axis] == 0) return false;
  }
  return true;
}

int check_launch(const char* call, const Stream* stream, const Kernel* kernel,
                 const cajeta_xpu_launch_shape* shape, const cajeta_xpu_argument* arguments,
                 std::size_t count) noexcept {
  if (stream == nullptr) return fail_handle(call, "stream");
  if (kernel == nullptr) return fail_handle(call, "kernel");
  if (shape == nullptr || (arguments == nullptr && count != 0)) return fail_null(call);
  if (stream->device != kernel->device) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: the kernel is of another device", call);
  }
  if (!has_threads(*shape)) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: a dimension of the launch is 0", call);
  }
  if (count > kMaxArguments ||
      (kernel->parameter_count != Kernel::kUnknown && count != kernel->parameter_count)) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: %zu arguments, and the kernel takes %zu", call,
                count, kernel->parameter_count);
  }
  return CAJETA_XPU_SUCCESS;
}

int launch(const char* call, cajeta_xpu_stream stream_handle, cajeta_xpu_kernel kernel_handle,
           const cajeta_xpu_launch_shape* shape, const cajeta_xpu_argument* arguments,
           std::size_t count, bool is_cooperative) noexcept {
  Stream* stream = g_streams.find(stream_handle);
  Kernel* kernel = g_kernels.find(kernel_handle);
  if (const int fault = check_launch(call, stream, kernel, shape, arguments, count)) return fault;
  Pointers pointers;
  if (const int fault = point_to(call, arguments, count, *stream, *kernel, &pointers)) return fault;

  const int result =
      stream->device->backend->launch(*stream, *kernel, *shape, pointers.of, is_cooperative);
  if (result != CAJETA_XPU_SUCCESS) return result;
  // After the launch: a synchronisation of another thread that comes in between then ends nothing
  // that it has not waited for.
  const std::uint64_t ticket = stream->line->launched.fetch_add(1) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer* buffer = arguments[i].buffer != nullptr ? g_buffers.find(arguments[i].buffer) : nullptr;
    if (buffer != nullptr) borrow(*buffer, *stream, ticket);
  }
  return result;
}

}  // namespace
}  // namespace api

using api::fail;
using api::fail_handle;
using api::fail_null;
using api::g_kernels;
using api::g_modules;

extern "C" {

int cajeta_xpu_module_load(cajeta_xpu_device device, const void* image, cajeta_xpu_module* module) {
  const api::ErrnoKeeper keeper;
  if (api::g_devices.find(device) == nullptr) return fail_handle(__func__, "device");
  if (image == nullptr || module == nullptr) return fail_null(__func__);
  return api::make_module(device, module, [image](api::Module& made) noexcept {
    return made.device->backend->load_module(made, image);
  });
}

int cajeta_xpu_module_from_functions(cajeta_xpu_device device,
                                     const cajeta_xpu_host_kernel* kernels, size_t count,
                                     cajeta_xpu_module* module) {
  const api::ErrnoKeeper keeper;
  if (api::g_devices.find(device) == nullptr) return fail_handle(__func__, "device");
  if (kernels == nullptr || module == nullptr) return fail_null(__func__);
  if (count == 0) return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: no functions", __func__);
  for (std::size_t i = 0; i < count; ++i) {
    if (kernels[i].name != nullptr && kernels[i].function != nullptr) continue;
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: entry %zu has no name or no function",
                __func__, i);
  }
  return api::make_module(device, module, [kernels, count](api::Module& made) noexcept {
    return made.device->backend->make_module(made, kernels, count);
  });
}

int cajeta_xpu_module_unload(cajeta_xpu_module handle) {
  const api::ErrnoKeeper keeper;
  api::Module* module = g_modules.retire(handle);
  if (module == nullptr) {
    return g_modules.is_ended(handle) ? CAJETA_XPU_SUCCESS : fail_handle(__func__, "module");
  }
  int result;
  {
    runtime::MutexGuard guard(module->lock);
    api::end_kernels(*module);
    result = module->device->backend->unload_module(*module);
  }
  g_modules.recycle(handle);
  return result;
}

int cajeta_xpu_module_kernel(cajeta_xpu_module handle, const char* name,
                             cajeta_xpu_kernel* kernel) {
  const api::ErrnoKeeper keeper;
  api::Module* module = g_modules.find(handle);
  if (module == nullptr) return fail_handle(__func__, "module");
  if (name == nullptr || kernel == nullptr) return fail_null(__func__);
  runtime::MutexGuard guard(module->lock);
  if (g_modules.find(handle) != module) return fail_handle(__func__, "module");
  cajeta_xpu_kernel made = nullptr;
  api::Kernel* found = g_kernels.reserve(&made);
  if (found == nullptr) return fail(CAJETA_XPU_ERROR_OUT_OF_MEMORY, "no memory for a kernel");
  found->device = module->device;
  found->native = nullptr;
  found->host_function = nullptr;
  found->user = nullptr;
  found->parameter_count = api::Kernel::kUnknown;
  const int result = module->device->backend->find_kernel(*module, name, *found);
  const cajeta_xpu_kernel known =
      result == CAJETA_XPU_SUCCESS ? api::find_known(*module, *found) : nullptr;
  if (result != CAJETA_XPU_SUCCESS || known != nullptr) {
    g_kernels.recycle(made);
    if (known != nullptr) *kernel = known;
    return result;
  }
  found->next = module->kernels;
  module->kernels = made;
  g_kernels.publish(made);
  *kernel = made;
  return CAJETA_XPU_SUCCESS;
}

int cajeta_xpu_launch(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                      const cajeta_xpu_launch_shape* shape, const cajeta_xpu_argument* arguments,
                      size_t count) {
  return api::launch(__func__, stream, kernel, shape, arguments, count, false);
}

int cajeta_xpu_launch_cooperative(cajeta_xpu_stream stream, cajeta_xpu_kernel kernel,
                                  const cajeta_xpu_launch_shape* shape,
                                  const cajeta_xpu_argument* arguments, size_t count) {
  return api::launch(__func__, stream, kernel, shape, arguments, count, true);
}

int cajeta_xpu_max_active_blocks(cajeta_xpu_kernel handle, int block_size, size_t shared_bytes,
                                 int* blocks) {
  const api::ErrnoKeeper keeper;
  api::Kernel* kernel = g_kernels.find(handle);
  if (kernel == nullptr) return fail_handle(__func__, "kernel");
  if (blocks == nullptr) return fail_null(__func__);
  if (block_size <= 0) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: a block has at least 1 thread", __func__);
  }
  return kernel->device->backend->max_active_blocks(*kernel, block_size, shared_bytes, blocks);
}

int cajeta_xpu_max_potential_block_size(cajeta_xpu_kernel handle, size_t shared_bytes,
                                        int block_limit, int* grid_size, int* block_size) {
  const api::ErrnoKeeper keeper;
  api::Kernel* kernel = g_kernels.find(handle);
  if (kernel == nullptr) return fail_handle(__func__, "kernel");
  if (grid_size == nullptr || block_size == nullptr) return fail_null(__func__);
  if (block_limit < 0) {
    return fail(CAJETA_XPU_ERROR_INVALID_VALUE, "%s: the limit is negative", __func__);
  }
  return kernel->device->backend->max_potential_block_size(*kernel, shared_bytes, block_limit,
                                                           grid_size, block_size);
}

}  // extern "C"
