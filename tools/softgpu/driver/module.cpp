// SPDX-License-Identifier: Apache-2.0
// Entries about modules. Parsing runs without the driver lock, so that loading does not hold up
// running work.
#include <fstream>
#include <iterator>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/fatbin.h"
#include "tools/softgpu/driver/jit_options.h"
#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/module_loading.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/options.h"

namespace softgpu {
namespace {

ModuleObject& module_of(CUmodule handle) {
  return modules().get(handle);
}

// The module's memory is in use until its context's work is done. Waiting drops the driver lock.
CUresult unload(CUmodule handle) {
  usable_context();
  Context& context = *module_of(handle).context;
  if (module_of(handle).library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  check(capture_forbids_unsafe());
  note_pending_work(context);
  wait_for_context(context);
  unload_module(module_of(handle));
  return CUDA_SUCCESS;
}

CUresult get_function(CUfunction* function, CUmodule handle, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  usable_context();
  ModuleObject& module = module_of(handle);
  const ptx::Kernel* const kernel = module.code->find_kernel(name);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  FunctionObject& found =
      *module.functions[static_cast<std::size_t>(kernel - module.code->kernels().data())];
  found.is_loaded = true;
  *function = found.handle;
  return CUDA_SUCCESS;
}

CUresult enumerate(CUfunction* functions, unsigned count, CUmodule handle) {
  if (functions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const ModuleObject& module = module_of(handle);
  for (std::size_t i = 0; i < count && i < module.functions.size(); ++i) {
    functions[i] = module.functions[i]->handle;
  }
  return CUDA_SUCCESS;
}

// Texture and surface references left PTX with version 1.5; no module has one.
CUresult no_reference(const void* reference, CUmodule handle, const char* name) {
  if (reference == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  module_of(handle);
  return CUDA_ERROR_NOT_FOUND;
}

CUresult load(EntryId id, CUmodule* module, ImageSource source, unsigned option_count,
              const CUjit_option* options, void** values) {
  return call_unlocked(id, [&]() -> CUresult {
    check(Call::refusal());
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    {
      const DriverLock lock;
      usable_context();
      check(capture_forbids_unsafe());
    }
    Code code;
    if (const CUresult failed =
            read_code(row(id).api, source, option_count, options, values, &code);
        failed != CUDA_SUCCESS) {
      return failed;
    }
    const DriverLock lock;
    *module = load_module(code, usable_context(), nullptr)->handle;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult read_file(const char* path, std::string* bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  return file.bad() ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
}

CUresult get_global(const ModuleObject& module, const char* name, CUdeviceptr* address,
                    std::size_t* bytes) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const ptx::Variable* const variable = module.code->find_variable(name);
  if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->size;
  return CUDA_SUCCESS;
}

CUresult read_code(const char* entry, ImageSource source, unsigned option_count,
                   const CUjit_option* options, void** values, Code* code) {
  JitOptions jit;
  if (const CUresult wrong = jit.read(option_count, options, values); wrong != CUDA_SUCCESS)
    return wrong;
  const int cc = softgpu::options().compute_capability;
  PtxImage image;
  if (source.path != nullptr) {
    std::string bytes;
    if (const CUresult failed = read_file(source.path, &bytes); failed != CUDA_SUCCESS)
      return failed;
    image = read_image(std::string_view(bytes), cc);
  } else if (source.image != nullptr) {
    image = read_image(source.image, cc);
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::string log = image.message;
  if (image.code == CUDA_SUCCESS) image.code = compile(image.texts, code, &log);
  if (image.code == CUDA_SUCCESS) {
    jit.report(
        "info    : softgpu: " + std::to_string(code->module->kernels().size()) + " kernels\n", "");
  } else {
    jit.report("", log);
    // A caller without a log would never learn why.
    if (!jit.has_error_log()) {
      while (log.ends_with('\n')) log.pop_back();
      say("%s: %s", entry, log.c_str());
    }
  }
  return image.code;
}

}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) {
  if (path == nullptr) path = "";
  return softgpu::load(EntryId::cuModuleLoad, module, {nullptr, path}, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return softgpu::load(EntryId::cuModuleLoadData, module, {image, nullptr}, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int option_count,
                                    CUjit_option* options, void** values) {
  return softgpu::load(EntryId::cuModuleLoadDataEx, module, {image, nullptr}, option_count, options,
                       values);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* fatbin) {
  return softgpu::load(EntryId::cuModuleLoadFatBinary, module, {fatbin, nullptr}, 0, nullptr,
                       nullptr);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return call(EntryId::cuModuleUnload, [&] { return softgpu::unload(module); });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call(EntryId::cuModuleGetLoadingMode, [&]() -> CUresult {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = softgpu::loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call(EntryId::cuModuleGetFunction,
              [&] { return softgpu::get_function(function, module, name); });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  return call(EntryId::cuModuleGetFunctionCount, [&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(softgpu::module_of(module).functions.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count,
                                            CUmodule module) {
  return call(EntryId::cuModuleEnumerateFunctions,
              [&] { return softgpu::enumerate(functions, count, module); });
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                      const char* name) {
  return call(EntryId::cuModuleGetGlobal_v2, [&]() -> CUresult {
    softgpu::usable_context();
    return softgpu::get_global(softgpu::module_of(module), name, address, bytes);
  });
}

CUresult CUDAAPI cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) {
  return call(EntryId::cuModuleGetTexRef,
              [&] { return softgpu::no_reference(reference, module, name); });
}

CUresult CUDAAPI cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name) {
  return call(EntryId::cuModuleGetSurfRef,
              [&] { return softgpu::no_reference(reference, module, name); });
}

}  // extern "C"
