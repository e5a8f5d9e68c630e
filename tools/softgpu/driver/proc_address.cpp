// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: the newest ABI of a name that is not newer than the version asked for, in the
// flavour asked for. The pointers come from the table of entries; no state.

#include <array>
#include <cstring>

#include "tools/softgpu/driver/absent.h"
#include "tools/softgpu/driver/entry.h"

namespace softgpu {
namespace {

using Function = void (*)();

}  // namespace
}  // namespace softgpu

// The entries as functions of unknown type. cuda.h declares most of them with theirs, so they get
// names of their own.
// clang-format off
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  extern "C" void softgpu_address_of_##symbol() __asm__(#symbol);
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
// clang-format on

namespace softgpu {
namespace {

constexpr std::array<Function, kEntryCount> kFunctions = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  softgpu_address_of_##symbol,
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
};

struct Found {
  Function function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

// The per-thread flavour of a name that has one counts for the whole name: of two rows of the same
// version it wins.
Found find_entry(const char* name, int version, bool per_thread) {
  Found found;
  int best_since = -1;
  bool is_best_per_thread = false;
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    const EntryRow& row = kEntryTable[i];
    if (std::strcmp(row.api, name) != 0) continue;
    if (row.per_thread_default() && !per_thread) continue;
    if (is_absent(static_cast<EntryId>(i))) continue;
    if (found.function == nullptr) found.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (row.since > version) continue;
    const bool is_better = row.per_thread_default() != is_best_per_thread ? row.per_thread_default()
                                                                          : row.since > best_since;
    if (!is_better) continue;
    found = {kFunctions[i], CU_GET_PROC_ADDRESS_SUCCESS};
    best_since = row.since;
    is_best_per_thread = row.per_thread_default();
  }
  return found;
}

CUresult look_up(const char* name, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status, bool not_found_is_error) {
  constexpr cuuint64_t kAll =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (name == nullptr || function == nullptr || (flags & ~kAll) != 0 || flags == kAll) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *function = nullptr;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Found found = find_entry(name, version, per_thread);
  *function = reinterpret_cast<void*>(found.function);
  if (status != nullptr) *status = found.status;
  return found.function == nullptr && not_found_is_error ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::call_unlocked;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int version,
                                  cuuint64_t flags) {
  return call_unlocked(EntryId::cuGetProcAddress, [&] {
    return softgpu::look_up(name, function, version, flags, nullptr, true);
  });
}

// With a place for the status a missing name is no error of the call.
CUresult CUDAAPI cuGetProcAddress_v2(const char* name, void** function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  return call_unlocked(EntryId::cuGetProcAddress_v2, [&] {
    return softgpu::look_up(name, function, version, flags, status, status == nullptr);
  });
}

// NVIDIA's private tables: not imitated.
CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid* id) {
  return call_unlocked(EntryId::cuGetExportTable, [&]() -> CUresult {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
  });
}

}  // extern "C"
