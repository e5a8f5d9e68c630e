// SPDX-License-Identifier: Apache-2.0
// The blocked-time flame graph: call stacks from the top down, as wide as the host time in calls
// that observe the device below them. Boxes are placed in percent, so they fit any width.
#pragma once

#include <string>

#include "tools/cli/report.h"

namespace cli {

// A section of a document; of a report without stacks, how to get them.
std::string flame_html(const Report& report);

}  // namespace cli
