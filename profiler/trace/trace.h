// SPDX-License-Identifier: Apache-2.0
// The profiler of CAJETA_PROFILER: starts what observes (host samples, driver calls, device times),
// and a thread that carries what they kept into the trace file, twenty times a second. The
// program's threads never wait for it.
#pragma once

#include "runtime/options.h"

namespace profiler {

// Opens the file and starts the thread. Where the file cannot be had the program runs on without a
// profiler, and one line says so. Once, before launches are made.
void start_trace(const runtime::Options& options) noexcept;
// Carries over what is left and closes the file; launches that the device has not finished are
// counted as untimed. On the thread that ends the process.
void finish_trace() noexcept;
// In a forked child: the file is the parent's.
void forget_trace() noexcept;

}  // namespace profiler
