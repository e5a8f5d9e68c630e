// SPDX-License-Identifier: Apache-2.0
// When the shim is awake: it starts on the first hooked call, gives up in a forked child, and at
// process exit submits what is queued and writes the report. Nothing here runs before the
// application calls CUDA. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/driver.h"
#include "runtime/options.h"
#include "runtime/reentry.h"

namespace shim {

enum class Mode : std::uint8_t {
  kAsleep,    // no hooked call yet
  kStarting,  // one thread is starting it; the others forward meanwhile
  kActive,
  kProfiled,  // active, and calls are timed
  kPassive,   // for good: disabled, second copy, forked child, exiting
};

// Written by wake(), the fork handler and the exit handler. Relaxed readers: a late view only
// forwards one call more.
extern constinit std::atomic<Mode> g_mode [[gnu::visibility("hidden")]];

// True when wrappers do their work on this thread and nothing more; else see is_profiled() and
// wake().
inline bool is_active() noexcept {
  return g_mode.load(std::memory_order_relaxed) == Mode::kActive && !runtime::in_own_call();
}

// True when wrappers do their work on this thread and time it.
inline bool is_profiled() noexcept {
  return g_mode.load(std::memory_order_relaxed) == Mode::kProfiled && !runtime::in_own_call();
}

// Starts the shim if it has not been started, and says whether `trigger` may now be handled by it.
// Cold.
bool wake(runtime::EntryId trigger) noexcept;

// True when look-ups are answered with wrappers: neither switched off, nor a second copy, nor a
// forked child.
bool doors_are_open() noexcept;

// True when the program's own driver calls come here: preloaded, or linked ahead of libcuda. False
// when the library was loaded later; nothing is queued then, since the calls that would have to
// submit it pass us by.
bool is_in_front() noexcept;

// The settings, read on first use.
const runtime::Options& options() noexcept;

// Submits what is queued, writes the report and turns passive; once a process, later calls return
// at once. The exit handler that calls it is registered right after the first successful cuInit,
// which is when the driver has registered its own: ours then runs first, while the driver still
// works.
void leave_process() noexcept;

}  // namespace shim
