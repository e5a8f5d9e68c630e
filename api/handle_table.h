// SPDX-License-Identifier: Apache-2.0
// Objects behind opaque handles. A handle is a number of kind, place and life, never an address, so
// a stale or foreign one is found out and nothing is dereferenced. Objects stay where they are and
// are reused, never freed. Looking up takes no lock and allocates nothing; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "runtime/mutex.h"

namespace api {

template <typename Object, typename Handle, unsigned kKind>
class HandleTable {
  static_assert(sizeof(Handle) == 8 && kKind < 16);

 public:
  // A new object that nobody finds yet; null when out of memory. Then publish() or recycle().
  Object* reserve(Handle* handle) noexcept {
    runtime::MutexGuard guard(mutex_);
    std::uint32_t place = free_;
    if (place != kNone) {
      free_ = at(place)->next_free;
    } else if (!grow(&place)) {
      return nullptr;
    }
    Slot* slot = at(place);
    *handle = encode(place, slot->life.load(std::memory_order_relaxed) + 1);
    return &slot->object;
  }
  // Release pairs with the acquire in find().
  void publish(Handle handle) noexcept {
    at(place_of(handle))->life.store(life_of(handle), std::memory_order_release);
  }
  // Ends the handle. One caller gets the object, and may recycle() it; later ones get null.
  Object* retire(Handle handle) noexcept {
    Slot* slot = slot_of(handle);
    std::uint32_t life = life_of(handle);
    if (slot == nullptr || !slot->life.compare_exchange_strong(life, life + 1)) return nullptr;
    return &slot->object;
  }
  void recycle(Handle handle) noexcept {
    Slot* slot = at(place_of(handle));
    std::uint32_t life = life_of(handle) + 1;
    slot->life.store(life, std::memory_order_relaxed);
    if (life >= UINT32_MAX - 1) return;  // a handle never comes back
    runtime::MutexGuard guard(mutex_);
    slot->next_free = free_;
    free_ = place_of(handle);
  }

  Object* find(Handle handle) const noexcept {
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->life.load(std::memory_order_acquire) != life_of(handle)) {
      return nullptr;
    }
    return &slot->object;
  }
  // The handle was an object of this table once.
  bool is_ended(Handle handle) const noexcept {
    Slot* slot = slot_of(handle);
    return slot != nullptr && slot->life.load(std::memory_order_acquire) > life_of(handle);
  }
  // Calls `visit(object, handle)` for each that is alive.
  template <typename Visit>
  void for_each(Visit visit) const noexcept {
    std::uint32_t end = count_.load(std::memory_order_acquire);
    for (std::uint32_t place = 0; place < end; ++place) {
      Slot* slot = at(place);
      std::uint32_t life = slot->life.load(std::memory_order_acquire);
      if (life % 2 == 1) visit(slot->object, encode(place, life));
    }
  }

 private:
  static constexpr std::uint32_t kChunk = 256;
  static constexpr std::uint32_t kChunks = 4096;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Slot {
    std::atomic<std::uint32_t> life{0};  // odd: alive
    std::uint32_t next_free = kNone;     // mutex_
    Object object;
  };

  // 32 bits of life, 20 of place, 4 of kind, and a low byte that keeps 0 and small numbers out.
  static Handle encode(std::uint32_t place, std::uint32_t life) noexcept {
    return reinterpret_cast<Handle>(std::uint64_t{life} << 28 | std::uint64_t{place} << 8 |
                                    kKind << 4 | 0xC);
  }
  static std::uint64_t bits(Handle handle) noexcept {
    return reinterpret_cast<std::uint64_t>(handle);
  }
  static std::uint32_t life_of(Handle handle) noexcept {
    return static_cast<std::uint32_t>(bits(handle) >> 28);
  }
  static std::uint32_t place_of(Handle handle) noexcept {
    return static_cast<std::uint32_t>(bits(handle) >> 8) & (kChunk * kChunks - 1);
  }
  Slot* at(std::uint32_t place) const noexcept {
    return chunks_[place / kChunk].load(std::memory_order_acquire) + place % kChunk;
  }
  Slot* slot_of(Handle handle) const noexcept {
    bool is_ours = (bits(handle) & 0xFF) == (kKind << 4 | 0xC) && bits(handle) >> 60 == 0;
    if (!is_ours || life_of(handle) % 2 != 1) return nullptr;
    std::uint32_t place = place_of(handle);
    return place < count_.load(std::memory_order_acquire) ? at(place) : nullptr;
  }
  bool grow(std::uint32_t* place) noexcept {
    std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == kChunk * kChunks) return false;
    if (count % kChunk == 0) {
      auto* chunk = new (std::nothrow) Slot[kChunk];
      if (chunk == nullptr) return false;
      chunks_[count / kChunk].store(chunk, std::memory_order_release);
    }
    *place = count;
    count_.store(count + 1, std::memory_order_release);
    return true;
  }

  runtime::Mutex mutex_;
  std::uint32_t free_ = kNone;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<Slot*> chunks_[kChunks] = {};
};

}  // namespace api
