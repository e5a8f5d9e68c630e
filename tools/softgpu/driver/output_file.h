// SPDX-License-Identifier: Apache-2.0
// Opens and writes the files that the environment names. No state.
#pragma once

#include <string>
#include <string_view>

namespace softgpu {

// Creates or empties `path`, with %p replaced by the process id. -1 after one line on stderr.
// `flags` are added to the open flags.
int open_output(std::string path, int flags);

// Writes `text`, in one call unless the system takes less at a time. Gives up when it takes
// nothing: a full disk must not end the client.
void write_fully(int file, std::string_view text);

}  // namespace softgpu
