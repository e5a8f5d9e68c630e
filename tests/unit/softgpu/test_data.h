// SPDX-License-Identifier: Apache-2.0
// Files that the build makes for the softgpu tests.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

inline std::string test_data_path(const std::string& name) {
  return std::string(SOFTGPU_TEST_DATA) + "/" + name;
}

// The whole file. A missing one ends the test program: nothing else would make sense.
inline std::string read_test_data(const std::string& name) {
  std::ifstream file(test_data_path(name), std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", test_data_path(name).c_str());
    std::abort();
  }
  return {std::istreambuf_iterator<char>(file), {}};
}
