// SPDX-License-Identifier: Apache-2.0
#include "profiler/function_name.h"

#include <cstddef>

namespace profiler {

std::string_view without_parameters(std::string_view function) noexcept {
  std::size_t at = function.rfind(')');
  if (at == function.npos) return function;
  // In an argument of a template, or of an enclosing scope.
  const std::string_view behind = function.substr(at);
  if (behind.find('>') != behind.npos || behind.find("::") != behind.npos) return function;
  for (int depth = 0;; --at) {
    if (function[at] == ')') ++depth;
    if (function[at] == '(' && --depth == 0) break;
    if (at == 0) return function;
  }
  const std::string_view name = function.substr(0, at);
  return name.empty() || name.ends_with("operator") ? function : name;
}

}  // namespace profiler
