// SPDX-License-Identifier: Apache-2.0
// The list is append-only. The loader's index says which object holds an address; what else is
// asked of the object is read through the kernel, as another thread may unload it meanwhile. Where
// there is no index, the loader's list is gone through, under its lock.
#include "profiler/module_list.h"

#include <elf.h>
#include <link.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "profiler/loaded_object.h"
#include "profiler/trace/own_memory.h"
#include "runtime/driver.h"

namespace profiler {
namespace {

constexpr std::size_t kPathBytes = 256 * 1024;

// A reader of the list waits for another one this often; not for ever, as it may have interrupted
// it.
constexpr int kMostTries = 1000;

using CopyMemory = std::size_t (*)(void* to, std::uintptr_t from, std::size_t bytes) noexcept;

std::size_t copy_directly(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return bytes;
}

bool kernel_copies() noexcept {
  const char from = 1;
  char to = 0;
  return copy_own_memory(&to, reinterpret_cast<std::uintptr_t>(&from), 1) == 1;
}

// An object that is looked at.
struct Seen {
  CopyMemory copy;
  Module module;
  char path[4096];
};

// Guarded by g_is_busy, but for what g_count publishes.
Module g_modules[kMaxModules];
constinit std::atomic<bool> g_unloaded[kMaxModules];
bool g_is_seen[kMaxModules];
char g_paths[kPathBytes];
std::size_t g_path_bytes = 0;
constinit Seen g_seen{};
unsigned long long g_adds = 0;
unsigned long long g_subs = 0;

// Release of the count pairs with the acquire in module_at().
constinit std::atomic<std::size_t> g_count{0};
constinit std::atomic_flag g_is_busy = ATOMIC_FLAG_INIT;

// Null: no room.
const char* keep_path(const char* path) noexcept {
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strcmp(g_modules[i].path, path) == 0) return g_modules[i].path;
  }
  const std::size_t bytes = std::strlen(path) + 1;
  if (bytes > kPathBytes - g_path_bytes) return nullptr;
  char* kept = g_paths + g_path_bytes;
  std::memcpy(kept, path, bytes);
  g_path_bytes += bytes;
  return kept;
}

// False: memory that cannot be read.
bool read_build_id(std::uintptr_t at, std::size_t left, Module* module) noexcept {
  constexpr std::size_t kAlign = 4;
  while (left >= sizeof(ElfW(Nhdr))) {
    struct {
      ElfW(Nhdr) head;
      char name[4];
      std::uint8_t id[kMaxBuildId];
    } note{};
    if (g_seen.copy(&note, at, left < sizeof note ? left : sizeof note) == 0) return false;
    const std::size_t name = (note.head.n_namesz + kAlign - 1) / kAlign * kAlign;
    const std::size_t content = (note.head.n_descsz + kAlign - 1) / kAlign * kAlign;
    const std::size_t whole = sizeof note.head + name + content;
    if (whole > left) return true;
    if (note.head.n_type == NT_GNU_BUILD_ID && note.head.n_descsz <= kMaxBuildId &&
        note.head.n_namesz == 4 && std::memcmp(note.name, "GNU", 4) == 0) {
      std::memcpy(module->build_id, note.id, note.head.n_descsz);
      module->build_id_bytes = static_cast<std::uint8_t>(note.head.n_descsz);
      return true;
    }
    at += whole;
    left -= whole;
  }
  return true;
}

void read_segment(std::uintptr_t base, const ElfW(Phdr) & header, Module* module) noexcept {
  if (header.p_type == PT_NOTE && module->build_id_bytes == 0) {
    read_build_id(base + header.p_vaddr, header.p_memsz, module);
  }
  if (header.p_type != PT_LOAD) return;
  const std::uintptr_t start = base + header.p_vaddr;
  if (start < module->start) module->start = start;
  if (start + header.p_memsz > module->end) module->end = start + header.p_memsz;
}

