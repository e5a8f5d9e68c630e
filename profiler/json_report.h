// SPDX-License-Identifier: Apache-2.0
// The report as JSON: docs/report.schema.json describes every field. From the same numbers as the
// text; no clock, no environment, no allocation.
#pragma once

#include "profiler/json_writer.h"
#include "profiler/report_writer.h"

namespace profiler {

// Raised with the schema: the first number when a reader of the old form would go wrong, the second
// when keys are added.
inline constexpr const char* kSchemaVersion = "1.0.0";

void write_json_report(const ReportInput& input, JsonWriter* out) noexcept;

}  // namespace profiler
