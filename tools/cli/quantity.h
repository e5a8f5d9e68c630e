// SPDX-License-Identifier: Apache-2.0
// Quantities in arguments: times, shares, counts. What is not understood is a Failure that names
// what is. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cli {

// "100ms" or "20%": one of the two is set.
struct TimeOrShare {
  std::optional<std::uint64_t> ns;
  std::optional<double> percent;
};
TimeOrShare parse_time_or_share(const std::string& option, const std::string& text);

std::uint64_t parse_time_ns(const std::string& option, const std::string& text);
double parse_percent(const std::string& option, const std::string& text);
std::uint64_t parse_count(const std::string& option, const std::string& text);

}  // namespace cli
