// SPDX-License-Identifier: Apache-2.0
// What the tool says about itself on standard error, by spdlog: errors and notes always, and with
// -v what it does, found and read. One thread, as the whole tool.
#pragma once

#include <string>
#include <vector>

namespace cli {

// From the most to the least that is said.
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError, kOff };

// As --log-level takes them, in the order of LogLevel.
const std::vector<std::string>& log_level_names();
void set_log_level(LogLevel level);

// "cajeta-xpu: " + line, as ever, for kError (what ends a command) and kWarn; the levels below say
// which they are, and the time since the one before.
void log(LogLevel level, const std::string& line);

}  // namespace cli
