// SPDX-License-Identifier: Apache-2.0
// Two tables: from handles to names, whose rows go stale together when code is unloaded, and the
// names themselves, each once. Readers compare the row's epoch; writers hold the mutex.
#include "profiler/trace/kernel_names.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "runtime/mutex.h"
#include "runtime/reentry.h"

namespace profiler {
namespace {

constexpr const char* kUnnamed = "kernel";
// More functions than frameworks load, in some 1.5 MiB that exist only while launches are timed.
// What finds no room is asked about at each launch, or is nameless.
constexpr std::size_t kHandles = 8192;
constexpr std::size_t kNames = 8192;
constexpr std::size_t kNameBytes = 1 << 20;  // of all names
constexpr std::size_t kProbes = 32;

struct Row {
  std::atomic<CUfunction> handle;    // set once
  std::atomic<const char*> name;     // stored ahead of the epoch that makes it valid
  std::atomic<std::uint32_t> epoch;  // of `name`; 0: none
};

struct Tables {
  Row rows[kHandles];
  const char* names[kNames];
  std::size_t name_count;
  char bytes[kNameBytes];
  std::size_t byte_count;
};

constinit runtime::Mutex g_mutex;  // guards all but the reading of rows
constinit std::atomic<Tables*> g_tables{nullptr};
constinit std::atomic<std::uint32_t> g_epoch{1};

std::size_t hash_of(std::uintptr_t value) noexcept {
  return (value * 0x9E3779B97F4A7C15u) >> 32;
}

std::size_t hash_of(const char* text) noexcept {
  std::size_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (; *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001B3u;
  }
  return hash;
}

const char* ask_driver(CUfunction function) noexcept {
  const runtime::ReentryGuard guard;
  const char* name = nullptr;
  if (runtime::real.cuFuncGetName(&name, function) == CUDA_SUCCESS && name != nullptr) return name;
  const auto kernel = reinterpret_cast<CUkernel>(function);
  if (runtime::real.cuKernelGetName(&name, kernel) == CUDA_SUCCESS && name != nullptr) return name;
  return kUnnamed;
}

// With the mutex held. kUnnamed when there is no room.
const char* keep_name(Tables& tables, const char* name) noexcept {
  std::size_t slot = hash_of(name) % kNames;
  while (tables.names[slot] != nullptr) {
    if (std::strcmp(tables.names[slot], name) == 0) return tables.names[slot];
    slot = (slot + 1) % kNames;
  }
  const std::size_t bytes = std::strlen(name) + 1;
  if (bytes > kNameBytes - tables.byte_count || tables.name_count + 1 == kNames) return kUnnamed;
  char* kept = tables.bytes + tables.byte_count;
  std::memcpy(kept, name, bytes);
  tables.byte_count += bytes;
  ++tables.name_count;
  tables.names[slot] = kept;
  return kept;
}

// With the mutex held: the row of the handle, null when there is no room for it.
Row* make_row(Tables& tables, CUfunction function) noexcept {
  const std::size_t hash = hash_of(reinterpret_cast<std::uintptr_t>(function));
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Row& row = tables.rows[(hash + probe) % kHandles];
    const CUfunction present = row.handle.load(std::memory_order_relaxed);
    if (present != function && present != nullptr) continue;
    row.handle.store(function, std::memory_order_release);
    return &row;
  }
  return nullptr;
}

const char* find_name(const Tables& tables, CUfunction function) noexcept {
  const std::size_t hash = hash_of(reinterpret_cast<std::uintptr_t>(function));
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const Row& row = tables.rows[(hash + probe) % kHandles];
    const CUfunction present = row.handle.load(std::memory_order_acquire);
    if (present == nullptr) return nullptr;
    if (present != function) continue;
    // Acquire pairs with the release in learn_name().
    const std::uint32_t epoch = row.epoch.load(std::memory_order_acquire);
    if (epoch != g_epoch.load(std::memory_order_relaxed)) return nullptr;
    return row.name.load(std::memory_order_relaxed);
  }
  return nullptr;
}

[[gnu::noinline]] const char* learn_name(CUfunction function) noexcept {
  const std::uint32_t epoch = g_epoch.load(std::memory_order_relaxed);
  const char* told = ask_driver(function);
  const runtime::MutexGuard guard(g_mutex);
  Tables* tables = g_tables.load(std::memory_order_relaxed);
  if (tables == nullptr) {
    tables = new (std::nothrow) Tables();
    if (tables == nullptr) return kUnnamed;
    g_tables.store(tables, std::memory_order_release);
  }
  const char* name = keep_name(*tables, told);
  if (Row* row = make_row(*tables, function)) {
    row->name.store(name, std::memory_order_relaxed);
    row->epoch.store(epoch, std::memory_order_release);
  }
  return name;
}

}  // namespace

const char* kernel_name(CUfunction function) noexcept {
  const Tables* tables = g_tables.load(std::memory_order_acquire);
  const char* name = tables != nullptr ? find_name(*tables, function) : nullptr;
  return name != nullptr ? name : learn_name(function);
}

void forget_kernel_names() noexcept {
  g_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace profiler
