// SPDX-License-Identifier: Apache-2.0
// What `doctor` looks at, each on its own. Nothing is changed; the driver is asked in a child, so
// that it can neither hang nor end the tool.
#pragma once

#include <string>
#include <vector>

namespace cli {

enum class Health { kOk, kWarn, kFail };

struct Finding {
  Health health;
  std::string subject;
  std::string text;  // what is so, and what to do where that is not well
};
using Findings = std::vector<Finding>;

// Adds a line each; `library` is empty when there is none.
std::string check_library(const std::string& given, Findings* findings);
void check_driver(Findings* findings);
void check_preloads(const std::string& library, Findings* findings);
void check_settings(Findings* findings);
void check_report_path(Findings* findings);
void check_surroundings(Findings* findings);
void check_program(const std::string& program, const std::string& library, Findings* findings);

}  // namespace cli
