// SPDX-License-Identifier: Apache-2.0
// Values that follow from a report.
#include "tools/cli/report.h"

#include <cctype>
#include <cinttypes>
#include <cstdio>

namespace cli {

std::optional<Saving> saving_of(const Launches& launches) noexcept {
  if (launches.queued == 0) return std::nullopt;
  const bool has_batches = launches.one_by_one_batches.calls > 0;
  const CallTotals& priced = has_batches ? launches.one_by_one_batches : launches.direct_calls;
  if (priced.calls == 0) return std::nullopt;
  const std::uint64_t price_ns = priced.quantile_ns(0.5);
  const std::uint64_t gained = price_ns * launches.replayed_batches.amount;
  const std::uint64_t spent = launches.replayed_batches.total_ns + launches.queueing_calls.total_ns;
  return Saving{price_ns, static_cast<std::int64_t>(gained - spent)};
}

std::uint64_t Report::observed_ns() const noexcept {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.totals.total_ns;
  return sum;
}

std::uint64_t Report::submitting_ns() const noexcept {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.totals.submit_ns;
  return sum;
}

std::uint64_t Report::blocked_ns() const noexcept {
  const std::uint64_t observed = observed_ns(), submitting = submitting_ns();
  return observed > submitting ? observed - submitting : 0;
}

std::string place_without_line(const std::string& place) {
  const std::size_t blank = place.find(' ');
  const std::size_t colon = place.rfind(':', blank);
  if (colon == std::string::npos || blank == std::string::npos || colon + 1 == blank) return place;
  for (std::size_t i = colon + 1; i < blank; ++i) {
    if (std::isdigit(static_cast<unsigned char>(place[i])) == 0) return place;
  }
  return place.substr(0, colon) + place.substr(blank);
}

std::string frame_name(const Sites& sites, const Frame& frame) {
  if (frame.function) return *frame.function;
  char offset[32];
  std::snprintf(offset, sizeof offset, "0x%" PRIx64, frame.offset);
  if (!frame.module) return offset;
  const std::string& path = sites.modules[*frame.module].path;
  return path.substr(path.rfind('/') + 1) + "+" + offset;
}

}  // namespace cli
