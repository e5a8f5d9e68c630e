// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/quantity.h"

#include <charconv>
#include <string_view>

#include "tools/cli/failure.h"

namespace cli {
namespace {

constexpr const char* kTimes = "a time as 100ms (units ns, us, ms, s)";
constexpr const char* kShares = "a share as 20%";

[[noreturn]] void refuse(const std::string& option, const std::string& text,
                         const std::string& legal) {
  throw Failure(option + ": \"" + text + "\" is not understood; expected " + legal);
}

// Digits with decimals, and what follows them.
std::optional<double> parse_decimal(std::string_view text, std::string_view* rest) {
  double value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  *rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> time_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  std::string_view unit;
  const std::optional<double> value = parse_decimal(text, &unit);
  if (!value) return std::nullopt;
  if (unit.empty() && *value == 0) return 0;
  for (const Unit& known : kUnits) {
    if (unit != known.name || *value * known.ns > 9e18) continue;
    return static_cast<std::uint64_t>(*value * known.ns + 0.5);
  }
  return std::nullopt;
}

std::optional<double> share_of(std::string_view text) {
  std::string_view unit;
  const std::optional<double> value = parse_decimal(text, &unit);
  return value && unit == "%" ? value : std::nullopt;
}

}  // namespace

TimeOrShare parse_time_or_share(const std::string& option, const std::string& text) {
  TimeOrShare found{time_of(text), share_of(text)};
  if (!found.ns && !found.percent) {
    refuse(option, text, std::string(kTimes) + " or " + kShares + " of the wall time");
  }
  return found;
}

std::uint64_t parse_time_ns(const std::string& option, const std::string& text) {
  const std::optional<std::uint64_t> ns = time_of(text);
  if (!ns) refuse(option, text, kTimes);
  return *ns;
}

double parse_percent(const std::string& option, const std::string& text) {
  const std::optional<double> share = share_of(text);
  if (!share) refuse(option, text, kShares);
  return *share;
}

std::uint64_t parse_count(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    refuse(option, text, "a count as 1000");
  }
  return value;
}

}  // namespace cli
