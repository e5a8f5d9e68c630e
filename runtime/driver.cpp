// SPDX-License-Identifier: Apache-2.0
// Opens libcuda and fills the slots. Any thread, re-entrant: no lock is held around dlopen, because
// the driver's constructors may come back through our exports; two threads that race open it twice
// and keep one handle.
#include "runtime/driver.h"

#include <dlfcn.h>

#include <cerrno>

#include "runtime/real_dlsym.h"
#include "runtime/reentry.h"

// Linker-defined bounds of the object this file was linked into.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace runtime {

constinit thread_local int t_reentry_depth [[gnu::tls_model("initial-exec")]] = 0;

constinit const Driver real;

namespace {

constexpr const char* kDriverName = "libcuda.so.1";

// Never closed. Relaxed: dlopen itself orders what the handle leads to.
constinit std::atomic<void*> g_driver{nullptr};
constinit std::atomic<DlsymFunction> g_dlsym{nullptr};

// dlopen matches an already loaded library by SONAME, so this is the application's own libcuda
// whatever path it used.
void* open_driver(int extra_flags) noexcept {
  void* handle = g_driver.load(std::memory_order_relaxed);
  if (handle != nullptr) return handle;
  const int kept_errno = errno;
  {
    ReentryGuard guard;
    handle = dlopen(kDriverName, RTLD_LAZY | RTLD_NODELETE | extra_flags);
    // A failed attempt of ours must not be what the application's next dlerror() reads.
    if (handle == nullptr) dlerror();
  }
  errno = kept_errno;
  if (handle != nullptr) g_driver.store(handle, std::memory_order_relaxed);
  return handle;
}

DlsymFunction real_dlsym() noexcept {
  DlsymFunction function = g_dlsym.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = find_real_dlsym();
    g_dlsym.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace

bool is_own_address(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         value < reinterpret_cast<std::uintptr_t>(_end);
}

bool driver_is_loaded() noexcept {
  return open_driver(RTLD_NOLOAD) != nullptr;
}

void* driver_symbol(EntryId id) noexcept {
  void* handle = open_driver(0);
  const DlsymFunction dlsym_function = real_dlsym();
  if (handle == nullptr || dlsym_function == nullptr) return nullptr;
  ReentryGuard guard;
  void* address = dlsym_function(handle, row(id).symbol);
  if (address == nullptr) dlerror();
  return is_own_address(address) ? nullptr : address;
}

void set_driver_symbol(EntryId id, void* address) noexcept {
  if (is_own_address(address)) return;  // the wrapper would call itself
  switch (id) {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure)         \
  case EntryId::symbol:                                                                 \
    real.symbol.set(reinterpret_cast<EntryTraits<EntryId::symbol>::Function>(address)); \
    return;
#include "runtime/driver_entries.def"
  }
}

}  // namespace runtime
