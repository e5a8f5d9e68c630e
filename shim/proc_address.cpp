// SPDX-License-Identifier: Apache-2.0
// The map from driver addresses to rows, and the hooks of cuGetProcAddress. The driver always
// answers first: what it does not know stays unknown, and its statuses are its own.
#include "shim/proc_address.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/reentry.h"
#include "shim/door_hooks.h"
#include "shim/exports.h"
#include "shim/forward.h"
#include "shim/unknown_entry.h"

namespace shim {

namespace {

// The toolkit whose stub the table lists. For a newer version the driver may hand out an ABI that
// has no row.
constexpr int kTableVersion = 13000;

struct KnownAddress {
  const void* address;
  EntryId id;
};

struct AddressTable {
  std::size_t size = 0;
  KnownAddress known[runtime::kEntryCount];  // sorted by address
};

constinit std::atomic<const AddressTable*> g_addresses{nullptr};

AddressTable* build_table() noexcept {
  auto* table = new (std::nothrow) AddressTable;
  if (table == nullptr) return nullptr;
  for (std::size_t index = 0; index < runtime::kEntryCount; ++index) {
    const auto id = static_cast<EntryId>(index);
    const void* address = runtime::driver_symbol(id);
    if (address != nullptr) table->known[table->size++] = {address, id};
  }
  std::sort(table->known, table->known + table->size,
            [](const KnownAddress& left, const KnownAddress& right) {
              return std::less<>()(left.address, right.address);
            });
  return table;
}

// Null while no driver is loaded, and when memory ran out.
const AddressTable* addresses() noexcept {
  const AddressTable* table = g_addresses.load(std::memory_order_acquire);
  if (table != nullptr) return table;
  if (!runtime::driver_is_loaded()) return nullptr;
  const ErrnoKeeper keeper;
  const AddressTable* built = build_table();
  if (built == nullptr) return nullptr;
  // Two threads may build; the first to publish wins. Release pairs with the acquire above.
  if (g_addresses.compare_exchange_strong(table, built, std::memory_order_acq_rel)) return built;
  delete built;
  return table;
}

constexpr EntryId kNoEntry = static_cast<EntryId>(runtime::kEntryCount);

struct Matches {
  const KnownAddress* begin;
  const KnownAddress* end;
  bool has(EntryId id) const noexcept {
    return std::any_of(begin, end, [id](const KnownAddress& known) { return known.id == id; });
  }
};

Matches rows_at(const AddressTable& table, const void* address) noexcept {
  const KnownAddress* end = table.known + table.size;
  const KnownAddress* first = std::lower_bound(table.known, end, address,
                                               [](const KnownAddress& known, const void* wanted) {
                                                 return std::less<>()(known.address, wanted);
                                               });
  const KnownAddress* last = first;
  while (last != end && last->address == address) ++last;
  return {first, last};
}

EntryId row_with_symbol(const char* symbol) noexcept {
  for (std::size_t index = 0; index < runtime::kEntryCount; ++index) {
    if (strcmp(runtime::kEntryTable[index].symbol, symbol) == 0) return static_cast<EntryId>(index);
  }
  return kNoEntry;
}

// The row that cuGetProcAddress means: the newest ABI that is not newer than `version`, the
// per-thread twin if asked for and there is one.
EntryId row_asked_for(const char* api, int version, cuuint64_t flags) noexcept {
  const bool wants_twin = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  EntryId best = kNoEntry;
  for (std::size_t index = 0; index < runtime::kEntryCount; ++index) {
    const runtime::EntryRow& candidate = runtime::kEntryTable[index];
    const bool is_twin = candidate.per_thread_default();
    if (candidate.since > version || (is_twin && !wants_twin)) continue;
    if (strcmp(candidate.api, api) != 0) continue;
    const auto id = static_cast<EntryId>(index);
    if (best == kNoEntry) {
      best = id;
    } else if (is_twin != row(best).per_thread_default()) {
      if (is_twin) best = id;
    } else if (candidate.since > row(best).since) {
      best = id;
    }
  }
  return best;
}

Found wrapped(EntryId id) noexcept {
  return {wrapper_of(id), Answer::kWrapper};
}

Found wrap_unknown(void* address, const char* name) noexcept {
  if (is_mutant(Mutant::kUnknownEntrySlips)) return {address, Answer::kDriver};
  void* thunk = unknown_entry_thunk(address, name);
  return thunk != nullptr ? Found{thunk, Answer::kGeneric} : Found{address, Answer::kDriver};
}

// `named` is the row the look-up names, or kNoEntry.
EntryId choose(const Matches& matches, EntryId named) noexcept {
  if (named != kNoEntry && matches.has(named)) return named;
  // Entries that share code (stubs) do not say which one was meant.
  return matches.end - matches.begin == 1 ? matches.begin->id : kNoEntry;
}

bool is_function(const void* address) noexcept {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  auto* out = const_cast<void**>(reinterpret_cast<const void**>(&symbol));
  if (dladdr1(address, &info, out, RTLD_DL_SYMENT) == 0 || symbol == nullptr) return true;
  return ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT;
}

Found finish_query(CUresult result, void** function, const char* api, int version,
                   cuuint64_t flags) noexcept {
  if (result != CUDA_SUCCESS || function == nullptr || *function == nullptr) {
    return {nullptr, Answer::kMissing};
  }
  const Found found = wrap_query(*function, api, version, flags);
  *function = found.address;
  return found;
}

}  // namespace

Found wrap_symbol(void* address, const char* name) noexcept {
  const Found untouched{address, address != nullptr ? Answer::kDriver : Answer::kMissing};
  const AddressTable* table = address != nullptr ? addresses() : nullptr;
  if (table == nullptr) return untouched;
  if (is_mutant(Mutant::kDlsymSlips) && strcmp(name, "cuStreamSynchronize") == 0) return untouched;
  const EntryId named = row_with_symbol(name);
  const EntryId id = choose(rows_at(*table, address), named);
  if (id != kNoEntry) return wrapped(id);
  if (!runtime::is_in_driver(address) || !is_function(address)) return untouched;
  return wrap_unknown(address, name);
}

Found wrap_query(void* address, const char* api, int version, cuuint64_t flags) noexcept {
  // A driver that names its entries through its own symbol table finds ours there: they come first.
  if (runtime::is_own_address(address)) return {address, Answer::kWrapper};
  if (is_mutant(Mutant::kProcAddressSlips) && strcmp(api, "cuStreamSynchronize") == 0) {
    return {address, Answer::kDriver};
  }
  const AddressTable* table = addresses();
  const EntryId named = row_asked_for(api, version, flags);
  if (table != nullptr) {
    const EntryId id = choose(rows_at(*table, address), named);
    if (id != kNoEntry) return wrapped(id);
  }
  if (named != kNoEntry && version <= kTableVersion) {
    // An address that dlsym does not give: the name is all there is, and up to kTableVersion it is
    // enough.
    runtime::set_driver_symbol(named, address);
    return wrapped(named);
  }
  return wrap_unknown(address, api);
}

CUresult CUDAAPI DoorHooks::cuGetProcAddress(const char* symbol, void** function, int version,
                                             cuuint64_t flags) noexcept {
  const CUresult result = runtime::real.cuGetProcAddress(symbol, function, version, flags);
  if (symbol == nullptr) return result;
  const Found found = finish_query(result, function, symbol, version, flags);
  log_lookup("cuGetProcAddress", symbol, version, flags, found.answer);
  return result;
}

CUresult CUDAAPI DoorHooks::cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                cuuint64_t flags,
                                                CUdriverProcAddressQueryResult* status) noexcept {
  const CUresult result =
      runtime::real.cuGetProcAddress_v2(symbol, function, version, flags, status);
  if (symbol == nullptr) return result;
  const Found found = finish_query(result, function, symbol, version, flags);
  log_lookup("cuGetProcAddress_v2", symbol, version, flags, found.answer);
  return result;
}

}  // namespace shim
