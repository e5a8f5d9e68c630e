// SPDX-License-Identifier: Apache-2.0
// Starts the program as if nobody stood between it and the caller: signals that are sent to us go
// to it, its wait status becomes ours, and it does not outlive us. One child, one thread.
#pragma once

#include <string>
#include <vector>

namespace cli {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Replaces this process. A Failure with env(1)'s exit code when it could not.
[[noreturn]] void replace_process(const std::vector<std::string>& program,
                                  const Environment& changes);

// The wait status (waitpid(2)). A Failure as above.
int run_child(const std::vector<std::string>& program, const Environment& changes);

// Ends this process the way the child ended.
[[noreturn]] void end_like(int wait_status);

}  // namespace cli
