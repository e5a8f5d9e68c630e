// SPDX-License-Identifier: Apache-2.0
// Writes reports as JSON, as docs/report.schema.json has them.
#pragma once

#include "profiler/json_writer.h"
#include "tools/cli/report.h"

namespace cli {

// One value: after a key, in an array or alone.
void write_report(const Report& report, profiler::JsonWriter* out);

}  // namespace cli
