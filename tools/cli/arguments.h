// SPDX-License-Identifier: Apache-2.0
// From the command line to the command. The only user of CLI11, which is slow to compile.
#pragma once

namespace cli {

// Runs what the arguments ask for; returns the exit code. Wrong arguments are one line that names
// the legal ones.
int run_command_line(int count, char** arguments);

}  // namespace cli
