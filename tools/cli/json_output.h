// SPDX-License-Identifier: Apache-2.0
// JSON to standard output or to a file, which appears whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profiler/json_writer.h"

namespace cli {

// "-" is standard output. A Failure when it cannot be written.
void write_json(const std::string& path, const std::function<void(profiler::JsonWriter*)>& write);

// The same for text.
void write_text(const std::string& path, std::string_view text);

}  // namespace cli
