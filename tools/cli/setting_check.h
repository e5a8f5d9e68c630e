// SPDX-License-Identifier: Apache-2.0
// Settings of the library, checked the way the library reads them.
#pragma once

#include <string>

namespace cli {

// Empty, or what is wrong and what is legal. `name` with its prefix.
std::string fault_of_setting(const std::string& name, const std::string& value);

// "GRAPH_BYTES" -> "CAJETA_XPU_GRAPH_BYTES"; a full name stays.
std::string full_setting_name(const std::string& name);

}  // namespace cli
