// SPDX-License-Identifier: Apache-2.0
// Writes a trace of known content with the writer of the library, for trace_test.py to read: two
// threads, three streams of two contexts, samples of nested and inlined functions, and a kernel
// that the clocks put before its launch.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>

#include "profiler/trace/trace_writer.h"

using namespace profiler;
using runtime::EntryId;

namespace {

constinit TraceWriter g_writer;

std::uint64_t at_us(std::uint64_t microseconds) {
  return 1'000'000'000'000 + microseconds * 1000;
}

// Of calls: in a function that is inlined, in the one around it, in the one that called that.
std::uintptr_t g_returns[3];

std::uintptr_t return_address(void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

__attribute__((noinline)) void note_caller() {
  g_returns[0] = return_address(__builtin_return_address(0));
}

inline __attribute__((always_inline)) void inlined_function() {
  note_caller();  // mark: inlined
  asm volatile("");
}

__attribute__((noinline)) void inner_function() {
  g_returns[1] = return_address(__builtin_return_address(0));
  inlined_function();  // mark: inner
  asm volatile("");
}

__attribute__((noinline)) void outer_function() {
  g_returns[2] = return_address(__builtin_return_address(0));
  inner_function();  // mark: outer
  asm volatile("");
}

void add_spans(std::uint32_t tid) {
  // Written out of order, touching each other, and of the same name.
  g_writer.add(HostSpan{EntryId::cuMemcpyDtoH_v2, tid, at_us(300), at_us(400), 4, true});
  g_writer.add(HostSpan{EntryId::cuMemcpyDtoH_v2, tid, at_us(200), at_us(290), 8, true});
  g_writer.add(HostSpan{EntryId::cuMemAlloc_v2, tid, at_us(100), at_us(200), 1024, false});
  g_writer.add(HostSpan{EntryId::cuCtxSynchronize, tid + 1, at_us(100), at_us(100), 0, true});
}

void add_launches(std::uint32_t tid) {
  const std::uintptr_t stack[] = {g_returns[1], g_returns[2]};
  TimedLaunch launch{};
  launch.entry = EntryId::cuLaunchKernel;
  launch.tid = tid;
  launch.stack = {stack, std::size(stack)};
  const TraceStream streams[] = {{1, 1, 0, false}, {2, 1, 0x7f00, false}, {3, 2, 0, true}};
  const char* kernels[] = {"_Z5saxpyIfEviT_PKS0_PS0_", "plain_kernel"};
  for (std::uint64_t number = 1; number <= 6; ++number) {
    launch.number = number;
    launch.stream = streams[number % 3];
    launch.kernel = kernels[number % 2];
    launch.host_start_ns = at_us(1000 + 10 * number);
    launch.host_end_ns = launch.host_start_ns + 4000;
    // The last one would begin before its launch, the one before while another runs.
    launch.device_start_ns = number == 6 ? at_us(900) : launch.host_start_ns + 1000;
    launch.device_end_ns = launch.device_start_ns + 40'000;
    launch.grid[0] = static_cast<std::uint32_t>(number);
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.block[0] = 128;
    launch.shared_bytes = number == 1 ? 48 : 0;
    g_writer.add(launch);
  }
}

void add_samples(std::uint32_t tid) {
  const std::uintptr_t stack[] = {g_returns[0] - 1, g_returns[1], g_returns[2], 0x10};
  for (std::uint32_t i = 0; i < 3; ++i) {
    g_writer.add(HostSample{tid, i + 1, at_us(2000 + i), {stack, std::size(stack)}});
  }
  g_writer.add(HostSample{tid + 1, 1, at_us(2000), {stack, 0}});
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return 1;
  TraceOutput output;
  output.take(file);
  TraceHeader header{};
  header.sample_hz = 1000;
  header.ring_samples = 4096;
  header.device_ring_launches = 8192;
  if (!g_writer.start(&output, 1 << 24, "write_trace", header)) return 1;
  outer_function();  // mark: main
  const auto tid = static_cast<std::uint32_t>(getpid());
  add_spans(tid);
  add_launches(tid);
  if (!g_writer.flush(header)) return 1;
  add_samples(tid);
  g_writer.add_symbols();
  header.samples_kept = 7;
  header.launches_kept = 6;
  header.spans_kept = 4;
  header.launches_untimed = 3;
  header.own_cost_ns = 123456789;
  header.is_complete = true;
  return g_writer.flush(header) ? 0 : 1;
}
