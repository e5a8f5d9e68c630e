// SPDX-License-Identifier: Apache-2.0
// Names of functions from the symbol table of an ELF file, many at once and without debug
// information: what is cheap enough while the program runs. It reads the file and not the mapped
// library, so no lock of the loader is needed. No malloc, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

struct NamedAddress {
  std::uintptr_t address;  // in the file
  std::uint64_t start;     // of the function
  std::uint32_t name_at;   // in the table of strings
  bool is_found;
  char name[256];  // demangled
};

// Finds the names of those `addresses` that functions of the file cover. Ascending; `is_found`
// false when handed in.
void find_in_symbol_table(const char* path, NamedAddress* addresses, std::size_t count) noexcept;

}  // namespace profiler
