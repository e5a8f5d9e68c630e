// SPDX-License-Identifier: Apache-2.0
// What the comparer's tests share: traces written by hand.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tools/softgpu/compare/compare.h"

namespace compare_test {

inline softgpu::compare::Trace trace_of(const std::vector<std::string>& lines) {
  std::string content = "softgpu-trace 1\n";
  for (const std::string& line : lines) content += line + '\n';
  softgpu::compare::Trace trace;
  std::string error;
  const bool is_good = softgpu::compare::parse_trace(content, &trace, &error);
  INFO(error);
  REQUIRE(is_good);
  return trace;
}

inline softgpu::compare::Report compare(const std::vector<std::string>& bare,
                                        const std::vector<std::string>& shimmed) {
  return softgpu::compare::compare(trace_of(bare), trace_of(shimmed));
}

}  // namespace compare_test
