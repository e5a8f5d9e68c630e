// SPDX-License-Identifier: Apache-2.0
// The signal that samples come by: 33, which glibc keeps for itself (it carries setuid() to all
// threads). A program that goes through libc can neither block it, nor wait for it, nor handle it,
// nor set it to its default, so no sample ever is a signal of the program's. The handler is set by
// the kernel's own call, in front of glibc's, which gets all that is not ours.
#pragma once

#include <signal.h>

namespace profiler {

inline constexpr int kSampleSignal = 33;

// Whether the signal was ours. In the handler: on the thread's own stack or its alternative one,
// all signals blocked.
using SampleTaker = bool (*)(const siginfo_t& info, void* context) noexcept;

// False: the kernel refuses; errno says why. Again without harm.
[[nodiscard]] bool take_sample_signal(SampleTaker taker) noexcept;

// Goes in front of a handler that was set since: glibc sets its own with the first thread. False:
// the program has set the default, by a call of the kernel's own; timers have to go.
[[nodiscard]] bool keep_sample_signal() noexcept;

}  // namespace profiler