// As the program was started: its file may be gone, or another one, by now. Under g_is_busy.
const char* executable() noexcept {
  static char path[4096];
  if (path[0] != '\0') return path;
  const ssize_t length = readlink("/proc/thread-self/exe", path, sizeof path - 1);
  if (length > 0) return path;
  // Not of the process but of this thread: that of the process is gone with its first thread.
  // No /proc: what it was started by, which may be relative to a folder that it has left.
  const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  std::snprintf(path, sizeof path, "%s", started != nullptr ? started : "");
  return path;
}

// The number of the module, a new one if it was not here before; kMaxModules when there is no room.
std::size_t note_module(Seen* seen) noexcept {
  Module& module = seen->module;
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    const Module& known = g_modules[i];
    if (known.base == module.base && known.end == module.end &&
        std::strcmp(known.path, seen->path) == 0 &&
        std::memcmp(known.build_id, module.build_id, kMaxBuildId) == 0) {
      return i;
    }
  }
  if (count == kMaxModules) return kMaxModules;
  module.path = keep_path(seen->path);
  if (module.path == nullptr) return kMaxModules;
  module.is_ours = module.start <= reinterpret_cast<std::uintptr_t>(&note_module) &&
                   reinterpret_cast<std::uintptr_t>(&note_module) < module.end;
  module.is_cuda = is_cuda_library(module.path);
  g_modules[count] = module;
  g_count.store(count + 1, std::memory_order_release);
  return count;
}

bool is_executable(const LoadedObject& object) noexcept {
  const std::uintptr_t entry = getauxval(AT_ENTRY);
  return object.start <= entry && entry < object.end;
}

// A string of the loader's, up to `capacity`; false: it is gone.
bool copy_string(std::uintptr_t from, char* to, std::size_t capacity) noexcept {
  std::size_t copied = 0;
  while (copied < capacity) {
    // Not past a page: what lies behind the string may be unmapped.
    const std::size_t page = 4096 - (from + copied) % 4096;
    const std::size_t wanted = page < capacity - copied ? page : capacity - copied;
    const std::size_t got = g_seen.copy(to + copied, from + copied, wanted);
    if (got == 0) return false;
    if (std::memchr(to + copied, 0, got) != nullptr) return true;
    copied += got;
  }
  return false;
}

bool read_headers(const LoadedObject& object, Module* module) noexcept {
  ElfW(Ehdr) file;
  if (g_seen.copy(&file, object.start, sizeof file) != sizeof file) return false;
  // An object whose first segment is not the start of its file has no build-id then.
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0) return true;
  if (file.e_phentsize != sizeof(ElfW(Phdr))) return true;
  for (std::size_t i = 0; i < file.e_phnum; ++i) {
    ElfW(Phdr) header;
    const std::uintptr_t at = object.start + file.e_phoff + i * sizeof header;
    if (g_seen.copy(&header, at, sizeof header) != sizeof header) return false;
    read_segment(module->base, header, module);
  }
  return true;
}

// False: it is being unloaded.
bool read_object(const LoadedObject& object, Seen* seen) noexcept {
  link_map map;
  const auto at = reinterpret_cast<std::uintptr_t>(object.map);
  if (g_seen.copy(&map, at, sizeof map) != sizeof map) return false;
  Module& module = seen->module;
  module = {};
  module.base = map.l_addr;
  module.start = object.start;
  module.end = object.end;
  if (!read_headers(object, &module)) return false;
  module.is_executable = is_executable(object);
  seen->path[0] = '\0';
  if (module.is_executable) {
    std::snprintf(seen->path, sizeof seen->path, "%s", executable());
  } else if (map.l_name != nullptr) {
    const auto name = reinterpret_cast<std::uintptr_t>(map.l_name);
    if (!copy_string(name, seen->path, sizeof seen->path)) return false;
  }
  LoadedObject now;
  return find_loaded_object(object.start, &now) && now.map == object.map &&
         now.start == object.start && now.end == object.end;
}

struct Visit {
  bool is_first = true;
  bool is_changed = false;
};

