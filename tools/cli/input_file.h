// SPDX-License-Identifier: Apache-2.0
// The bytes of a file that a command is given. One thread.
#pragma once

#include <string>

namespace cli {

// "-" is standard input. A Failure when it cannot be read or is larger than 4 GiB.
std::string read_input(const std::string& path);

// As messages name it.
std::string input_name(const std::string& path);

}  // namespace cli
