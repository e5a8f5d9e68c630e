// SPDX-License-Identifier: Apache-2.0
// The driver lock, the error that unwinds an entry, and handle tables. Every driver object is
// reached through its table: a handle is a number, never a pointer, so a foreign or dead handle is
// found out and never dereferenced. All state is leaked at exit on purpose: other threads may still
// be inside the driver then.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace softgpu {

// Thrown by any helper below an entry; the entry returns `code` (driver/entry.h).
struct DriverError {
  CUresult code;
};
[[noreturn]] inline void fail(CUresult code) {
  throw DriverError{code};
}
inline void check(CUresult code) {
  if (code != CUDA_SUCCESS) fail(code);
}

// One lock for all driver state. Held by the body of every entry; dropped while operations run and
// while a host thread waits. Not recursive.
std::mutex& driver_mutex();
class DriverLock {
 public:
  DriverLock() : guard_(driver_mutex()) {}

 private:
  std::lock_guard<std::mutex> guard_;
};

enum class HandleKind : std::uint64_t {
  kContext = 1,
  kStream,
  kEvent,
  kPool,
  kModule,
  kLibrary,
  kFunction,  // and kernels
  kLink,
  kGraph,
  kGraphNode,
  kGraphExec,
  kUserObject,
  kGreenContext,
  kResourceDescriptor,
  kArray,
};

// Handles of one kind. A slot is reused as soon as its object is gone, last in first out, as a real
// driver's heap does: whoever caches by handle must notice. Driver lock held.
template <class T, class Handle, HandleKind kKind>
class ObjectTable {
 public:
  Handle add(std::shared_ptr<T> object) {
    std::size_t index = slots_.size();
    if (free_.empty()) {
      slots_.push_back(std::move(object));
    } else {
      index = free_.back();
      free_.pop_back();
      slots_[index] = std::move(object);
    }
    return reinterpret_cast<Handle>(kBase + (index << kShift));
  }
  // Null: not a live handle of this kind. The pointer is good while the driver lock is held.
  T* find(const void* handle) const {
    const std::size_t index = index_of(handle);
    return index < slots_.size() ? slots_[index].get() : nullptr;
  }
  T* find(Handle handle) const { return find(static_cast<const void*>(handle)); }
  std::shared_ptr<T> find_shared(Handle handle) const {
    const std::size_t index = index_of(handle);
    return index < slots_.size() ? slots_[index] : nullptr;
  }
  // As find, but a dead handle is an error of the caller's entry.
  T& get(Handle handle) const {
    T* object = find(handle);
    if (object == nullptr) fail(CUDA_ERROR_INVALID_HANDLE);
    return *object;
  }
  // Null: was not live.
  std::shared_ptr<T> remove(Handle handle) {
    const std::size_t index = index_of(handle);
    if (index >= slots_.size() || slots_[index] == nullptr) return nullptr;
    free_.push_back(index);
    return std::exchange(slots_[index], nullptr);
  }
  // Live objects in slot order.
  std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> live;
    for (const auto& slot : slots_) {
      if (slot != nullptr) live.push_back(slot);
    }
    return live;
  }

 private:
  // Far from any mapping, so that a client that dereferences a handle faults.
  static constexpr std::uint64_t kShift = 6;
  static constexpr std::uint64_t kBase =
      0x0000'0c00'0000'0000ull + (static_cast<std::uint64_t>(kKind) << 34) + (1ull << kShift);

  static std::size_t index_of(const void* handle) {
    const std::uint64_t offset =
        reinterpret_cast<std::uint64_t>(handle) - kBase;  // wraps: too large
    if ((offset & ((1ull << kShift) - 1)) != 0) return ~std::size_t{0};
    return static_cast<std::size_t>(offset >> kShift);
  }

  std::vector<std::shared_ptr<T>> slots_;
  std::vector<std::size_t> free_;
};

// cuInit has succeeded in this process (not in a parent it was forked from).
bool is_initialized();

}  // namespace softgpu
