// SPDX-License-Identifier: Apache-2.0
// Samples of what the host threads execute: a timer on the CPU clock of each thread raises a signal
// in it, whose handler walks the stack into that thread's ring. A full ring drops and counts;
// nothing ever waits. Threads are found by looking at /proc/self/task now and then; those that
// block the signal are left out, and those without room for one, and our own (named cajeta-…). The
// signal is one that libc keeps from programs: sample_signal.h.
#pragma once

#include "profiler/trace/records.h"

namespace profiler {

struct SampleCounts {
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
  std::uint64_t left_out = 0;    // threads, for their stacks
  std::uint64_t handler_ns = 0;  // CPU time
};

// Installs the handler. `hz`: samples per second of CPU time, as far as the kernel's own clock tick
// allows (the rest comes as weight). `ring_samples`: per thread. False (with a warning that says
// why) where that is not to be had.
[[nodiscard]] bool start_sampler(std::uint32_t hz, std::uint32_t ring_samples) noexcept;

// Arms threads that are new, forgets those that ended, and hands over what the rings hold. One
// thread at a time.
void drain_samples(void (*take)(void* context, const HostSample& sample), void* context) noexcept;

// Disarms every thread; the handler stays, and does nothing. What is in the rings can be drained
// once more.
void stop_sampler() noexcept;
// In a forked child: timers are not inherited, the handler must not touch the rings.
void forget_sampler() noexcept;

// For a thread that changes its alternative stack. Null: it is not sampled. `small_bytes`: what it
// has afterwards, if that is small.
struct ThreadSamples;
ThreadSamples* pause_own_samples() noexcept;
void resume_own_samples(ThreadSamples& samples, std::size_t small_bytes) noexcept;

// Of all threads since the process started. Any thread.
SampleCounts sample_counts() noexcept;

}  // namespace profiler
