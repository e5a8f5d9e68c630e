// SPDX-License-Identifier: Apache-2.0
// Opens the files that the environment names. No state.
#pragma once

#include <string>

namespace softgpu {

// Creates or empties `path`, with %p replaced by the process id. -1 after one line on stderr.
// `flags` are added to the open flags.
int open_output(std::string path, int flags);

}  // namespace softgpu
