// SPDX-License-Identifier: Apache-2.0
// What a sample does in the thread that it interrupts. It takes some hundred bytes of the stack
// that it finds, and the rest from memory of ours. No lock, no allocation.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/trace/sample_ring.h"
#include "profiler/trace/sample_signal.h"
#include "profiler/trace/signal_walk.h"
#include "profiler/trace/thread_stack.h"

namespace profiler {

// In a mapping of its own, before the stack and the working memory of the walk and the slots of the
// ring. Its memory is never given back, as a handler may be at work on it; it serves a later thread
// once its own has ended.
struct ThreadSamples {
  // The descriptor of the thread whose signals write here; 0: nobody's.
  std::atomic<std::uintptr_t> owner;
  // Set by the handler, which then has stopped the timer: too little of the stack is left.
  std::atomic<bool> is_tight;
  ThreadStack stack;
  int timer;
  long period_ns;
  std::uint32_t capacity;
  SampleRing ring;
  std::atomic<std::uint64_t> kept, dropped, handler_ns;  // handler only
  WalkMemory* walk;
  char* own_stack_top;
  StoredSample* slots;
  ThreadSamples* next;       // of all there are
  ThreadSamples* next_free;  // drain only
};

// What the handler itself takes of a stack, with room to spare.
inline constexpr std::size_t kHandlerBytes = 1024;
// What has to be left of the stack below the handler, besides what the kernel may put there:
// between two samples a thread may go deeper.
inline constexpr std::size_t kLeastRoomBytes = 4096;
// The walk's. It touches half of it.
inline constexpr std::size_t kOwnStackBytes = 16384;

// Signals carry the address of one of these; that of their timer.
using SampleSource = std::atomic<ThreadSamples*>;
struct SampleSources {
  const char* first;  // `bytes` from here on, a source at each `step`
  std::size_t bytes, step;
};

// Sends a signal to the calling thread, to see that it arrives and what the kernel puts on its
// stack for it, all registers included. 0: it does not arrive.
[[nodiscard]] std::size_t measure_signal_frame() noexcept;

void start_timer(const ThreadSamples& samples) noexcept;
void stop_timer(const ThreadSamples& samples) noexcept;

// `frame_bytes`: the most that the kernel may put on a stack for a signal.
void set_sample_sources(const SampleSources& sources, std::size_t frame_bytes) noexcept;
// Whether samples are kept.
extern constinit std::atomic<bool> g_keeps_samples;

// A SampleTaker.
bool take_sample_signal_of_ours(const siginfo_t& info, void* context) noexcept;

}  // namespace profiler
