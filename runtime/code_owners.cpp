// SPDX-License-Identifier: Apache-2.0
#include "runtime/code_owners.h"

#include <new>

#include "runtime/handle_map.h"
#include "runtime/mutants.h"
#include "runtime/mutex.h"

namespace runtime {
namespace {

struct ModuleNote {
  CUlibrary library;
  const ContextState* context;
  bool is_loaded;  // by a call that we saw; else only its references are known
  bool is_tainted;
};
struct KernelNote {
  CUlibrary library;
};
struct FunctionNote {
  CUkernel kernel;
  CUlibrary library;
  const ContextState* context;
};

struct Notes {
  HandleMap<ModuleNote> modules;
  HandleMap<KernelNote> kernels;
  HandleMap<FunctionNote> functions;
  bool has_taint = false;
};

// Out of memory for a note, the handle stays a stray, whose changes reach more than they must.
constinit Mutex g_mutex;
constinit Notes* g_notes = nullptr;  // guarded by g_mutex; never freed

Notes* notes() noexcept {
  if (g_notes == nullptr) g_notes = new (std::nothrow) Notes;
  return g_notes;
}

// With g_mutex held, like all below.
CUlibrary kernels_library(CUkernel kernel) noexcept {
  const KernelNote* note = g_notes == nullptr ? nullptr : g_notes->kernels.find(kernel);
  return note == nullptr ? nullptr : note->library;
}

bool is_tainted(CUlibrary library) noexcept {
  return g_notes->has_taint && g_notes->modules.any([library](const void*, const ModuleNote& note) {
    return note.library == library && note.is_tainted;
  });
}

CodeOwner kernels_owner(CUkernel kernel, CUlibrary library) noexcept {
  CodeOwner owner;
  owner.kernel = kernel;
  owner.library = library;
  owner.is_tainted = is_tainted(library);
  return owner;
}

void remember_module(CUmodule module, CUlibrary library, const ContextState* context) noexcept {
  Notes* all = notes();
  ModuleNote* note = all == nullptr ? nullptr : all->modules.find_or_add(module);
  if (note == nullptr) return;
  // A module that was loaded just now has no references yet; a library's may have been met before.
  *note = {library, context, true, library != nullptr && note->is_tainted};
}

}  // namespace

void note_module(CUmodule module, const ContextState* context) noexcept {
  const MutexGuard guard(g_mutex);
  remember_module(module, nullptr, context);
}

void note_library_module(CUmodule module, CUlibrary library, const ContextState* context) noexcept {
  const MutexGuard guard(g_mutex);
  remember_module(module, library, context);
}

void note_kernel(CUkernel kernel, CUlibrary library) noexcept {
  const MutexGuard guard(g_mutex);
  Notes* all = notes();
  // Without memory for it the kernel is taken for a function, and its layout stays unknown.
  KernelNote* note = all == nullptr ? nullptr : all->kernels.find_or_add(kernel);
  if (note != nullptr) note->library = library;
}

void note_function(CUfunction function, CUkernel kernel, const ContextState* context) noexcept {
  if (is_mutant(Mutant::kAliasUnnoticed)) return;
  CUmodule module = nullptr;
  const bool has_module = real.cuFuncGetModule(&module, function) == CUDA_SUCCESS;
  const MutexGuard guard(g_mutex);
  CUlibrary library = kernels_library(kernel);
  Notes* all = notes();
  FunctionNote* note = all == nullptr ? nullptr : all->functions.find_or_add(function);
  if (note != nullptr) *note = {kernel, library, context};
  if (has_module && library != nullptr) remember_module(module, library, context);
}

CUlibrary library_of(CUkernel kernel) noexcept {
  const MutexGuard guard(g_mutex);
  return kernels_library(kernel);
}

CodeOwner owner_of(CUfunction handle) noexcept {
  {
    const MutexGuard guard(g_mutex);
    const auto kernel = reinterpret_cast<CUkernel>(handle);
    if (CUlibrary library = kernels_library(kernel)) return kernels_owner(kernel, library);
  }
  CodeOwner owner;
  real.cuFuncGetModule(&owner.module, handle);
  owner.is_stray = owner.module != nullptr;
  const MutexGuard guard(g_mutex);
  if (g_notes == nullptr) return owner;
  if (const ModuleNote* note = g_notes->modules.find(owner.module)) {
    owner.library = note->library;
    owner.is_stray = !note->is_loaded;
    owner.is_tainted = note->is_tainted;
  }
  const FunctionNote* note = g_notes->functions.find(handle);
  // A module of the program's own has no kernels: the note is of an earlier life of the handle.
  const bool is_of_library = owner.is_stray || owner.library != nullptr;
  if (note != nullptr && is_of_library) {
    owner.kernel = note->kernel;
    owner.library = note->library;
    owner.is_stray = false;
  }
  return owner;
}

CodeScope CodeScope::of_module(CUmodule module) noexcept {
  CodeScope scope;
  scope.owner_.module = module;
  return scope;
}

CodeScope CodeScope::of_library(CUlibrary library) noexcept {
  CodeScope scope;
  scope.owner_.library = library;
  return scope;
}

CodeScope CodeScope::of_function(CUfunction function) noexcept {
  CodeScope scope;
  scope.handle_ = function;
  scope.owner_ = owner_of(function);
  return scope;
}

CodeScope CodeScope::of_kernel(CUkernel kernel) noexcept {
  CodeScope scope;
  scope.handle_ = reinterpret_cast<CUfunction>(kernel);
  const MutexGuard guard(g_mutex);
  scope.owner_.kernel = kernel;
  scope.owner_.library = kernels_library(kernel);
  scope.owner_.is_stray = scope.owner_.library == nullptr;
  return scope;
}

bool CodeScope::has_aliases() const noexcept {
  return owner_.library != nullptr || owner_.kernel != nullptr || owner_.is_stray;
}

// Two handles of one function are a CUkernel and a CUfunction, or CUfunctions of one CUkernel.
bool CodeScope::is_alias(CUfunction handle, const CodeOwner& owner) const noexcept {
  if (is_mutant(Mutant::kAliasUnreached)) return false;
  const bool is_function = reinterpret_cast<CUfunction>(owner_.kernel) != handle_;
  if (is_function && reinterpret_cast<CUfunction>(owner.kernel) != handle) return false;
  if (owner_.kernel != nullptr && owner.kernel != nullptr) return owner_.kernel == owner.kernel;
  // Of one it is not known which kernel of its library it is, or even which library.
  if (owner_.is_stray || owner.is_stray) return true;
  return owner_.library != nullptr && owner_.library == owner.library;
}

bool CodeScope::reaches(CUfunction handle, const CodeOwner& owner) const noexcept {
  if (handle_ != nullptr) return handle == handle_ || is_alias(handle, owner);
  if (owner_.module != nullptr) return owner.module == owner_.module;
  if (is_mutant(Mutant::kLibraryUnloadForKernels) && owner.module != nullptr) return false;
  return owner.library == owner_.library || owner.is_stray;
}

void forget_module(CUmodule module) noexcept {
  const MutexGuard guard(g_mutex);
  if (g_notes == nullptr) return;
  g_notes->modules.remove_if(
      [module](const void* handle, const ModuleNote&) { return handle == module; });
}

void forget_library(CUlibrary library) noexcept {
  const MutexGuard guard(g_mutex);
  if (g_notes == nullptr) return;
  const auto is_of = [library](const void*, const auto& note) { return note.library == library; };
  g_notes->modules.remove_if(is_of);
  g_notes->kernels.remove_if(is_of);
  g_notes->functions.remove_if(is_of);
}

void forget_code_in(const ContextState& context) noexcept {
  const MutexGuard guard(g_mutex);
  if (g_notes == nullptr) return;
  const auto is_in = [&context](const void*, const auto& note) { return note.context == &context; };
  g_notes->modules.remove_if(is_in);
  g_notes->functions.remove_if(is_in);
}

CodeScope taint_module(CUmodule module, const ContextState* context) noexcept {
  const MutexGuard guard(g_mutex);
  Notes* all = notes();
  ModuleNote* note = all == nullptr ? nullptr : all->modules.find_or_add(module);
  if (note == nullptr) return CodeScope::of_module(module);
  if (!note->is_loaded) note->context = context;
  note->is_tainted = true;
  all->has_taint = true;
  return note->library == nullptr ? CodeScope::of_module(module)
                                  : CodeScope::of_library(note->library);
}

}  // namespace runtime
