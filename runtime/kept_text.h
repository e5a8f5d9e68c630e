// SPDX-License-Identifier: Apache-2.0
// Copies of settings: a program may write over its environment, or go to another folder. They live
// as long as the process. Any thread; allocates; keeps errno.
#pragma once

namespace runtime {

// Null when memory ran out.
const char* keep_text(const char* text) noexcept;

// The same for the name of a file, with the folder of this moment in front where it has none. As a
// pattern it is expanded later, so that a % of the folder is doubled. Stays as it is where the
// folder has no name any more, or the whole would be longer than a path may be.
const char* keep_path(const char* path, bool is_pattern) noexcept;

}  // namespace runtime
