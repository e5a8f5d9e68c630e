// SPDX-License-Identifier: Apache-2.0
// From a seed to a program, and from a program to a smaller one. Pure: the same arguments give the
// same program on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fuzz/program.h"

namespace fuzz {

struct GeneratorOptions {
  int threads = 0;            // 0: chosen by the seed
  bool polls_memory = false;  // may spin on mapped memory
  bool has_faults = true;     // may have kernels that fault
};

Program generate(std::uint64_t seed, const GeneratorOptions& options);

// What is left of a program when only the steps with these numbers are kept; those that are not
// legal without the others are dropped too.
Program keep_only(const Program& program, const std::vector<int>& numbers);

// One step a line: number, thread, name, arguments.
void print(const Program& program);

}  // namespace fuzz
