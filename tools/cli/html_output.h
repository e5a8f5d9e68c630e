// SPDX-License-Identifier: Apache-2.0
// Reports as one HTML document that needs nothing beside it: no network, no fonts, no files. All
// there is to read is there without the script, which only enlarges parts of the flame graph. The
// same reports make the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/report_page.h"

namespace cli {

std::string html_of(const std::vector<Report>& reports, const View& view);

// Foreign text as content or in a quoted attribute.
std::string html_escaped(std::string_view text);

}  // namespace cli
