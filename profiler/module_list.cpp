// SPDX-License-Identifier: Apache-2.0
// The list is append-only; the loader's own counts of loads and unloads say when to look again.
#include "profiler/module_list.h"

#include <elf.h>
#include <link.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/driver.h"

namespace profiler {
namespace {

constexpr std::size_t kPathBytes = 256 * 1024;

// A reader of the list waits for another one this often; not for ever, as it may have interrupted
// it.
constexpr int kMostTries = 1000;

// Guarded by g_is_busy, but for what g_count publishes.
Module g_modules[kMaxModules];
constinit std::atomic<bool> g_unloaded[kMaxModules];
bool g_is_seen[kMaxModules];
char g_paths[kPathBytes];
std::size_t g_path_bytes = 0;
unsigned long long g_adds = 0;
unsigned long long g_subs = 0;

// Release of the count pairs with the acquire in module_at().
constinit std::atomic<std::size_t> g_count{0};
constinit std::atomic_flag g_is_busy = ATOMIC_FLAG_INIT;

const char* keep_path(const char* path) noexcept {
  const std::size_t bytes = std::strlen(path) + 1;
  if (bytes > kPathBytes - g_path_bytes) return "";
  char* kept = g_paths + g_path_bytes;
  std::memcpy(kept, path, bytes);
  g_path_bytes += bytes;
  return kept;
}

void read_build_id(const dl_phdr_info& info, const ElfW(Phdr) & header, Module* module) noexcept {
  constexpr std::size_t kAlign = 4;
  const char* at = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
  std::size_t left = header.p_memsz;
  while (left >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const std::size_t name = (note.n_namesz + kAlign - 1) / kAlign * kAlign;
    const std::size_t content = (note.n_descsz + kAlign - 1) / kAlign * kAlign;
    const std::size_t whole = sizeof note + name + content;
    if (whole > left) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= kMaxBuildId && note.n_namesz == 4 &&
        std::memcmp(at + sizeof note, "GNU", 4) == 0) {
      std::memcpy(module->build_id, at + sizeof note + name, note.n_descsz);
      module->build_id_bytes = static_cast<std::uint8_t>(note.n_descsz);
      return;
    }
    at += whole;
    left -= whole;
  }
}

void read_segments(const dl_phdr_info& info, Module* module) noexcept {
  module->base = info.dlpi_addr;
  module->start = UINTPTR_MAX;
  module->end = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_NOTE && module->build_id_bytes == 0) {
      read_build_id(info, header, module);
    }
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (start < module->start) module->start = start;
    if (start + header.p_memsz > module->end) module->end = start + header.p_memsz;
  }
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
std::size_t note_module(const dl_phdr_info& info, bool is_first) noexcept {
  Module module{};
  read_segments(info, &module);
  const char* name = info.dlpi_name != nullptr ? info.dlpi_name : "";
  if (is_first && name[0] == '\0') name = executable();
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    const Module& known = g_modules[i];
    if (known.base == module.base && known.end == module.end &&
        std::strcmp(known.path, name) == 0 &&
        std::memcmp(known.build_id, module.build_id, kMaxBuildId) == 0) {
      return i;
    }
  }
  if (count == kMaxModules) return kMaxModules;
  module.path = keep_path(name);
  module.is_executable = is_first;
  module.is_ours = module.start <= reinterpret_cast<std::uintptr_t>(&note_module) &&
                   reinterpret_cast<std::uintptr_t>(&note_module) < module.end;
  module.is_cuda = is_cuda_library(name);
  g_modules[count] = module;
  g_count.store(count + 1, std::memory_order_release);
  return count;
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
  const std::size_t number = note_module(*info, visit->is_first);
  visit->is_first = false;
  if (number < kMaxModules) g_is_seen[number] = true;
  return 0;
}

void update() noexcept {
  Visit visit;
  std::memset(g_is_seen, 0, sizeof g_is_seen);
  dl_iterate_phdr(visit_module, &visit);
  if (!visit.is_changed) return;
  const std::size_t count = g_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    g_unloaded[i].store(!g_is_seen[i], std::memory_order_relaxed);
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

void find_modules(const std::uintptr_t* addresses, std::uint16_t* modules,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) modules[i] = kNoModule;
  if (take_turn()) {
    update();
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

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool is_cuda_library(const char* path) noexcept {
  constexpr std::string_view kPrefixes[] = {
      "libcuda.so",      "libcudart", "libcudadebugger", "libcublas",   "libcudnn",
      "libcufft",        "libcufile", "libcurand",       "libcusolver", "libcusparse",
      "libcutensor",     "libcupti",  "libnccl.so",      "libnvrtc",    "libnvJitLink",
      "libnvjpeg",       "libnpp",    "libnvToolsExt",   "libnvidia-",  "libnvptxcompiler",
      "libcaffe2_nvrtc", "libcudla",
  };
  const std::string_view name = base_name(path);
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace profiler
