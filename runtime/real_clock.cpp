// SPDX-License-Identifier: Apache-2.0
#include "runtime/real_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/loaded_image.h"

namespace runtime {
namespace {

int read_by_system_call(clockid_t clock, timespec* time) noexcept {
  const int saved_errno = errno;
  const long result = syscall(SYS_clock_gettime, clock, time);
  errno = saved_errno;
  return static_cast<int>(result);
}

// The vDSO, by whatever name it goes here.
ClockReader find_reader() noexcept {
  LoadedImage image;
  for (const char* name : {"__vdso_clock_gettime", "__kernel_clock_gettime"}) {
    void* const found = find_first_symbol(name, &image);
    // A vDSO has no file.
    if (found != nullptr && image.path[0] != '/') return reinterpret_cast<ClockReader>(found);
  }
  return read_by_system_call;
}

int read_first(clockid_t clock, timespec* time) noexcept {
  const ClockReader reader = find_reader();
  g_clock_reader.store(reader, std::memory_order_relaxed);
  return reader(clock, time);
}

}  // namespace

constinit std::atomic<ClockReader> g_clock_reader{read_first};

}  // namespace runtime
