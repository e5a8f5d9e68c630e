// SPDX-License-Identifier: Apache-2.0
// Modules and libraries: what is unloaded takes its recordings along, what is got from what is
// remembered, and what may lazily load code must not wait for work that we hold.
#include "profiler/trace/device_timer.h"
#include "profiler/trace/kernel_names.h"
#include "runtime/deferral.h"
#include "runtime/lookups.h"
#include "shim/hooks.h"

namespace shim {
namespace {

// Owner first forgotten, then unloaded: once the driver has freed a handle, another thread may get
// the value again.
template <EntryId id, typename Owner>
CUresult unload(Owner owner) noexcept {
  if (is_mutant(Mutant::kUnloadUnnoticed)) return runtime::slot_of<id>()(owner);
  before<id>(owner);
  if (owner != nullptr) {
    const ErrnoKeeper keeper;
    runtime::code_unloads(owner);
    if (profiler::times_launches()) profiler::forget_kernel_names();
  }
  return forward_with_rule<id>(owner);
}

template <EntryId id, typename Reference>
CUresult take_reference(Reference* reference, CUmodule module, const char* name) noexcept {
  CUresult result = forward_with_rule<id>(reference, module, name);
  if (result != CUDA_SUCCESS) return result;
  const ErrnoKeeper keeper;
  runtime::code_is_tainted(module);
  return result;
}

template <EntryId id, typename... Args>
CUresult load_module(CUmodule* module, Args... args) noexcept {
  CUresult result = forward_with_rule<id>(module, args...);
  if (result != CUDA_SUCCESS || module == nullptr) return result;
  const ErrnoKeeper keeper;
  runtime::note_module(*module, runtime::current_context());
  return result;
}

// An answer that cannot change while the code is loaded: a name that is not there stays so. Of a
// library's variables a name is not what is remembered, but that the library is loaded.
template <EntryId id>
bool is_final(CUresult result) noexcept {
  if (result == CUDA_ERROR_NOT_FOUND) return id != EntryId::cuLibraryGetGlobal;
  return result == CUDA_SUCCESS;
}

// The first time it may finish a lazy load, and then it may wait for the device.
template <EntryId id, typename... Args>
CUresult look_up(const runtime::Lookup& lookup, Args... args) noexcept {
  if (lookup.is_known()) return call_driver<id>(args...);
  CUresult result = forward_with_rule<id>(args...);
  if (is_final<id>(result)) {
    const ErrnoKeeper keeper;
    lookup.remember();
  }
  return result;
}

runtime::ContextState* context_for_lookup() noexcept {
  const ErrnoKeeper keeper;
  return runtime::current_context();
}

}  // namespace

CUresult Hooks::cuModuleUnload(CUmodule module) noexcept {
  return unload<EntryId::cuModuleUnload>(module);
}
CUresult Hooks::cuLibraryUnload(CUlibrary library) noexcept {
  return unload<EntryId::cuLibraryUnload>(library);
}

CUresult Hooks::cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) noexcept {
  CUresult result = forward_with_rule<EntryId::cuLibraryGetKernel>(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel != nullptr) runtime::note_kernel(*kernel, library);
  return result;
}

CUresult Hooks::cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count,
                                          CUlibrary library) noexcept {
  CUresult result = forward_with_rule<EntryId::cuLibraryEnumerateKernels>(kernels, count, library);
  if (result != CUDA_SUCCESS || kernels == nullptr) return result;
  unsigned available = 0;
  if (runtime::real.cuLibraryGetKernelCount(&available, library) != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && i < available; ++i) runtime::note_kernel(kernels[i], library);
  return result;
}

CUresult Hooks::cuModuleLoad(CUmodule* module, const char* path) noexcept {
  return load_module<EntryId::cuModuleLoad>(module, path);
}
CUresult Hooks::cuModuleLoadData(CUmodule* module, const void* image) noexcept {
  return load_module<EntryId::cuModuleLoadData>(module, image);
}
CUresult Hooks::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                   CUjit_option* options, void** values) noexcept {
  return load_module<EntryId::cuModuleLoadDataEx>(module, image, count, options, values);
}
CUresult Hooks::cuModuleLoadFatBinary(CUmodule* module, const void* image) noexcept {
  return load_module<EntryId::cuModuleLoadFatBinary>(module, image);
}

CUresult Hooks::cuLibraryGetModule(CUmodule* module, CUlibrary library) noexcept {
  CUresult result = forward_with_rule<EntryId::cuLibraryGetModule>(module, library);
  if (result != CUDA_SUCCESS || module == nullptr) return result;
  const ErrnoKeeper keeper;
  const runtime::ContextState* context = runtime::current_context();
  runtime::note_library_module(*module, library, context);
  runtime::Lookup::of_library(library, context).remember();
  return result;
}

CUresult Hooks::cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                   const char* name) noexcept {
  const auto lookup = runtime::Lookup::of_library(library, context_for_lookup());
  return look_up<EntryId::cuLibraryGetGlobal>(lookup, address, bytes, library, name);
}

CUresult Hooks::cuModuleGetFunction(CUfunction* function, CUmodule module,
                                    const char* name) noexcept {
  if (name == nullptr) {
    return forward_with_rule<EntryId::cuModuleGetFunction>(function, module, name);
  }
  const auto lookup = runtime::Lookup::of_name(module, name);
  return look_up<EntryId::cuModuleGetFunction>(lookup, function, module, name);
}

CUresult Hooks::cuKernelGetFunction(CUfunction* function, CUkernel kernel) noexcept {
  const runtime::ContextState* context = context_for_lookup();
  const CUlibrary library = runtime::library_of(kernel);
  const auto lookup = runtime::Lookup::of_function(kernel, library, context);
  const bool is_known = lookup.is_known();
  CUresult result = look_up<EntryId::cuKernelGetFunction>(lookup, function, kernel);
  if (is_known || result != CUDA_SUCCESS || function == nullptr) return result;
  const ErrnoKeeper keeper;
  runtime::note_function(*function, kernel, context);
  if (library != nullptr) runtime::Lookup::of_library(library, context).remember();
  return result;
}

CUresult Hooks::cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) noexcept {
  return take_reference<EntryId::cuModuleGetTexRef>(reference, module, name);
}
CUresult Hooks::cuModuleGetSurfRef(CUsurfref* reference, CUmodule module,
                                   const char* name) noexcept {
  return take_reference<EntryId::cuModuleGetSurfRef>(reference, module, name);
}

}  // namespace shim
