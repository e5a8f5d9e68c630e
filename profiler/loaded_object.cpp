// SPDX-License-Identifier: Apache-2.0
#include "profiler/loaded_object.h"

#include <atomic>

#include "runtime/loaded_image.h"

namespace profiler {
namespace {

// `struct dl_find_object` of <dlfcn.h>, which headers before glibc 2.35 do not have.
struct FoundObject {
  unsigned long long flags;
  void *map_start, *map_end, *link_map, *eh_frame;
  unsigned long long reserved[7];
};
using FindObject = int (*)(void* address, FoundObject* result);

constinit std::atomic<FindObject> g_find_object{nullptr};

}  // namespace

bool start_loaded_objects() noexcept {
  if (has_loaded_objects()) return true;
  const auto found = reinterpret_cast<FindObject>(runtime::find_first_symbol("_dl_find_object"));
  g_find_object.store(found, std::memory_order_relaxed);
  return found != nullptr;
}

bool has_loaded_objects() noexcept {
  return g_find_object.load(std::memory_order_relaxed) != nullptr;
}

bool find_loaded_object(std::uintptr_t address, LoadedObject* object) noexcept {
  const FindObject find = g_find_object.load(std::memory_order_relaxed);
  FoundObject found;
  if (find == nullptr || find(reinterpret_cast<void*>(address), &found) != 0) return false;
  *object = {reinterpret_cast<std::uintptr_t>(found.map_start),
             reinterpret_cast<std::uintptr_t>(found.map_end), found.link_map,
             reinterpret_cast<std::uintptr_t>(found.eh_frame)};
  return true;
}

}  // namespace profiler
