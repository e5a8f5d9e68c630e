// SPDX-License-Identifier: Apache-2.0
#include "profiler/stack_walk.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#include "runtime/driver.h"
#include "runtime/real_dlsym.h"
#include "runtime/reentry.h"

namespace profiler {
namespace {

// Frames of ours at the inner end, at most: wrapper, timing, walk.
constexpr std::size_t kOwnFrames = 6;
constexpr std::size_t kMostFrames = 64;

using Backtrace = int (*)(void** addresses, int capacity);

// Written by start_stack_walk(), before other threads walk.
Backtrace g_backtrace = nullptr;

struct StackBounds {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;  // 0: not asked yet
};
[[gnu::tls_model("initial-exec")]] constinit thread_local StackBounds t_stack;

// glibc may allocate here, once a thread.
[[gnu::noinline]] void find_stack() noexcept {
  t_stack = {1, 1};  // nothing is inside
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    t_stack.low = reinterpret_cast<std::uintptr_t>(low);
    t_stack.high = t_stack.low + size;
  }
  pthread_attr_destroy(&attributes);
}

std::size_t follow_frame_pointers(const void* frame, std::uintptr_t* addresses,
                                  std::size_t capacity) noexcept {
  if (t_stack.high == 0) find_stack();
  auto at = reinterpret_cast<std::uintptr_t>(frame);
  std::size_t count = 0;
  // A frame pointer that is none points anywhere: only addresses that climb within the stack are
  // read.
  while (count < capacity && at >= t_stack.low && at % sizeof(at) == 0 &&
         at + 2 * sizeof(at) <= t_stack.high) {
    const auto* words = reinterpret_cast<const std::uintptr_t*>(at);
    const std::uintptr_t address = words[1];
    if (address == 0) break;
    if (!runtime::is_own_address(reinterpret_cast<const void*>(address))) {
      addresses[count++] = address;
    }
    if (words[0] <= at) break;
    at = words[0];
  }
  return count;
}

std::size_t ask_libunwind(std::uintptr_t* addresses, std::size_t capacity) noexcept {
  void* raw[kMostFrames];
  const std::size_t wanted =
      capacity + kOwnFrames < kMostFrames ? capacity + kOwnFrames : kMostFrames;
  const int found = g_backtrace(raw, static_cast<int>(wanted));
  std::size_t count = 0;
  for (int i = 0; i < found && count < capacity; ++i) {
    if (raw[i] == nullptr || runtime::is_own_address(raw[i])) continue;
    addresses[count++] = reinterpret_cast<std::uintptr_t>(raw[i]);
  }
  return count;
}

Backtrace open_libunwind() noexcept {
  const runtime::ReentryGuard guard;
  const runtime::DlsymFunction find = runtime::find_real_dlsym();
  void* handle = find != nullptr ? dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    dlerror();  // a failed attempt of ours must not be what the program's next dlerror() reads
    return nullptr;
  }
  return reinterpret_cast<Backtrace>(find(handle, "unw_backtrace"));
}

}  // namespace

void start_stack_walk(bool allow_libunwind) noexcept {
  const int saved_errno = errno;
  g_backtrace = allow_libunwind ? open_libunwind() : nullptr;
  std::uintptr_t addresses[kMostFrames];
  walk_stack(__builtin_frame_address(0), addresses, kMostFrames);
  errno = saved_errno;
}

StackWalk stack_walk() noexcept {
  return g_backtrace != nullptr ? StackWalk::kLibunwind : StackWalk::kFramePointers;
}

std::size_t walk_stack(const void* frame, std::uintptr_t* addresses,
                       std::size_t capacity) noexcept {
  const int saved_errno = errno;
  const std::size_t count = g_backtrace != nullptr
                                ? ask_libunwind(addresses, capacity)
                                : follow_frame_pointers(frame, addresses, capacity);
  errno = saved_errno;
  return count;
}

}  // namespace profiler
