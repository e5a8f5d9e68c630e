// SPDX-License-Identifier: Apache-2.0
// Entries about libraries: code that belongs to no context and is loaded into each one that uses
// it.
#include <algorithm>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/module_loading.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/raw_enum.h"

namespace softgpu {
namespace {

struct LibraryOptions {
  const CUlibraryOption* options = nullptr;
  void** values = nullptr;
  unsigned count = 0;
};

CUresult check_options(const LibraryOptions& given, bool is_file) {
  if (given.count != 0 && given.options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < given.count; ++i) {
    const int option = raw(given.options[i]);
    if (option < 0 || option >= CU_LIBRARY_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    if (option == CU_LIBRARY_BINARY_IS_PRESERVED && is_file) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void add_kernels(LibraryObject& library) {
  for (const ptx::Kernel& kernel : library.code.module->kernels()) {
    auto object = std::make_shared<KernelObject>();
    object->library = &library;
    object->kernel = &kernel;
    object->settings.assign(static_cast<std::size_t>(device_count()), default_settings(kernel));
    const CUfunction handle =
        callables().add(std::make_shared<Callable>(Callable{nullptr, object}));
    object->handle = reinterpret_cast<CUkernel>(handle);
    library.kernels.push_back(std::move(object));
  }
}

CUresult load(EntryId id, CUlibrary* out, ImageSource source, unsigned jit_count,
              const CUjit_option* jit, void** jit_values, const LibraryOptions& given) {
  return call_unlocked(id, [&]() -> CUresult {
    check(Call::refusal());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    check(check_options(given, source.path != nullptr));
    auto library = std::make_shared<LibraryObject>();
    check(read_code(row(id).api, source, jit_count, jit, jit_values, &library->code));
    const DriverLock lock;
    add_kernels(*library);
    library->handle = libraries().add(library);
    *out = library->handle;
    return CUDA_SUCCESS;
  });
}

// Waits for every context that uses the library; waiting drops the driver lock, so each round looks
// again.
CUresult unload(CUlibrary handle) {
  check(capture_forbids_unsafe());
  while (!libraries().get(handle).modules.empty()) {
    const std::shared_ptr<ModuleObject> module = libraries().get(handle).modules.back();
    wait_for_context(*module->context);
    const std::vector<std::shared_ptr<ModuleObject>>& left = libraries().get(handle).modules;
    if (std::find(left.begin(), left.end(), module) != left.end()) unload_module(*module);
  }
  const std::shared_ptr<LibraryObject> library = libraries().remove(handle);
  for (auto kernel = library->kernels.rbegin(); kernel != library->kernels.rend(); ++kernel) {
    callables().remove(reinterpret_cast<CUfunction>((*kernel)->handle));
  }
  for (const auto& [name, address] : library->managed) release(address);
  return CUDA_SUCCESS;
}

CUresult get_kernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LibraryObject& library = libraries().get(handle);
  const ptx::Kernel* const found = library.code.module->find_kernel(name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto index = found - library.code.module->kernels().data();
  *kernel = library.kernels[static_cast<std::size_t>(index)]->handle;
  return CUDA_SUCCESS;
}

CUresult enumerate(CUkernel* kernels, unsigned count, CUlibrary handle) {
  if (kernels == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const LibraryObject& library = libraries().get(handle);
  for (std::size_t i = 0; i < count && i < library.kernels.size(); ++i) {
    kernels[i] = library.kernels[i]->handle;
  }
  return CUDA_SUCCESS;
}

CUresult get_managed(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LibraryObject& library = libraries().get(handle);
  const ptx::Variable* const variable = library.code.module->find_variable(name);
  if (variable == nullptr || !variable->managed) return CUDA_ERROR_NOT_FOUND;
  // It gets its memory when the library is first loaded into any context.
  const ModuleObject& module =
      library.modules.empty() ? instantiate(library, usable_context()) : *library.modules.front();
  return get_global(module, name, address, bytes);
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;
using softgpu::libraries;

extern "C" {

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit,
                                   void** jit_values, unsigned int jit_count,
                                   CUlibraryOption* options, void** values, unsigned int count) {
  return softgpu::load(EntryId::cuLibraryLoadData, library, {code, nullptr}, jit_count, jit,
                       jit_values, {options, values, count});
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit,
                                       void** jit_values, unsigned int jit_count,
                                       CUlibraryOption* options, void** values,
                                       unsigned int count) {
  if (path == nullptr) path = "";
  return softgpu::load(EntryId::cuLibraryLoadFromFile, library, {nullptr, path}, jit_count, jit,
                       jit_values, {options, values, count});
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  return call(EntryId::cuLibraryUnload, [&] { return softgpu::unload(library); });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return call(EntryId::cuLibraryGetKernel,
              [&] { return softgpu::get_kernel(kernel, library, name); });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return call(EntryId::cuLibraryGetKernelCount, [&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(libraries().get(library).kernels.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count,
                                           CUlibrary library) {
  return call(EntryId::cuLibraryEnumerateKernels,
              [&] { return softgpu::enumerate(kernels, count, library); });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return call(EntryId::cuLibraryGetModule, [&]() -> CUresult {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = instantiate(libraries().get(library), softgpu::usable_context()).handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                    const char* name) {
  return call(EntryId::cuLibraryGetGlobal, [&]() -> CUresult {
    softgpu::LibraryObject& object = libraries().get(library);
    return softgpu::get_global(instantiate(object, softgpu::usable_context()), name, address,
                               bytes);
  });
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                     const char* name) {
  return call(EntryId::cuLibraryGetManaged,
              [&] { return softgpu::get_managed(address, bytes, library, name); });
}

CUresult CUDAAPI cuLibraryGetUnifiedFunction(void** function, CUlibrary library,
                                             const char* symbol) {
  return call(EntryId::cuLibraryGetUnifiedFunction, [&]() -> CUresult {
    if (function == nullptr || symbol == nullptr) return CUDA_ERROR_INVALID_VALUE;
    libraries().get(library);
    return CUDA_ERROR_NOT_FOUND;  // unified function pointers do not exist on this device
  });
}

}  // extern "C"
