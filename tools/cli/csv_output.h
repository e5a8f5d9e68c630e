// SPDX-License-Identifier: Apache-2.0
// Reports as comma-separated values (RFC 4180, but lines end in \n): nanoseconds and bytes, one
// rectangle, so that no reader has to know where a table ends. Pure.
#pragma once

#include <string>

#include "tools/cli/report.h"

namespace cli {

// Launches, entries and places; the first column names the file.
std::string csv_head();
std::string csv_rows(const Report& report);

// Every call site with its stack.
std::string sites_csv(const Report& report);

}  // namespace cli
