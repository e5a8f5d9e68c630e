// SPDX-License-Identifier: Apache-2.0
// Who owns a function: library, kernel, module, function, as the program got them from each other.
// One function has several handles (a CUkernel, the CUfunction made of it, the same CUfunction of
// the library's module), and what happens to one happens to all. Any thread; off the launch path;
// calls the driver only where it says so.
#pragma once

#include "runtime/driver.h"

namespace runtime {

struct ContextState;

// What is known of a function handle when its version is made; it does not change afterwards.
struct CodeOwner {
  CUmodule module = nullptr;    // null for a CUkernel
  CUlibrary library = nullptr;  // null: a module of the program's own, or not known
  CUkernel kernel = nullptr;    // itself, or what the CUfunction was made of; null: not known
  bool is_stray = false;        // seen in no call that loads: perhaps a library's
  bool is_tainted = false;      // texture or surface references are in use

  bool is_known() const noexcept { return module != nullptr || library != nullptr; }
};

// The program got a handle, in the current context `context`.
void note_module(CUmodule module, const ContextState* context) noexcept;
void note_library_module(CUmodule module, CUlibrary library, const ContextState* context) noexcept;
// A CUkernel has no context. Until its library is unloaded.
void note_kernel(CUkernel kernel, CUlibrary library) noexcept;
// From cuKernelGetFunction. Asks the driver for the module.
void note_function(CUfunction function, CUkernel kernel, const ContextState* context) noexcept;

CUlibrary library_of(CUkernel kernel) noexcept;
// Asks the driver.
CodeOwner owner_of(CUfunction handle) noexcept;

// Which handles an unload or a change reaches.
class CodeScope {
 public:
  static CodeScope of_module(CUmodule module) noexcept;
  static CodeScope of_library(CUlibrary library) noexcept;
  // A function or kernel under all its handles. Asks the driver.
  static CodeScope of_function(CUfunction function) noexcept;
  static CodeScope of_kernel(CUkernel kernel) noexcept;

  bool reaches(CUfunction handle, const CodeOwner& owner) const noexcept;
  // Whether the function may have other handles than its own.
  bool has_aliases() const noexcept;

 private:
  bool is_alias(CUfunction handle, const CodeOwner& owner) const noexcept;

  CUfunction handle_ = nullptr;  // null: all functions of the module or library
  CodeOwner owner_;
};

// The code is about to be unloaded, or its context is gone: the handles may come back as others.
void forget_module(CUmodule module) noexcept;
void forget_library(CUlibrary library) noexcept;
void forget_code_in(const ContextState& context) noexcept;
// Texture or surface references of the module are in use, from now on until it is unloaded. What
// it concerns.
CodeScope taint_module(CUmodule module, const ContextState* context) noexcept;

}  // namespace runtime
