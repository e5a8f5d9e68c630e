// SPDX-License-Identifier: Apache-2.0
// The name of the report file from its pattern. No allocation; any thread.
#pragma once

#include <cstddef>

#include "runtime/process_start.h"

namespace profiler {

struct PathValues {
  int pid;
  const char* host;
  const char* rank;
  const char* executable;
};

// Expands %p %h %r %e %% into `path`; an unknown letter stays as it is. False if it does not fit.
[[nodiscard]] bool expand_path(const char* pattern, const PathValues& values, char* path,
                               std::size_t capacity) noexcept;

// The pattern ends in .json.
bool wants_json(const char* pattern) noexcept;

// The rank that a launcher of distributed programs gave this process, and the variable that says
// so; "0" from "none" without one.
struct Rank {
  const char* number;
  const char* source;
};
Rank rank_in(const runtime::Environment& environment) noexcept;
Rank rank_of_process() noexcept;  // by what it was told

}  // namespace profiler
