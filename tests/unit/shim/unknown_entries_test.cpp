// SPDX-License-Identifier: Apache-2.0
// The register of driver entries without a row: one slot an address, names and calls kept, an end
// to the pool.
#include "runtime/unknown_entries.h"

#include <string>

#include "tests/unit/catch.h"

// One case, because the register is one for the process.
TEST_CASE("Unknown entries are registered until the pool is used up", "[shim]") {
  static char code[runtime::kMaxUnknownEntries + 1];
  runtime::UnknownEntry entry;
  CHECK_FALSE(runtime::unknown_entry_at(0, &entry));
  CHECK(runtime::unknown_entry_slot(&code[0], "cuFirst", false) == 0);
  CHECK(runtime::unknown_entry_slot(&code[0], "cuFirstAgain", false) == 0);
  CHECK(runtime::count_unknown_call(0) == &code[0]);
  CHECK(runtime::count_unknown_call(0) == &code[0]);
  REQUIRE(runtime::unknown_entry_at(0, &entry));
  CHECK(std::string(entry.name) == "cuFirst");
  CHECK(entry.calls == 2);
  CHECK_FALSE(runtime::unknown_entry_at(1, &entry));
  const std::string long_name(200, 'x');
  for (std::size_t slot = 1; slot < runtime::kMaxUnknownEntries; ++slot) {
    CHECK(runtime::unknown_entry_slot(&code[slot], long_name.c_str(), false) == slot);
  }
  REQUIRE(runtime::unknown_entry_at(1, &entry));
  CHECK(std::string(entry.name) == long_name.substr(0, 79));
  void* one_too_many = &code[runtime::kMaxUnknownEntries];
  CHECK(runtime::unknown_entry_slot(one_too_many, "cuLast", false) == runtime::kMaxUnknownEntries);
  CHECK(runtime::unknown_entry_slot(&code[5], "known", false) == 5);
}
