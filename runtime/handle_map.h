// SPDX-License-Identifier: Apache-2.0
// What is known of handles: an open-addressing table for code that may not throw. Growth can fail
// and says so; removal allocates nothing. Owned by one structure and guarded by that structure's
// lock.
#pragma once

#include <cstdint>

#include "runtime/array.h"

namespace runtime {

template <typename Value>
class HandleMap {
 public:
  Value* find(const void* handle) noexcept {
    if (entries_.empty() || !is_handle(handle)) return nullptr;
    for (std::size_t place = place_of(handle);; place = next(place)) {
      Entry& entry = entries_[place];
      if (entry.handle == handle) return &entry.value;
      if (entry.handle == nullptr) return nullptr;
    }
  }

  // The entry of the handle, a new one if it has none. Null: the handle is null, or no memory.
  Value* find_or_add(const void* handle) noexcept {
    if (!is_handle(handle)) return nullptr;
    if (Value* known = find(handle)) return known;
    if ((used_ + 1) * 2 > entries_.size() && !rebuild()) return nullptr;
    ++used_;
    return insert(handle, Value{});
  }

  // Removes the entries for which `claim(handle, value)` holds.
  template <typename Claim>
  void remove_if(Claim claim) noexcept {
    for (Entry& entry : entries_) {
      if (is_taken(entry) && claim(entry.handle, entry.value)) entry.handle = removed();
    }
  }

  template <typename Claim>
  bool any(Claim claim) noexcept {
    for (Entry& entry : entries_) {
      if (is_taken(entry) && claim(entry.handle, entry.value)) return true;
    }
    return false;
  }

 private:
  struct Entry {
    const void* handle;  // null: never used
    Value value;
  };

  // No handle: an odd address.
  static const void* removed() noexcept { return reinterpret_cast<const void*>(1); }
  static bool is_handle(const void* handle) noexcept {
    return handle != nullptr && handle != removed();
  }
  static bool is_taken(const Entry& entry) noexcept { return is_handle(entry.handle); }
  std::size_t place_of(const void* handle) const noexcept {
    auto bits = reinterpret_cast<std::uintptr_t>(handle);
    return ((bits >> 4) * 0x9E3779B97F4A7C15ull >> 32) & (entries_.size() - 1);
  }
  std::size_t next(std::size_t place) const noexcept { return (place + 1) & (entries_.size() - 1); }

  Value* insert(const void* handle, const Value& value) noexcept {
    std::size_t place = place_of(handle);
    while (entries_[place].handle != nullptr) place = next(place);
    entries_[place] = {handle, value};
    return &entries_[place].value;
  }

  // Into a table that is at most a quarter full, without the entries that were removed.
  bool rebuild() noexcept {
    std::size_t taken = 0;
    for (const Entry& entry : entries_) taken += is_taken(entry) ? 1 : 0;
    std::size_t size = 64;
    while (size < (taken + 1) * 4) size *= 2;
    Array<Entry> old;
    old.swap(entries_);
    if (!entries_.resize(size)) {
      old.swap(entries_);
      return false;
    }
    used_ = taken;
    for (const Entry& entry : old) {
      if (is_taken(entry)) insert(entry.handle, entry.value);
    }
    return true;
  }

  Array<Entry> entries_;  // a power of two
  std::size_t used_ = 0;  // entries that are not null: those removed included
};

}  // namespace runtime
