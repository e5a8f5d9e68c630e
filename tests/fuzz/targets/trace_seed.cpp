// SPDX-License-Identifier: Apache-2.0
// Writes the trace of the unit tests to standard output: the seed of trace_target.cpp.
#include <cstdio>

#include "tests/unit/cli/traces.h"

int main() {
  const std::string bytes = cli_test::sample_trace().bytes;
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() ? 0 : 1;
}
