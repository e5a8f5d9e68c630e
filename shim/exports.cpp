// SPDX-License-Identifier: Apache-2.0
// One ELF symbol per row of the table: a jump to the row's thunk. A jump and not an ifunc, because
// a library that is relocated before this one and binds an ifunc of it makes ld.so print a warning;
// and not an alias, because that needs the thunk's mangled name.
#include "shim/exports.h"

#include "shim/thunk.h"

#if defined(__x86_64__)
#define JUMP_TO "jmp %P0"
#elif defined(__aarch64__)
#define JUMP_TO "b %c0"
#else
#error "name the direct jump of this architecture"
#endif

#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure)                  \
  extern "C" [[gnu::naked, gnu::visibility("default")]] void export_##symbol() __asm__(#symbol); \
  extern "C" void export_##symbol() {                                                            \
    __asm__(JUMP_TO : : "i"(&shim::Thunk<runtime::EntryId::symbol>::call));                      \
  }
#include "runtime/driver_entries.def"

namespace shim {

namespace {

using Wrapper = void (*)();
constexpr Wrapper kWrappers[runtime::kEntryCount] = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) &export_##symbol,
#include "runtime/driver_entries.def"
};

}  // namespace

void* wrapper_of(runtime::EntryId id) noexcept {
  return reinterpret_cast<void*>(kWrappers[static_cast<std::size_t>(id)]);
}

}  // namespace shim
