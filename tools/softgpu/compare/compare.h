// SPDX-License-Identifier: Apache-2.0
// Compares the trace of a bare run with that of a shimmed run of the same program: what the preload
// library changed. What each finding means is in tools/softgpu/trace_format.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/softgpu/compare/trace.h"

namespace softgpu::compare {

enum class Finding : std::uint8_t {
  // Bugs.
  kMissing,  // done in bare, never submitted in shimmed
  kExtra,    // submitted in shimmed only
  kChanged,  // other kernel, shape, arguments, addresses, sizes
  kLostOrder,
  kLostObservation,
  // To know.
  kAddedOrder,
  kRace,
  kAccesses,  // touched other memory, as programs with races or atomic counters may
};
inline constexpr std::size_t kFindings = 8;

constexpr bool is_bug(Finding finding) {
  return finding < Finding::kAddedOrder;
}

struct Report {
  std::array<std::uint64_t, kFindings> counts{};
  // The first kMostLines of each.
  std::array<std::vector<std::string>, kFindings> lines;
  std::uint64_t operations = 0, waits = 0;  // in bare

  std::uint64_t count(Finding finding) const { return counts[static_cast<std::size_t>(finding)]; }
  const std::vector<std::string>& lines_of(Finding finding) const {
    return lines[static_cast<std::size_t>(finding)];
  }
  bool has_bugs() const;
  // "12 operations, 3 waits: equal; 0 added orders, 1 race, 0 other accesses"
  std::string summary() const;
};

inline constexpr std::size_t kMostLines = 20;

struct Options {
  // Threads submit and wait at the same time, so what a wait finds of the others is chance: it is
  // taken to have seen what its own thread submitted.
  bool threads_race = false;
};

Report compare(const Trace& bare, const Trace& shimmed, const Options& options = {});

}  // namespace softgpu::compare
