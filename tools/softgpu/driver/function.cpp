// SPDX-License-Identifier: Apache-2.0
// Entries about one function or kernel: attributes, names, parameter layout, loading.
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/occupancy.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/raw_enum.h"

namespace softgpu {
namespace {

bool is_cache_config(int config) {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

CUresult get_param_info(const ptx::Kernel& kernel, std::size_t index, std::size_t* offset,
                        std::size_t* size) {
  // Past the last parameter: how clients find out how many there are.
  if (offset == nullptr || index >= kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].size;
  return CUDA_SUCCESS;
}

KernelObject& kernel_of(CUkernel handle) {
  KernelObject* const kernel = find_kernel(handle);
  if (kernel == nullptr) fail(CUDA_ERROR_INVALID_HANDLE);
  return *kernel;
}

// What a kernel's instance on `device` has, or will have.
FunctionSettings& settings_of(KernelObject& kernel, CUdevice device) {
  require_device(device);
  return kernel.settings[static_cast<std::size_t>(device)];
}

// Instances made before get the kernel's settings too.
void spread_settings(KernelObject& kernel, CUdevice device) {
  for (const std::shared_ptr<ModuleObject>& module : kernel.library->modules) {
    if (module->context->device != device) continue;
    instantiate(kernel, *module->context)->settings = settings_of(kernel, device);
  }
}

}  // namespace

CUresult get_attribute(const ptx::Kernel& kernel, const FunctionSettings& settings, int target,
                       int attribute, int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(max_threads_per_block(kernel));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kernel.static_shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(kernel.const_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(kernel.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(kernel.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = target;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = options().compute_capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = settings.max_dynamic_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = settings.shared_carveout_percent;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = settings.cluster_width;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = settings.cluster_height;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = settings.cluster_depth;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = settings.non_portable_cluster;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = settings.cluster_policy;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute,
                       int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const std::size_t limit = sm_limits().shared_per_block_optin;
      if (value < 0 || kernel.static_shared_bytes + static_cast<std::size_t>(value) > limit) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      settings.max_dynamic_shared_bytes = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      settings.shared_carveout_percent = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      // Clusters of one block are all that this device has.
      if (value < 0 || value > 1) return CUDA_ERROR_INVALID_VALUE;
      (attribute == CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH    ? settings.cluster_width
       : attribute == CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT ? settings.cluster_height
                                                                : settings.cluster_depth) = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      if (value < 0 || value > 1) return CUDA_ERROR_INVALID_VALUE;
      settings.non_portable_cluster = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT ||
          value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      settings.cluster_policy = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace softgpu

using softgpu::call;
using softgpu::current_context;
using softgpu::EntryId;
using softgpu::function_of;
using softgpu::FunctionObject;
using softgpu::kernel_of;

extern "C" {

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return call(EntryId::cuFuncGetAttribute, [&]() -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FunctionObject& function = function_of(handle, current_context());
    function.is_loaded = true;
    return softgpu::get_attribute(*function.kernel, function.settings, function.target,
                                  softgpu::raw(attribute), value);
  });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return call(EntryId::cuFuncSetAttribute, [&] {
    FunctionObject& function = function_of(handle, current_context());
    return softgpu::set_attribute(*function.kernel, function.settings, softgpu::raw(attribute),
                                  value);
  });
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return call(EntryId::cuFuncSetCacheConfig, [&]() -> CUresult {
    FunctionObject& function = function_of(handle, current_context());
    if (!softgpu::is_cache_config(softgpu::raw(config))) return CUDA_ERROR_INVALID_VALUE;
    function.settings.cache = config;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  return call(EntryId::cuFuncSetSharedMemConfig, [&]() -> CUresult {
    function_of(handle, current_context());
    // Bank sizes went away with compute capability 5.0: checked, then without effect.
    const int number = softgpu::raw(config);
    const bool is_known = number >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                          number <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return call(EntryId::cuFuncGetModule, [&]() -> CUresult {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = function_of(handle, current_context()).module->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  return call(EntryId::cuFuncGetName, [&]() -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function_of(handle, current_context()).kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  return call(EntryId::cuFuncGetParamInfo, [&] {
    return softgpu::get_param_info(*function_of(handle, current_context()).kernel, index, offset,
                                   size);
  });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return call(EntryId::cuFuncIsLoaded, [&]() -> CUresult {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool is_loaded = function_of(handle, current_context()).is_loaded;
    *state = is_loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  return call(EntryId::cuFuncLoad, [&]() -> CUresult {
    softgpu::Context& context = softgpu::usable_context();
    FunctionObject& function = function_of(handle, context);
    if (function.context != &context) return CUDA_ERROR_INVALID_HANDLE;
    function.is_loaded = true;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel handle) {
  return call(EntryId::cuKernelGetFunction, [&]() -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    FunctionObject& instance = *instantiate(kernel_of(handle), softgpu::usable_context());
    instance.is_loaded = true;
    *function = instance.handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  return call(EntryId::cuKernelGetLibrary, [&]() -> CUresult {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *library = kernel_of(handle).library->handle;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel handle) {
  return call(EntryId::cuKernelGetName, [&]() -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel_of(handle).kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  return call(EntryId::cuKernelGetParamInfo, [&] {
    return softgpu::get_param_info(*kernel_of(handle).kernel, index, offset, size);
  });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                      CUdevice device) {
  return call(EntryId::cuKernelGetAttribute, [&]() -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    softgpu::KernelObject& kernel = kernel_of(handle);
    return softgpu::get_attribute(*kernel.kernel, softgpu::settings_of(kernel, device),
                                  softgpu::target_of(kernel.library->code.text),
                                  softgpu::raw(attribute), value);
  });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                      CUdevice device) {
  return call(EntryId::cuKernelSetAttribute, [&] {
    softgpu::KernelObject& kernel = kernel_of(handle);
    const CUresult code = softgpu::set_attribute(
        *kernel.kernel, softgpu::settings_of(kernel, device), softgpu::raw(attribute), value);
    if (code == CUDA_SUCCESS) softgpu::spread_settings(kernel, device);
    return code;
  });
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  return call(EntryId::cuKernelSetCacheConfig, [&]() -> CUresult {
    softgpu::KernelObject& kernel = kernel_of(handle);
    softgpu::FunctionSettings& settings = softgpu::settings_of(kernel, device);
    if (!softgpu::is_cache_config(softgpu::raw(config))) return CUDA_ERROR_INVALID_VALUE;
    settings.cache = config;
    softgpu::spread_settings(kernel, device);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
