// SPDX-License-Identifier: Apache-2.0
// Finds or opens libcuda and fills the slots. Any thread, re-entrant. A driver that is in the
// process is read from memory (loaded_image.h), as the first call of an entry may come while
// dlopen() holds its lock. Where it must be opened no lock of ours is held: its constructors may
// come back through our exports.
#include "runtime/driver.h"

#include <dlfcn.h>

#include <cerrno>

#include "runtime/loaded_image.h"
#include "runtime/own_thread.h"
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

// Written by the thread that takes kFilling, before it releases kReady to those that acquire it.
// Never unloaded from then on.
enum class DriverState : int { kUnknown, kFilling, kReady };
LoadedImage g_driver;
constinit std::atomic<DriverState> g_driver_state{DriverState::kUnknown};

// An unload would leave the slots dangling.
void pin_driver() noexcept {
  const ReentryGuard guard;
  if (dlopen(kDriverName, RTLD_LAZY | RTLD_NODELETE | RTLD_NOLOAD) == nullptr) dlerror();
}

// The caller may hold up a dlopen() of another thread, which then holds the lock.
void pin_driver_on_own_thread() noexcept {
  pthread_t thread;
  const auto run = [](void*) -> void* {
    pin_driver();
    return nullptr;
  };
  if (start_own_thread(&thread, run) == 0) pthread_detach(thread);
}

// Threads that race each find it, and one keeps it.
bool find_driver(LoadedImage* image, void (*pin)() = pin_driver_on_own_thread) noexcept {
  if (g_driver_state.load(std::memory_order_acquire) == DriverState::kReady) {
    *image = g_driver;
    return true;
  }
  if (!find_image_called(kDriverName, image)) return false;
  DriverState state = DriverState::kUnknown;
  if (g_driver_state.compare_exchange_strong(state, DriverState::kFilling)) {
    if (!image->is_permanent) pin();
    g_driver = *image;
    g_driver_state.store(DriverState::kReady, std::memory_order_release);
  }
  return true;
}

bool open_driver(LoadedImage* image) noexcept {
  if (find_driver(image)) return true;
  const ReentryGuard guard;
  // A failed attempt of ours must not be what the application's next dlerror() reads.
  if (dlopen(kDriverName, RTLD_LAZY | RTLD_NODELETE) == nullptr) dlerror();
  return find_driver(image, [] {});
}

// Of a driver whose entries are in a library that it needs, dlsym() alone knows.
void* find_behind_driver(const char* name) noexcept {
  const DlsymFunction real_dlsym = find_real_dlsym();
  if (real_dlsym == nullptr) return nullptr;
  const ReentryGuard guard;
  void* handle = dlopen(kDriverName, RTLD_LAZY | RTLD_NODELETE | RTLD_NOLOAD);
  void* address = handle != nullptr ? real_dlsym(handle, name) : nullptr;
  if (address == nullptr) dlerror();
  return address;
}

}  // namespace

bool is_own_address(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         value < reinterpret_cast<std::uintptr_t>(_end);
}

bool driver_is_loaded() noexcept {
  LoadedImage image;
  return find_driver(&image);
}

void note_driver_in_lookup() noexcept {
  LoadedImage image;
  const int kept_errno = errno;
  (void)find_driver(&image, pin_driver);
  errno = kept_errno;
}

bool is_in_driver(const void* address) noexcept {
  LoadedImage image;
  return find_driver(&image) && image.has(address);
}

void* driver_symbol(EntryId id) noexcept {
  const int kept_errno = errno;
  LoadedImage image;
  void* address = nullptr;
  if (open_driver(&image)) {
    address = find_symbol(image, row(id).symbol);
    if (address == nullptr && find_symbol(image, "cuInit") == nullptr) {
      address = find_behind_driver(row(id).symbol);
    }
  }
  errno = kept_errno;
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
