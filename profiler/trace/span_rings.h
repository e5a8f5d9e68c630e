// SPDX-License-Identifier: Apache-2.0
// Driver calls in which host threads spent time, on their way to the trace: a ring per thread that
// drops and counts when it is full. note_span() runs inside the wrappers on any thread: no lock, no
// wait, no allocation but at a thread's first span, errno kept.
#pragma once

#include <atomic>

#include "profiler/trace/records.h"

namespace profiler {

// Shorter calls are counted by the driver profile and not drawn: 500,000 a second would be a trace
// that nobody can open.
inline constexpr std::uint64_t kShortestSpanNs = 2'000;

// Set while a trace is written.
extern constinit std::atomic<bool> g_keeps_spans;

struct SpanFacts {
  runtime::EntryId entry;
  std::uint64_t ns;  // that the call took; it has just ended
  std::uint64_t bytes;
  bool is_blocked;
};
void note_span(const SpanFacts& facts) noexcept;

// Hands over what the rings hold. One thread at a time.
void drain_spans(void (*take)(void* context, const HostSpan& span), void* context) noexcept;
std::uint64_t dropped_spans() noexcept;

}  // namespace profiler