// Under the loader's lock of its list: nothing here may wait or allocate.
int visit_module(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto* visit = static_cast<Visit*>(data);
  if (visit->is_first) {
    if (info->dlpi_adds == g_adds && info->dlpi_subs == g_subs) return 1;
    g_adds = info->dlpi_adds;
    g_subs = info->dlpi_subs;
    visit->is_changed = true;
  }
  Module& module = g_seen.module;
  module = {};
  module.base = info->dlpi_addr;
  module.start = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    read_segment(info->dlpi_addr, info->dlpi_phdr[i], &module);
  }
  module.is_executable = visit->is_first;
  const char* name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  strncpy(g_seen.path, name, sizeof g_seen.path - 1);
  if (visit->is_first && name[0] == '\0') {
    std::snprintf(g_seen.path, sizeof g_seen.path, "%s", executable());
  }
  const std::size_t number = note_module(&g_seen);
  visit->is_first = false;
  if (number < kMaxModules) g_is_seen[number] = true;
  return 0;
}

void update_by_list() noexcept {
  Visit visit;
  std::memset(g_is_seen, 0, sizeof g_is_seen);
  dl_iterate_phdr(visit_module, &visit);
  if (!visit.is_changed) return;
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    g_unloaded[i].store(!g_is_seen[i], std::memory_order_relaxed);
  }
}

// Whether the object at the module's place is the module, as far as can be told without reading it.
bool is_there(const Module& module) noexcept {
  LoadedObject object;
  return find_loaded_object(module.start, &object) && object.start <= module.start &&
         module.end <= object.end;
}

void update_by_index(const std::uintptr_t* addresses, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    LoadedObject object;
    if (!find_loaded_object(addresses[i] - 1, &object)) continue;
    if (i != 0 && addresses[i - 1] - 1 >= object.start && addresses[i - 1] - 1 < object.end) {
      continue;  // the same as before
    }
    if (!read_object(object, &g_seen)) continue;
    const std::size_t number = note_module(&g_seen);
    const std::size_t known = g_count.load(std::memory_order_relaxed);
    // What lay there before is gone.
    for (std::size_t other = 0; other < known; ++other) {
      const Module& module = g_modules[other];
      if (module.start < object.end && object.start < module.end) {
        g_unloaded[other].store(other != number, std::memory_order_relaxed);
      }
    }
  }
  const std::size_t known = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < known; ++i) {
    if (!is_there(g_modules[i])) g_unloaded[i].store(true, std::memory_order_relaxed);
  }
}

bool take_turn() noexcept {
  for (int tries = 0; g_is_busy.test_and_set(std::memory_order_acquire); ++tries) {
    if (tries == kMostTries) return false;
    sched_yield();
  }
  return true;
}

}  // namespace

const Module* module_at(std::size_t number) noexcept {
  return number < g_count.load(std::memory_order_acquire) ? &g_modules[number] : nullptr;
}

bool is_unloaded(std::size_t number) noexcept {
  return number < kMaxModules && g_unloaded[number].load(std::memory_order_relaxed);
}

void find_modules(const std::uintptr_t* addresses, std::uint16_t* modules, std::size_t count,
                  WhoseStack whose) noexcept {
  for (std::size_t i = 0; i < count; ++i) modules[i] = kNoModule;
  if (take_turn()) {
    g_seen.copy =
        whose == WhoseStack::kOther && kernel_copies() ? &copy_own_memory : &copy_directly;
    has_loaded_objects() ? update_by_index(addresses, count) : update_by_list();
    g_is_busy.clear(std::memory_order_release);
  }
  // What is published stays as it is.
  const std::size_t known = g_count.load(std::memory_order_acquire);
  for (std::size_t number = 0; number < known; ++number) {
    if (is_unloaded(number)) continue;
    const Module& module = g_modules[number];
    for (std::size_t i = 0; i < count; ++i) {
      if (addresses[i] - 1 >= module.start && addresses[i] - 1 < module.end) {
        modules[i] = static_cast<std::uint16_t>(number);
      }
    }
  }
}

}  // namespace profiler
