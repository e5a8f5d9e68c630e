// SPDX-License-Identifier: Apache-2.0
// Call sites with names: for each stack the nearest frame that is neither ours nor in a CUDA
// library, and the library it came through. Symbols are read here, when a report is written, on one
// thread; without symbols (in a signal handler) frames are module and offset.
#pragma once

#include <cstddef>

#include "profiler/json_writer.h"
#include "profiler/report_writer.h"

namespace profiler {

// One line per entry and place, stacks that end there added up. The lines are static: they stay
// until the next call. `reads_symbols`: files may be read and memory allocated.
std::size_t collect_sites(bool reads_symbols, SiteLine** lines) noexcept;

// Every stack with all its frames.
void write_json_sites(bool reads_symbols, JsonWriter* out) noexcept;

}  // namespace profiler
