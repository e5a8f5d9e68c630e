// SPDX-License-Identifier: Apache-2.0
// The rows of all entries, from the table that the library uses too. Constants only.

#include "tools/softgpu/driver/entry_table.h"

namespace softgpu {

constexpr EntryRow kEntryTable[kEntryCount] = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  {#symbol, #api, since, #flavour},
#include "runtime/driver_entries.def"
#undef DRIVER_ENTRY
};

bool find_entry_id(std::string_view symbol, EntryId* id) {
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    if (symbol != kEntryTable[i].symbol) continue;
    *id = static_cast<EntryId>(i);
    return true;
  }
  return false;
}

}  // namespace softgpu
