// SPDX-License-Identifier: Apache-2.0
// Loading and unloading code: module, library and function objects and their tables. Driver lock
// held, except where the header says otherwise.
#include "tools/softgpu/driver/module_objects.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/occupancy.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/ptx_merge.h"

namespace softgpu {
namespace {

// Variables of a library that are managed have one address in all contexts.
std::uint64_t place_variable(const ptx::Variable& variable, ModuleObject& module) {
  if (variable.managed && module.library != nullptr) {
    const auto found = module.library->managed.find(variable.name);
    if (found != module.library->managed.end()) return found->second;
  }
  const MemoryKind kind = variable.managed                               ? MemoryKind::kManaged
                          : variable.space == ptx::VariableSpace::kConst ? MemoryKind::kConstant
                                                                         : MemoryKind::kVariable;
  const std::shared_ptr<Allocation> allocation = allocate(
      *module.context, std::max<std::size_t>(variable.size, 1), kind,
      variable.managed ? CU_MEM_ATTACH_GLOBAL : 0, std::max<std::size_t>(variable.align, 256));
  if (variable.managed && module.library != nullptr) {
    module.library->managed.emplace(variable.name, allocation->base);
  } else {
    module.memory.push_back(allocation->base);
  }
  return allocation->base;
}

void place_variables(ModuleObject& module) {
  std::set<std::string, std::less<>> shared_before;
  if (module.library != nullptr) {
    for (const auto& [name, address] : module.library->managed) shared_before.insert(name);
  }
  const auto allocate_variable = [&](const ptx::Variable& variable) -> std::uint64_t {
    try {
      return place_variable(variable, module);
    } catch (const DriverError&) {
      return 0;
    }
  };
  const auto write = [&](const ptx::Variable& variable, const std::vector<std::byte>& bytes) {
    if (shared_before.contains(variable.name)) return;
    write_memory(variable.address, bytes.data(), bytes.size());
  };
  if (module.code->place(allocate_variable, write)) return;
  for (const CUdeviceptr address : module.memory) release(address);
  fail(CUDA_ERROR_OUT_OF_MEMORY);
}

void add_function(ModuleObject& module, const ptx::Kernel& kernel, KernelObject* library_kernel,
                  int target) {
  auto function = std::make_shared<FunctionObject>();
  function->context = module.context;
  function->module = &module;
  function->code = module.code;
  function->kernel = &kernel;
  function->max_threads = max_threads_per_block(kernel);
  function->target = target;
  function->is_loaded = !loads_lazily();
  function->settings = default_settings(kernel);
  if (library_kernel != nullptr) {
    function->kernel_handle = library_kernel->handle;
    function->settings = library_kernel->settings[static_cast<std::size_t>(module.context->device)];
  }
  function->handle = callables().add(std::make_shared<Callable>(Callable{function, nullptr}));
  module.functions.push_back(std::move(function));
}

// An external variable that no module gave.
bool has_unresolved(const ptx::Module& module, std::string* log) {
  bool unresolved = false;
  for (const ptx::Variable& variable : module.variables()) {
    if (!variable.external) continue;
    *log += "ptxas fatal   : Unresolved extern variable '" + variable.name + "'\n";
    unresolved = true;
  }
  return unresolved;
}

}  // namespace

// Leaked like all driver state.
ModuleTable& modules() {
  static auto& table = *new ModuleTable;
  return table;
}
LibraryTable& libraries() {
  static auto& table = *new LibraryTable;
  return table;
}
CallableTable& callables() {
  static auto& table = *new CallableTable;
  return table;
}

const std::shared_ptr<FunctionObject>* find_function(CUfunction handle, Context& context) {
  const Callable* const callable = callables().find(handle);
  if (callable == nullptr) return nullptr;
  if (callable->function != nullptr) return &callable->function;
  return &instantiate(*callable->kernel, context);
}

FunctionObject& function_of(CUfunction handle, Context& context) {
  const std::shared_ptr<FunctionObject>* const function = find_function(handle, context);
  if (function == nullptr) fail(CUDA_ERROR_INVALID_HANDLE);
  return **function;
}

KernelObject* find_kernel(CUkernel handle) {
  const Callable* const callable = callables().find(static_cast<const void*>(handle));
  return callable == nullptr ? nullptr : callable->kernel.get();
}

FunctionSettings default_settings(const ptx::Kernel& kernel) {
  FunctionSettings settings;
  const std::size_t limit = sm_limits().shared_per_block;
  const std::size_t used = std::min(kernel.static_shared_bytes, limit);
  settings.max_dynamic_shared_bytes = static_cast<int>(limit - used);
  return settings;
}

bool loads_lazily() {
  static const bool lazy = [] {
    const char* const mode = std::getenv("CUDA_MODULE_LOADING");
    return mode == nullptr || std::string_view(mode) != "EAGER";
  }();
  return lazy;
}

int target_of(std::string_view text) {
  const std::size_t directive = text.find(".target");
  const std::size_t name =
      directive == std::string_view::npos ? directive : text.find("sm_", directive);
  if (name == std::string_view::npos) return 0;
  return std::atoi(std::string(text.substr(name + 3, 4)).c_str());
}

CUresult compile(const std::vector<std::string>& texts, Code* code, std::string* log) {
  if (texts.size() == 1) {
    code->text = texts.front();
  } else if (!merge_ptx({texts.begin(), texts.end()}, &code->text, log)) {
    return CUDA_ERROR_INVALID_SOURCE;
  }
  ptx::ParseError error;
  code->module = ptx::Module::parse(code->text, options().compute_capability, &error);
  if (code->module == nullptr) {
    *log += error.message + "\n";
    return error.unsupported_version ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_ERROR_INVALID_PTX;
  }
  return has_unresolved(*code->module, log) ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

std::shared_ptr<ModuleObject> load_module(const Code& code, Context& context,
                                          LibraryObject* library) {
  auto module = std::make_shared<ModuleObject>();
  module->context = &context;
  module->library = library;
  module->code = code.module;
  place_variables(*module);
  const int target = target_of(code.text);
  const std::vector<ptx::Kernel>& kernels = module->code->kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    KernelObject* const kernel = library == nullptr ? nullptr : library->kernels[i].get();
    add_function(*module, kernels[i], kernel, target);
  }
  module->handle = modules().add(module);
  return module;
}

ModuleObject& instantiate(LibraryObject& library, Context& context) {
  for (const std::shared_ptr<ModuleObject>& module : library.modules) {
    if (module->context == &context) return *module;
  }
  // It parsed before, so it does now.
  Code code;
  std::string log;
  check(compile({library.code.text}, &code, &log));
  library.modules.push_back(load_module(code, context, &library));
  return *library.modules.back();
}

const std::shared_ptr<FunctionObject>& instantiate(KernelObject& kernel, Context& context) {
  const ModuleObject& module = instantiate(*kernel.library, context);
  const auto index = kernel.kernel - kernel.library->code.module->kernels().data();
  return module.functions[static_cast<std::size_t>(index)];
}

void unload_module(ModuleObject& module) {
  const std::shared_ptr<ModuleObject> keep = modules().remove(module.handle);
  note_stale_graphs(module);
  // In reverse, so that a reload in the same order gets the same handles.
  for (auto function = module.functions.rbegin(); function != module.functions.rend(); ++function) {
    callables().remove((*function)->handle);
    (*function)->module = nullptr;
  }
  for (const CUdeviceptr address : module.memory) release(address);
  if (module.library == nullptr) return;
  std::erase_if(module.library->modules, [&](const auto& other) { return other.get() == &module; });
}

void unload_context_modules(Context& context) {
  for (const std::shared_ptr<ModuleObject>& module : modules().all()) {
    if (module->context == &context) unload_module(*module);
  }
}

}  // namespace softgpu
