// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations of the whole process, the preload library's and the driver's included:
// the program's malloc stands before glibc's. Any thread; glibc only, and not for sanitizer builds,
// which bring their own malloc.
#include "tests/bench/count_allocations.h"

#include <atomic>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
// Relaxed: a number read after the counted calls on the same thread.
constinit std::atomic<std::uint64_t> g_allocations{0};
void count() {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

std::uint64_t bench::allocations() {
  return g_allocations.load(std::memory_order_relaxed);
}

#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t size) {
  count();
  return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
  count();
  return __libc_calloc(number, size);
}

void* realloc(void* block, std::size_t size) {
  count();
  return __libc_realloc(block, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  count();
  *block = __libc_memalign(alignment, size);
  return *block != nullptr ? 0 : 12;  // ENOMEM
}

}  // extern "C"
#pragma GCC visibility pop
