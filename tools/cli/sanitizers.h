// SPDX-License-Identifier: Apache-2.0
// Programs that GCC or Clang built with a sanitizer, and what the library needs there. Looks at
// files and at the environment.
#pragma once

#include <string>

#include "tools/cli/child.h"
#include "tools/cli/program_file.h"

namespace cli {

// Variables for a program to run with the library. They go to every program, because it may be a
// script whose children only are built that way; to others they mean nothing.
Environment sanitizer_environment();

// What is to be done when the program is run without `run`; empty: nothing.
std::string sanitizer_advice(const ProgramFile& program);

}  // namespace cli
