// SPDX-License-Identifier: Apache-2.0
// Takes absent entries out of our own dynamic symbol table while the library is being loaded, which
// is all that dlsym looks at. The dynamic linker holds its lock then, so nobody is looking.

#include "tools/softgpu/driver/absent.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/parse.h"

namespace softgpu {
namespace {

// Of this library's own section; glibc has added the load address to these values already.
const void* dynamic_value(ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == tag) return reinterpret_cast<const void*>(entry->d_un.d_ptr);
  }
  return nullptr;
}

// The exported symbols lie together, from the first that the hash table knows to the last of the
// last chain.
struct SymbolRange {
  std::uint32_t first = 0, end = 0;
};
SymbolRange exported_symbols() {
  const auto* const table = static_cast<const std::uint32_t*>(dynamic_value(DT_GNU_HASH));
  if (table == nullptr) return {};
  const std::uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
  const std::uint32_t* const buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* const chains = buckets + bucket_count;
  std::uint32_t last = *std::max_element(buckets, buckets + bucket_count);
  if (last < first) return {};
  while ((chains[last - first] & 1) == 0) ++last;
  return {first, last + 1};
}

bool make_writable(void* begin, void* end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t low = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  return mprotect(reinterpret_cast<void*>(low), reinterpret_cast<std::uintptr_t>(end) - low,
                  PROT_READ | PROT_WRITE) == 0;
}

void hide_absent_entries() {
  const SymbolRange range = exported_symbols();
  auto* const symbols = static_cast<ElfW(Sym)*>(const_cast<void*>(dynamic_value(DT_SYMTAB)));
  const auto* const names = static_cast<const char*>(dynamic_value(DT_STRTAB));
  if (symbols == nullptr || names == nullptr || range.end == 0 ||
      !make_writable(symbols + range.first, symbols + range.end)) {
    say("cannot hide entries from dlsym");
    return;
  }
  for (std::uint32_t i = range.first; i < range.end; ++i) {
    EntryId entry{};
    if (!find_entry_id(names + symbols[i].st_name, &entry) || !is_absent(entry)) continue;
    symbols[i].st_value = 0;  // what the dynamic linker takes for an undefined symbol
    symbols[i].st_shndx = SHN_UNDEF;
  }
}

// Only then, so that all other processes read their options no earlier than at their first call.
__attribute__((constructor)) void hide_if_asked() {
  if (std::getenv("CAJETA_SOFTGPU_VERSION") == nullptr &&
      std::getenv("CAJETA_SOFTGPU_MISSING") == nullptr) {
    return;
  }
  if (has_absent_entries()) hide_absent_entries();
}

}  // namespace

bool parse_missing(std::string_view text, std::vector<EntryId>* entries) {
  if (text.ends_with(',')) return false;
  std::vector<EntryId> parsed;
  do {
    EntryId entry{};
    if (!find_entry_id(take_until(',', &text), &entry)) return false;
    parsed.push_back(entry);
  } while (!text.empty());
  entries->swap(parsed);
  return true;
}

bool is_absent(EntryId entry) {
  const Options& chosen = options();
  if (row(entry).since > chosen.driver_version) return true;
  return std::find(chosen.missing.begin(), chosen.missing.end(), entry) != chosen.missing.end();
}

bool has_absent_entries() {
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    if (is_absent(static_cast<EntryId>(i))) return true;
  }
  return false;
}

}  // namespace softgpu
