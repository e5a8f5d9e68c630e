// SPDX-License-Identifier: Apache-2.0
// What ends a command early, and the exit codes. A Failure is one line for the person at the
// keyboard; main() prints it. One thread, as the whole tool.
#pragma once

#include <stdexcept>
#include <string>

namespace cli {

inline constexpr int kOk = 0;
inline constexpr int kLimitBroken = 1;  // check, compare, doctor: the answer is "no"
inline constexpr int kBadInput = 2;     // arguments or files that cannot be used
// As env(1), for `run`.
inline constexpr int kLauncherFailed = 125;
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& line, int code = kBadInput)
      : std::runtime_error(line), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace cli
