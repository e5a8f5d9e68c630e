// SPDX-License-Identifier: Apache-2.0
// Device times of launches: an event before and one behind each, recorded on the launch's own
// stream, and read later by the thread that writes the trace. Nothing of the program waits for
// them. Times are anchored to the host clock by events on a stream of our own, about once a second.
//
// An event pair sees what the stream did between its ends: of a kernel that finds its stream idle
// it also sees the way of the launch to the device, up to the start of the launch call, where it is
// cut off.
#pragma once

#include "profiler/trace/records.h"
#include "runtime/context_state.h"
#include "runtime/sequence.h"

namespace profiler {

struct LaunchFacts {
  runtime::EntryId entry;
  CUfunction function;         // null: a graph launch
  runtime::LaunchShape shape;  // zeros where the call does not say
  CUstream stream;
  bool is_per_thread;  // stream 0 is the per-thread default stream
};

struct TimedSlot;

// Around a launch call, on the thread that makes it, with the launch's context current. Null when
// this launch is not timed: the stream may be capturing, its context is another one, the ring is
// full, or events cannot be had; that is counted. Any thread; no lock; errno kept.
[[nodiscard]] TimedSlot* begin_device_time(const LaunchFacts& facts) noexcept;
void end_device_time(TimedSlot* slot, const LaunchFacts& facts, CUresult result) noexcept;
// Launches that no slot was asked for.
void count_untimed_launches(std::uint64_t launches) noexcept;

// `launches`: of a context, that may be outstanding; 0: off.
void start_device_times(std::uint32_t launches) noexcept;
bool times_launches() noexcept;
// Hands over what is complete by now. One thread at a time; calls the driver.
void drain_device_times(void (*take)(void* context, const TimedLaunch& launch),
                        void* context) noexcept;
// The context ends, or may: what is complete is read, the rest counted as untimed, and our events
// and stream are destroyed. While the context can still be made current.
void end_device_times(const runtime::ContextState& context) noexcept;

struct DeviceCounts {
  std::uint64_t dropped = 0;  // the ring was full
  std::uint64_t untimed = 0;  // for any other reason
  std::uint64_t own_ns = 0;   // that launches took longer for it
};
DeviceCounts device_counts() noexcept;
// Launches whose times have not been handed over.
std::uint64_t outstanding_launches() noexcept;

}  // namespace profiler
