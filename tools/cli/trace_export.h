// SPDX-License-Identifier: Apache-2.0
// A trace in the formats of other tools. Each is bounded: at most `limit` records, and what has to
// stay out is told. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "profiler/json_writer.h"
#include "tools/cli/trace.h"

namespace cli {

struct Exported {
  std::string text;
  std::string left_out;  // one line; empty: nothing
};

// CPU time by thread and stack, "thread;outer;inner NS". The largest stacks stay. A Failure without
// samples.
Exported folded_of(const Trace& trace, std::size_t limit);

// All records by their start: calls, launches, kernels, samples. The first stay.
Exported records_csv(const Trace& trace, std::size_t limit);

// https://www.speedscope.app/file-format-schema.json: a profile of samples per thread, one of
// events per device stream. The first records stay. Returns what is left out, as above; a Failure
// when there is nothing to show.
std::string write_speedscope(const Trace& trace, std::size_t limit, profiler::JsonWriter* out);

}  // namespace cli
