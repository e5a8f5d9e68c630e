// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that does nothing but answer look-ups, with what no other driver here has: entries
// newer than the table, a newer ABI under an old name, entries that share one address, an entry
// that only cuGetProcAddress gives out. Every entry succeeds and counts its call. Any thread.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "runtime/driver.h"

#define FAKE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

using runtime::EntryId;
constexpr int kNewerVersion = 13030;

constinit std::atomic<long> g_calls[runtime::kEntryCount];
constinit std::atomic<long> g_shared_calls;
constinit std::atomic<long> g_newer_calls;

CUresult count(EntryId id) {
  g_calls[static_cast<std::size_t>(id)].fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult newer_init(unsigned int, void*) {
  g_newer_calls.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult hidden_attach() {
  return count(EntryId::cuCtxAttach);
}

}  // namespace

// The 20 entries that deal with a stream's capture share one address, as unimplemented entries of a
// driver may.
FAKE_EXPORT CUresult fake_shared_entry() {
  g_shared_calls.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

#define FAKE_ENTRY(symbol)                               \
  FAKE_EXPORT CUresult fake_##symbol() __asm__(#symbol); \
  CUresult fake_##symbol() {                             \
    return count(EntryId::symbol);                       \
  }
#define FAKE_SHARED(symbol)                              \
  FAKE_EXPORT CUresult fake_##symbol() __asm__(#symbol); \
  CUresult fake_##symbol() __attribute__((alias("fake_shared_entry")));
#define FAKE_Pass FAKE_ENTRY
#define FAKE_StreamOrdered FAKE_ENTRY
#define FAKE_GraphObject FAKE_ENTRY
#define FAKE_ObserveAll FAKE_ENTRY
#define FAKE_NullStreamSync FAKE_ENTRY
#define FAKE_MutateLaunchState FAKE_ENTRY
#define FAKE_Capture FAKE_SHARED
#define FAKE_LaunchDirect FAKE_ENTRY
#define FAKE_StreamLifecycle FAKE_ENTRY
#define FAKE_Launch FAKE_ENTRY
#define FAKE_EventObserve FAKE_ENTRY
#define FAKE_Lookup(symbol)
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) FAKE_##class(symbol)
#include "runtime/driver_entries.def"

// Arguments in every kind of register and on the stack; the result depends on each.
FAKE_EXPORT std::int64_t cuFutureEntry(int a, std::int64_t b, int c, std::int64_t d, int e,
                                       std::int64_t f, int g, std::int64_t h, double i, float j,
                                       double k, double l, double m, double n, double o, double p,
                                       double q, double r) {
  g_newer_calls.fetch_add(1, std::memory_order_relaxed);
  const double doubles = i + 2 * j + 3 * k + 4 * l + 5 * m + 6 * n + 7 * o + 8 * p + 9 * q + 10 * r;
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h +
         static_cast<std::int64_t>(1000 * doubles);
}
FAKE_EXPORT int cuFutureData;
int cuFutureData = 42;

// What the test asks: calls of an exported symbol of the table, and of all newer entries.
FAKE_EXPORT long fake_calls(const char* symbol) {
  for (std::size_t index = 0; index < runtime::kEntryCount; ++index) {
    if (std::strcmp(runtime::kEntryTable[index].symbol, symbol) == 0) {
      return g_calls[index].load(std::memory_order_relaxed);
    }
  }
  return std::strcmp(symbol, "shared") == 0 ? g_shared_calls.load(std::memory_order_relaxed)
                                            : g_newer_calls.load(std::memory_order_relaxed);
}

namespace {

// The row that a driver means by a name, a version and flags.
void* look_up(const char* api, int version, cuuint64_t flags);

}  // namespace

FAKE_EXPORT CUresult fake_get_proc_address(const char* symbol, void** function, int version,
                                           cuuint64_t flags) __asm__("cuGetProcAddress");
CUresult fake_get_proc_address(const char* symbol, void** function, int version, cuuint64_t flags) {
  void* found = look_up(symbol, version, flags);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = found;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult
fake_get_proc_address_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult* status) __asm__("cuGetProcAddress_v2");
CUresult fake_get_proc_address_v2(const char* symbol, void** function, int version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  *function = look_up(symbol, version, flags);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult fake_get_export_table(const void**, const CUuuid*) __asm__("cuGetExportTable");
CUresult fake_get_export_table(const void** table, const CUuuid*) {
  *table = &g_calls;
  return CUDA_SUCCESS;
}

namespace {

void* row_address(EntryId id) {
  switch (id) {
    case EntryId::cuGetProcAddress:
      return reinterpret_cast<void*>(&fake_get_proc_address);
    case EntryId::cuGetProcAddress_v2:
      return reinterpret_cast<void*>(&fake_get_proc_address_v2);
    case EntryId::cuGetExportTable:
      return reinterpret_cast<void*>(&fake_get_export_table);
    case EntryId::cuCtxAttach:
      return reinterpret_cast<void*>(&hidden_attach);
    default:
      break;
  }
  static void* const kAddresses[] = {
#define FAKE_ADDRESS_Lookup(symbol) nullptr
#define FAKE_ADDRESS(symbol) reinterpret_cast<void*>(&fake_##symbol)
#define FAKE_ADDRESS_Pass FAKE_ADDRESS
#define FAKE_ADDRESS_StreamOrdered FAKE_ADDRESS
#define FAKE_ADDRESS_GraphObject FAKE_ADDRESS
#define FAKE_ADDRESS_ObserveAll FAKE_ADDRESS
#define FAKE_ADDRESS_NullStreamSync FAKE_ADDRESS
#define FAKE_ADDRESS_MutateLaunchState FAKE_ADDRESS
#define FAKE_ADDRESS_Capture FAKE_ADDRESS
#define FAKE_ADDRESS_LaunchDirect FAKE_ADDRESS
#define FAKE_ADDRESS_StreamLifecycle FAKE_ADDRESS
#define FAKE_ADDRESS_Launch FAKE_ADDRESS
#define FAKE_ADDRESS_EventObserve FAKE_ADDRESS
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  FAKE_ADDRESS_##class(symbol),
#include "runtime/driver_entries.def"
  };
  return kAddresses[static_cast<std::size_t>(id)];
}

void* newer_address(const char* api, int version) {
  if (version < kNewerVersion) return nullptr;
  if (std::strcmp(api, "cuInit") == 0) return reinterpret_cast<void*>(&newer_init);
  if (std::strcmp(api, "cuFutureEntry") == 0) return reinterpret_cast<void*>(&cuFutureEntry);
  if (std::strcmp(api, "cuFutureHidden") == 0) return reinterpret_cast<void*>(&newer_init);
  return nullptr;
}

void* look_up(const char* api, int version, cuuint64_t flags) {
  if (void* newer = newer_address(api, version)) return newer;
  const runtime::EntryRow* best = nullptr;
  for (const runtime::EntryRow& row : runtime::kEntryTable) {
    if (row.since > version || std::strcmp(row.api, api) != 0) continue;
    if (row.per_thread_default() && flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
      continue;
    }
    const bool is_better = best == nullptr || row.since > best->since ||
                           (row.since == best->since && row.per_thread_default());
    if (is_better) best = &row;
  }
  return best == nullptr ? nullptr : row_address(static_cast<EntryId>(best - runtime::kEntryTable));
}

}  // namespace
