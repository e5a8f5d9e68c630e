// SPDX-License-Identifier: Apache-2.0
// The same place in two reports, though lines moved between them: entry, file, function and library
// without the line. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tools/cli/report.h"

namespace cli {

struct PlaceGroup {
  std::string entry;
  std::set<std::string> places;  // with lines, as reported
  std::uint64_t calls = 0;
  std::uint64_t total_ns = 0;

  // The one place, or what its places have in common.
  std::string name() const;
};

// By entry and place without its line. Empty without sites.
using PlaceGroups = std::map<std::string, PlaceGroup>;
PlaceGroups place_groups(const Report& report);

}  // namespace cli
