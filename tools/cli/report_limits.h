// SPDX-License-Identifier: Apache-2.0
// Limits that a report must keep, for a gate in continuous integration. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/quantity.h"
#include "tools/cli/report.h"

namespace cli {

// For all calls together, or for one entry.
struct BlockedLimit {
  std::string entry;  // empty: all
  TimeOrShare most;
};
struct CallLimit {
  std::string entry;
  std::uint64_t most = 0;
};

struct Limits {
  std::vector<BlockedLimit> blocked;
  std::vector<CallLimit> calls;
  std::optional<double> one_by_one_percent;  // of all launches
  std::optional<std::uint64_t> failed;
  bool no_new_sites = false;
  std::vector<std::string> allowed;  // parts of "entry place" that may be new

  std::size_t count() const noexcept {
    return blocked.size() + calls.size() + (one_by_one_percent ? 1 : 0) + (failed ? 1 : 0) +
           (no_new_sites ? 1 : 0);
  }
};

// "[ENTRY:]100ms", "[ENTRY:]20%", "[ENTRY:]1000".
BlockedLimit parse_blocked_limit(const std::string& option, const std::string& text);
CallLimit parse_call_limit(const std::string& option, const std::string& text);

// One line per broken limit, or per new site. `baseline` may be null without no_new_sites. A
// Failure when a limit cannot be judged on this report.
std::vector<std::string> broken_limits(const Report& report, const Limits& limits,
                                       const Report* baseline);

}  // namespace cli
