// SPDX-License-Identifier: Apache-2.0
// Reads traces in Perfetto's format that the profiler wrote (CAJETA_PROFILER=1). A file that ends
// inside a packet, as a killed process leaves it, is read up to there. Packets and fields that this
// version does not know are ignored, and so is what other tools recorded into the same file. Memory
// stays within a small multiple of the file.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/trace.h"

namespace cli {

// Whether these bytes are packets, of whomever, and no text.
bool is_trace(std::string_view bytes);

// `name` stands in messages. What cannot be read at all is a Failure of one line.
Trace parse_trace(std::string_view bytes, const std::string& name);

}  // namespace cli
