// SPDX-License-Identifier: Apache-2.0
// Names of functions as places show them. Pure; any thread.
#pragma once

#include <string_view>

namespace profiler {

// "(anonymous namespace)::solve(int) const" -> "(anonymous namespace)::solve". A name that has no
// parameters stays as it is: "f<int, (Mode)3>", "operator()".
std::string_view without_parameters(std::string_view function) noexcept;

}  // namespace profiler
