// SPDX-License-Identifier: Apache-2.0
// Arrays of fixed size in memory of their own: zeros until they are written, and no page is taken
// before that. No malloc.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

namespace profiler {

template <typename T, std::size_t kSize>
class MappedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  // False: out of memory.
  [[nodiscard]] bool map() noexcept {
    void* memory = mmap(nullptr, sizeof(T) * kSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    items_ = static_cast<T*>(memory);
    return true;
  }
  void unmap() noexcept {
    if (items_ != nullptr) munmap(items_, sizeof(T) * kSize);
    items_ = nullptr;
  }

  static constexpr std::size_t size() noexcept { return kSize; }
  T* data() noexcept { return items_; }
  T& operator[](std::size_t index) noexcept { return items_[index]; }
  const T& operator[](std::size_t index) const noexcept { return items_[index]; }

 private:
  T* items_ = nullptr;
};

}  // namespace profiler
