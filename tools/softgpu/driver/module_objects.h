// SPDX-License-Identifier: Apache-2.0
// What CUmodule, CUlibrary, CUfunction and CUkernel handles stand for, and how to find them. The
// driver lock guards all of it; only the code itself (ptx::Module) is also read by running kernels,
// which keep it alive.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/ptx/module.h"

namespace softgpu {

struct LibraryObject;
struct ModuleObject;

// What cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
  int max_dynamic_shared_bytes = 0;
  int shared_carveout_percent = CU_SHAREDMEM_CARVEOUT_DEFAULT;
  int cluster_width = 0, cluster_height = 0, cluster_depth = 0;
  int non_portable_cluster = 0;
  int cluster_policy = CU_CLUSTER_SCHEDULING_POLICY_DEFAULT;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
};

// State of the launch API that CUDA 3 had: cuFuncSetBlockShape, cuParamSet*, cuLaunch*.
struct LegacyLaunch {
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<std::byte> parameters;
};

// A CUfunction: one kernel in one context.
struct FunctionObject {
  CUfunction handle = nullptr;
  CUkernel kernel_handle = nullptr;  // the CUkernel it was made for, or null
  Context* context = nullptr;
  ModuleObject* module = nullptr;           // null once unloaded
  std::shared_ptr<const ptx::Module> code;  // outlives an unload while graphs or launches need it
  const ptx::Kernel* kernel = nullptr;      // in `code`
  unsigned max_threads = 0;                 // a block: .maxntid and registers allow no more
  int target = 0;                           // .target of the code, 80 for sm_80
  bool is_loaded = false;                   // what cuFuncIsLoaded says
  FunctionSettings settings;
  std::unique_ptr<LegacyLaunch> legacy;
};

// A CUkernel: one kernel of a library in any context.
struct KernelObject {
  CUkernel handle = nullptr;
  LibraryObject* library = nullptr;
  const ptx::Kernel* kernel = nullptr;     // in library->code
  std::vector<FunctionSettings> settings;  // by device; given to instances made later
};

struct ModuleObject {
  CUmodule handle = nullptr;
  Context* context = nullptr;
  LibraryObject* library = nullptr;  // null: from cuModuleLoad*
  std::shared_ptr<ptx::Module> code;
  std::vector<std::shared_ptr<FunctionObject>> functions;  // in the order of code->kernels()
  std::vector<CUdeviceptr> memory;                         // of its variables
};

// PTX that was parsed and found good.
struct Code {
  std::string text;
  std::shared_ptr<ptx::Module> module;
};

struct LibraryObject {
  CUlibrary handle = nullptr;
  Code code;  // names and layouts; each context parses its own, as variables have one address only
  std::vector<std::shared_ptr<KernelObject>> kernels;  // in the order of code.module->kernels()
  std::vector<std::shared_ptr<ModuleObject>> modules;  // one for each context that used it
  std::map<std::string, CUdeviceptr, std::less<>> managed;  // one address for all contexts
};

// What a CUfunction handle stands for: one of the two, as a CUkernel may be given wherever a
// CUfunction may.
struct Callable {
  std::shared_ptr<FunctionObject> function;
  std::shared_ptr<KernelObject> kernel;
};

using ModuleTable = ObjectTable<ModuleObject, CUmodule, HandleKind::kModule>;
using LibraryTable = ObjectTable<LibraryObject, CUlibrary, HandleKind::kLibrary>;
using CallableTable = ObjectTable<Callable, CUfunction, HandleKind::kFunction>;
ModuleTable& modules();
LibraryTable& libraries();
CallableTable& callables();

// The function a call in `context` means by `handle`; a CUkernel's instance is made on demand.
// Null: not a live handle. The pointer is good until the driver lock is dropped.
const std::shared_ptr<FunctionObject>* find_function(CUfunction handle, Context& context);
// As above, but fails with INVALID_HANDLE.
FunctionObject& function_of(CUfunction handle, Context& context);
// Null: not a live CUkernel.
KernelObject* find_kernel(CUkernel handle);

// Parses one or several (then linked) PTX texts. Takes long: call it without the driver lock. On
// failure `log` gets the reason, one line a problem.
CUresult compile(const std::vector<std::string>& texts, Code* code, std::string* log);

// Gives code memory and handles in `context`. Fails with OUT_OF_MEMORY.
std::shared_ptr<ModuleObject> load_module(const Code& code, Context& context,
                                          LibraryObject* library);
// The library's module in `context`, made on demand.
ModuleObject& instantiate(LibraryObject& library, Context& context);
// The instance of a kernel in `context`, made on demand.
const std::shared_ptr<FunctionObject>& instantiate(KernelObject& kernel, Context& context);
// Frees memory and handles. The caller has waited for the module's context.
void unload_module(ModuleObject& module);
// For cuCtxDestroy and a primary context's reset: library instances go too, the libraries stay.
void unload_context_modules(Context& context);

// What a kernel has before anyone sets an attribute.
FunctionSettings default_settings(const ptx::Kernel& kernel);
// What cuFuncGetAttribute and cuFuncSetAttribute do. `attribute` is any number a client gave.
CUresult get_attribute(const ptx::Kernel& kernel, const FunctionSettings& settings, int target,
                       int attribute, int* value);
CUresult set_attribute(const ptx::Kernel& kernel, FunctionSettings& settings, int attribute,
                       int value);

// Whether code is loaded at first use only (CUDA_MODULE_LOADING, lazy by default).
bool loads_lazily();

// .target of PTX text as a number: 80 for sm_80.
int target_of(std::string_view text);

}  // namespace softgpu
