// SPDX-License-Identifier: Apache-2.0
// What the program has asked the driver for by name, or about a function: the first time the call
// may finish a lazy load and wait for the device, later it cannot. A bounded table: what it has
// dropped is treated as new again. Any thread; reading takes no lock.
#pragma once

#include <cstdint>

#include "runtime/driver.h"

namespace runtime {

struct ContextState;

class Lookup {
 public:
  // A name in a module or library, which is null for none; a kernel's in the context.
  static Lookup of_name(CUmodule module, const char* name) noexcept;
  static Lookup of_function(CUkernel kernel, CUlibrary library,
                            const ContextState* context) noexcept;
  // Whether the library is loaded into the context.
  static Lookup of_library(CUlibrary library, const ContextState* context) noexcept;
  // A question about a function that is answered from its code.
  static Lookup of_question(CUfunction function, const ContextState* context) noexcept;

  bool is_known() const noexcept;
  void remember() const noexcept;

 private:
  Lookup(const void* owner, std::uint64_t key) noexcept : owner_(owner), key_(key) {}
  const void* owner_;
  std::uint64_t key_;
};

// The module or library is unloaded.
void forget_lookups_of(const void* owner) noexcept;
void forget_all_lookups() noexcept;

}  // namespace runtime
