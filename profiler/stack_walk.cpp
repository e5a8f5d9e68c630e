// SPDX-License-Identifier: Apache-2.0
#include "profiler/stack_walk.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "profiler/libunwind_pipe.h"
#include "runtime/driver.h"
#include "runtime/loaded_image.h"
#include "runtime/log.h"
#include "runtime/own_thread.h"
#include "runtime/reentry.h"

namespace profiler {
namespace {

// Frames of ours at the inner end, at most: wrapper, timing, walk.
constexpr std::size_t kOwnFrames = 6;
constexpr std::size_t kMostFrames = 64;

using Backtrace = int (*)(void** addresses, int capacity);

// Null: frame pointers are followed.
constinit std::atomic<Backtrace> g_backtrace{nullptr};

void stop_libunwind() noexcept {
  if (g_backtrace.exchange(nullptr, std::memory_order_relaxed) == nullptr) return;
  runtime::warn(
      "the program has closed descriptors of libunwind: stacks by frame pointers from here");
}

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

std::size_t ask_libunwind(Backtrace backtrace, std::uintptr_t* addresses,
                          std::size_t capacity) noexcept {
  void* raw[kMostFrames];
  const std::size_t wanted =
      capacity + kOwnFrames < kMostFrames ? capacity + kOwnFrames : kMostFrames;
  const int found = backtrace(raw, static_cast<int>(wanted));
  std::size_t count = 0;
  for (int i = 0; i < found && count < capacity; ++i) {
    if (raw[i] == nullptr || runtime::is_own_address(raw[i])) continue;
    addresses[count++] = reinterpret_cast<std::uintptr_t>(raw[i]);
  }
  return count;
}

constexpr const char* kLibunwind = "libunwind.so.8";

// Longer than opening takes, shorter than is felt as a hang.
constexpr timespec kOpeningLimit{0, 200'000'000};
constinit std::atomic<std::uint32_t> g_is_opened{0};
constinit std::atomic<void*> g_library{nullptr};  // before g_is_opened

Backtrace find_backtrace() noexcept {
  runtime::LoadedImage image;
  if (!runtime::find_image_called(kLibunwind, &image)) return nullptr;
  return reinterpret_cast<Backtrace>(find_symbol(image, "unw_backtrace"));
}

void* open_libunwind(void*) noexcept {
  const runtime::ReentryGuard guard;
  g_library.store(dlopen(kLibunwind, RTLD_NOW | RTLD_LOCAL), std::memory_order_relaxed);
  // Release pairs with the acquire in start_libunwind().
  g_is_opened.store(1, std::memory_order_release);
  syscall(SYS_futex, &g_is_opened, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  return nullptr;
}

// By a thread of ours: this one may hold up a dlopen() of another thread, which has the loader's
// lock then. So the wait has an end, and if libunwind is not there by then, frame pointers are
// followed. That thread does not walk: what libunwind keeps for a thread that ends needs locks when
// a sanitizer has already left the thread.
void start_libunwind() noexcept {
  pthread_t thread;
  if (runtime::start_own_thread(&thread, open_libunwind) != 0) return;
  pthread_detach(thread);
  if (g_is_opened.load(std::memory_order_acquire) == 0) {
    syscall(SYS_futex, &g_is_opened, FUTEX_WAIT_PRIVATE, 0, &kOpeningLimit, nullptr, 0);
  }
  if (g_is_opened.load(std::memory_order_acquire) == 0) return;
  void* library = g_library.load(std::memory_order_relaxed);
  const Backtrace found = library != nullptr ? find_backtrace() : nullptr;
  if (found == nullptr) return;
  // The first walk makes libunwind's first allocations.
  guard_libunwind_pipe(library);
  void* addresses[kMostFrames];
  found(addresses, kMostFrames);
  find_libunwind_pipe();
  g_backtrace.store(found, std::memory_order_release);
}

}  // namespace

void start_stack_walk(bool allow_libunwind) noexcept {
  const int saved_errno = errno;
  if (allow_libunwind) start_libunwind();
  std::uintptr_t addresses[kMostFrames];
  walk_stack(__builtin_frame_address(0), addresses, kMostFrames);
  errno = saved_errno;
}

StackWalk stack_walk() noexcept {
  return g_backtrace.load(std::memory_order_relaxed) != nullptr ? StackWalk::kLibunwind
                                                                : StackWalk::kFramePointers;
}

std::size_t walk_stack(const void* frame, std::uintptr_t* addresses,
                       std::size_t capacity) noexcept {
  const int saved_errno = errno;
  // Acquire pairs with start_libunwind().
  const Backtrace backtrace = g_backtrace.load(std::memory_order_acquire);
  std::size_t count = 0;
  if (backtrace != nullptr && !is_libunwind_pipe_gone()) {
    count = ask_libunwind(backtrace, addresses, capacity);
  } else {
    if (backtrace != nullptr) stop_libunwind();
    count = follow_frame_pointers(frame, addresses, capacity);
  }
  errno = saved_errno;
  return count;
}

}  // namespace profiler
