// SPDX-License-Identifier: Apache-2.0
#include "runtime/unknown_entries.h"

#include <atomic>
#include <cstdio>

namespace runtime {

namespace {

struct Slot {
  // Published last, with release: a reader that sees it sees the name.
  std::atomic<void*> address{nullptr};
  std::atomic<std::uint64_t> calls{0};
  char name[80] = {};
  bool is_tame = false;
};

constinit Slot g_slots[kMaxUnknownEntries];
// May run past the pool when it is used up.
constinit std::atomic<std::size_t> g_taken{0};

std::size_t taken_slots() noexcept {
  const std::size_t taken = g_taken.load(std::memory_order_acquire);
  return taken < kMaxUnknownEntries ? taken : kMaxUnknownEntries;
}

}  // namespace

std::size_t unknown_entry_slot(void* address, const char* name, bool is_tame) noexcept {
  const std::size_t taken = taken_slots();
  for (std::size_t slot = 0; slot < taken; ++slot) {
    if (g_slots[slot].address.load(std::memory_order_acquire) == address) return slot;
  }
  if (taken == kMaxUnknownEntries) return kMaxUnknownEntries;
  // Two threads may take a slot each for one address: harmless, the report lists it twice.
  const std::size_t slot = g_taken.fetch_add(1, std::memory_order_acq_rel);
  if (slot >= kMaxUnknownEntries) return kMaxUnknownEntries;
  std::snprintf(g_slots[slot].name, sizeof g_slots[slot].name, "%s", name);
  g_slots[slot].is_tame = is_tame;
  g_slots[slot].address.store(address, std::memory_order_release);
  return slot;
}

bool is_tame_entry(std::size_t slot) noexcept {
  return g_slots[slot].address.load(std::memory_order_acquire) != nullptr && g_slots[slot].is_tame;
}

void* count_unknown_call(std::size_t slot) noexcept {
  g_slots[slot].calls.fetch_add(1, std::memory_order_relaxed);
  return g_slots[slot].address.load(std::memory_order_acquire);
}

bool unknown_entry_at(std::size_t slot, UnknownEntry* entry) noexcept {
  if (slot >= taken_slots()) return false;
  const bool is_published = g_slots[slot].address.load(std::memory_order_acquire) != nullptr;
  entry->name = is_published ? g_slots[slot].name : "";
  entry->calls = g_slots[slot].calls.load(std::memory_order_relaxed);
  return true;
}

}  // namespace runtime
