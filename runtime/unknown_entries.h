// SPDX-License-Identifier: Apache-2.0
// Driver entries that the table does not know, as the application came across them: addresses,
// names, calls. Filled by the doors of shim/, read by the report. Slots are never taken back. Any
// thread, no lock, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace runtime {

// A driver one major version ahead of the table has about 50 entries more. A slot costs 96 bytes
// here and 16 bytes of code (shim/unknown_entry_<cpu>.S has the same number).
inline constexpr std::size_t kMaxUnknownEntries = 256;

// The slot of `address`, a new one under `name` if it has none; kMaxUnknownEntries when all are
// taken. `is_tame`: see unknown_code_runs().
std::size_t unknown_entry_slot(void* address, const char* name, bool is_tame) noexcept;
bool is_tame_entry(std::size_t slot) noexcept;

// Counts a call of the slot's entry and returns its address.
void* count_unknown_call(std::size_t slot) noexcept;

struct UnknownEntry {
  const char* name;
  std::uint64_t calls;
};
// In the order of the first look-up; false at the end.
bool unknown_entry_at(std::size_t slot, UnknownEntry* entry) noexcept;

}  // namespace runtime
