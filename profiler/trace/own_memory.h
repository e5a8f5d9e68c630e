// SPDX-License-Identifier: Apache-2.0
// Reads this process's own memory through the kernel, so that an address that is none costs a
// failed copy and not the process. Any thread, signal handlers included; errno may change.
#pragma once

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace profiler {

// Of this process; getpid() is a system call. Written by start_own_memory().
inline constinit std::atomic<pid_t> g_own_pid{0};
inline void start_own_memory() noexcept {
  g_own_pid.store(getpid(), std::memory_order_relaxed);
}

// False once a thread of the program has a filter of system calls, which may punish this one: for
// those that run on the program's threads.
inline constinit std::atomic<bool> g_may_copy{true};

// Bytes copied: fewer than asked for where readable memory ends, 0 where the kernel forbids it.
// syscall() because a sanitizer would look into the libc function.
inline std::size_t copy_own_memory(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
  const iovec local{to, bytes};
  const iovec remote{reinterpret_cast<void*>(from), bytes};
  const long known = g_own_pid.load(std::memory_order_relaxed);
  const long pid = known != 0 ? known : getpid();
  const long copied = syscall(SYS_process_vm_readv, pid, &local, 1L, &remote, 1L, 0L);
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

// memcpy() belongs to a sanitizer's runtime where there is one, which a handler must not enter.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == sizeof(std::uintptr_t)) {
    __builtin_memcpy(to, from, sizeof(std::uintptr_t));
    return;
  }
#if defined(__x86_64__)
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  auto* out = static_cast<volatile unsigned char*>(to);
  const auto* in = static_cast<const volatile unsigned char*>(from);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = in[i];
#endif
}

}  // namespace profiler
