// SPDX-License-Identifier: Apache-2.0
// Linked last, so that its case runs last: what the tables in docs/ say of the tests has happened.
#include <sstream>

#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace rows {

// Needs a whole run of the program, as meson starts it.
TEST_CASE("rows/table: the tests that the tables name have looked at their rows") {
  CHECK(all_rows().size() == runtime::kEntryCount);
  for (const Row& row : all_rows()) {
    std::istringstream tests(row.tests);
    for (std::string test; tests >> test;) {
      INFO(row.symbol() << ": " << test);
      CHECK(is_tested(row.id, test));
    }
  }
}

}  // namespace rows
