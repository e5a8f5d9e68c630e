// SPDX-License-Identifier: Apache-2.0
// Messages to the person who runs the program: one line each to the standard error that the process
// started with, from a stack buffer, at most 32 a process so that a fault in a loop does not flood.
// Never waits and raises no signal (runtime/standard_error.h). Any thread; never on the launch
// path; keeps errno.
#pragma once

namespace runtime {

[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...) noexcept;

}  // namespace runtime
