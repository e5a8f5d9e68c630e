// SPDX-License-Identifier: Apache-2.0
// Adds reports up: every count, time and histogram becomes what one process would have counted that
// made all the calls. The order of the reports changes only the order of lists. Pure.
#pragma once

#include <vector>

#include "tools/cli/report.h"

namespace cli {

// At least one. A Failure when a count passes 2^64.
Report merge(const std::vector<Report>& reports);

}  // namespace cli
