// SPDX-License-Identifier: Apache-2.0
// The layout of a descriptor is not told by any header, and differs between versions of libc; so a
// thread whose stack is known looks for it in its own.
#include "profiler/trace/thread_stack.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "profiler/trace/own_memory.h"

// Of the dynamic loader: where the first thread's stack began. In no header.
extern "C" void* __libc_stack_end;

namespace profiler {
namespace {

// More than any libc's descriptor has.
constexpr std::size_t kMostBytes = 4096;
// Of a first thread that the system lets grow without bound.
constexpr std::uintptr_t kUnboundedBytes = 8u << 20;

// As they lie in a descriptor. `guard`: the part at the low end that cannot be used.
struct Block {
  std::uintptr_t low, bytes, guard;
};

constinit std::size_t g_list_offset = 0;   // of the list of robust mutexes, in a descriptor
constinit std::size_t g_block_offset = 0;  // of its Block; 0: not known

std::uintptr_t robust_list_of(pid_t tid) noexcept {
  std::uintptr_t list = 0;
  std::size_t bytes = 0;
  return syscall(SYS_get_robust_list, tid, &list, &bytes) == 0 ? list : 0;
}

void find_layout(const char* descriptor, std::uintptr_t low, std::uintptr_t high) noexcept {
  const auto start = reinterpret_cast<std::uintptr_t>(descriptor);
  const std::uintptr_t list = robust_list_of(0);
  if (start <= low || start >= high || list <= start || list - start >= kMostBytes) return;
  const std::size_t bytes = std::min<std::size_t>(kMostBytes, high - start);
  for (std::size_t at = 0; at + sizeof(Block) <= bytes; at += sizeof(std::uintptr_t)) {
    const auto* block = reinterpret_cast<const Block*>(descriptor + at);
    if (block->low == 0 || block->low + block->guard != low) continue;
    if (block->low + block->bytes != high) continue;
    g_list_offset = list - start;
    g_block_offset = at;
    return;
  }
}

bool find_first_stack(ThreadStack* stack) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return false;
  stack->high = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  const bool is_bounded = limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < stack->high;
  stack->low = stack->high - (is_bounded ? limit.rlim_cur : kUnboundedBytes);
  return true;
}

}  // namespace

bool learn_thread_stacks() noexcept {
  if (g_block_offset != 0) return true;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    find_layout(reinterpret_cast<const char*>(pthread_self()),
                reinterpret_cast<std::uintptr_t>(low),
                reinterpret_cast<std::uintptr_t>(low) + bytes);
  }
  pthread_attr_destroy(&attributes);
  return g_block_offset != 0;
}

bool find_thread_stack(pid_t tid, ThreadStack* stack) noexcept {
  const std::uintptr_t list = robust_list_of(tid);
  if (g_block_offset == 0 || list <= g_list_offset) return false;
  stack->descriptor = list - g_list_offset;
  Block block;
  if (copy_own_memory(&block, stack->descriptor + g_block_offset, sizeof block) != sizeof block) {
    return false;
  }
  if (block.low == 0) return tid == getpid() && find_first_stack(stack);
  stack->low = block.low + block.guard;
  stack->high = block.low + block.bytes;
  return block.guard < block.bytes && stack->low < stack->descriptor &&
         stack->descriptor < stack->high;
}

}  // namespace profiler
