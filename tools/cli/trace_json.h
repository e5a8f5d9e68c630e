// SPDX-License-Identifier: Apache-2.0
// The summary of a trace as JSON: integers, the unit in the name; later versions only add keys.
// Pure.
#pragma once

#include "profiler/json_writer.h"
#include "tools/cli/trace_summary.h"

namespace cli {

void write_summary(const Trace& trace, const TraceSummary& summary, profiler::JsonWriter* out);

}  // namespace cli
