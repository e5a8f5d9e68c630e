// SPDX-License-Identifier: Apache-2.0
// A stack of ours, for what a thread must do that may have next to none left: one of 16 KiB, one in
// a handler on an alternative stack of 8 KiB. One for the process, so one thread at a time, which
// the caller sees to. Takes 300 bytes of the stack it is called on. Async-signal-safe.
#pragma once

namespace runtime {

void run_on_own_stack(void (*run)() noexcept) noexcept;

}  // namespace runtime
