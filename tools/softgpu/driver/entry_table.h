// SPDX-License-Identifier: Apache-2.0
// Names for the rows of runtime/driver_entries.def: one id per exported symbol. Constants only; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace softgpu {

// One enumerator per exported symbol, in table order.
enum class EntryId : std::uint16_t {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) symbol,
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
};

inline constexpr std::size_t kEntryCount = 0
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) +1
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
    ;

struct EntryRow {
  const char* symbol;
  const char* api;      // the name cuGetProcAddress knows
  int since;            // 4000 = CUDA 4.0
  const char* flavour;  // "", "_ptsz" or "_ptds"
  constexpr bool per_thread_default() const { return flavour[0] != '\0'; }
};
extern const EntryRow kEntryTable[kEntryCount];
inline const EntryRow& row(EntryId id) {
  return kEntryTable[static_cast<std::size_t>(id)];
}

// False: no such symbol.
bool find_entry_id(std::string_view symbol, EntryId* id);

}  // namespace softgpu
