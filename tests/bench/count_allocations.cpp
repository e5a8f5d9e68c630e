// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations of the calling thread, the preload library's and the driver's included:
// the program's malloc stands before glibc's. Other threads (softgpu's progress, the deadline) do
// not count: they are not the launch. glibc only, and not for sanitizer builds, which bring their
// own malloc.
#include "tests/bench/count_allocations.h"

#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
constinit thread_local std::uint64_t t_allocations = 0;
void count() {
  ++t_allocations;
}
}  // namespace

std::uint64_t bench::allocations() {
  return t_allocations;
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
