// SPDX-License-Identifier: Apache-2.0
// Text in manual pages. Pure.
#pragma once

#include <string>
#include <string_view>

namespace cli {

// Escaped so that it is set as it stands: a '-' stays one that can be copied.
std::string roff(std::string_view text);

}  // namespace cli
