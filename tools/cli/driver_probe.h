// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA driver who it is, in a child process with a time limit.
#pragma once

#include <string>

namespace cli {

struct DriverAnswer {
  char path[512] = "";
  char problem[256] = "";  // why it could not be loaded
  int version = 0;         // 13000: CUDA 13.0
  int init_result = -1;    // of cuInit; -1: not called
  int devices = 0;
  char device[128] = "";  // name of the first
};

// False when the child died or took too long; `died` says how.
bool probe_driver(DriverAnswer* answer, std::string* died);

}  // namespace cli
