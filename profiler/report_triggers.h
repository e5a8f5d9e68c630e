// SPDX-License-Identifier: Apache-2.0
// Reports of processes that do not end by exit(): while they run, on a timer or a signal, by a
// thread of ours that takes no signal of the program; and when a signal kills them, from a handler
// that then lets the signal do what it would have done, so that the exit status stays.
//
// A handler is put only where the program has none. One that it installs later replaces ours.
#pragma once

#include <cstdint>

namespace profiler {

// `every_s`: seconds between snapshots, 0 for none. `signal`: asks for one, 0 for none. Call it
// once, after enable_profile().
void start_report_triggers(std::uint64_t every_s, int signal) noexcept;

}  // namespace profiler
