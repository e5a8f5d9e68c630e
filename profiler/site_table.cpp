// SPDX-License-Identifier: Apache-2.0
// Open addressing. A slot goes from empty to claimed to ready and stays. Who meets a slot that
// another thread has claimed and not finished goes on to the next: at worst a stack has two slots,
// which the report adds up.
#include "profiler/site_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "profiler/module_list.h"
#include "profiler/python_places.h"

namespace profiler {
namespace {

enum State : std::uint8_t { kEmpty, kClaimed, kReady };

// 64 probes: a table that is nearly full should cost a new stack its place, not every call time.
constexpr std::size_t kProbes = 64;

struct Slot {
  std::atomic<std::uint8_t> state;  // release of kReady pairs with the acquire of every reader
  Site site;
};

constinit std::atomic<Slot*> g_slots{nullptr};
constinit std::atomic<std::uint64_t> g_dropped{0};

std::uint64_t hash_of(runtime::EntryId entry, const Stack& stack) noexcept {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::uint64_t hash = (static_cast<std::uint64_t>(entry) + 1) * kPrime;
  hash ^= stack.python.identity + stack.python.code + stack.python.instruction;
  for (std::size_t i = 0; i < stack.depth; ++i) {
    hash = (hash ^ stack.addresses[i]) * kPrime;
    hash ^= hash >> 29;
  }
  return hash;
}

bool is_same(const Site& site, std::uint64_t hash, runtime::EntryId entry,
             const Stack& stack) noexcept {
  return site.hash == hash && site.entry == entry && site.depth == stack.depth &&
         site.python_call == stack.python &&
         std::equal(stack.addresses, stack.addresses + stack.depth, site.addresses);
}

void fill(Site* site, std::uint64_t hash, runtime::EntryId entry, const Stack& stack) noexcept {
  site->hash = hash;
  site->entry = entry;
  site->depth = static_cast<std::uint32_t>(stack.depth);
  std::copy_n(stack.addresses, stack.depth, site->addresses);
  const int saved_errno = errno;
  find_modules(stack.addresses, site->modules, stack.depth);
  site->python_call = stack.python;
  site->python = python_place_of(stack.python);
  look_for_late_python();  // in time for the next call
  errno = saved_errno;
}

Site* find_or_add(runtime::EntryId entry, const Stack& stack) noexcept {
  Slot* slots = g_slots.load(std::memory_order_acquire);
  if (slots == nullptr) return nullptr;
  const std::uint64_t hash = hash_of(entry, stack);
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots[(hash + probe) % kMaxSites];
    std::uint8_t state = slot.state.load(std::memory_order_acquire);
    if (state == kReady && is_same(slot.site, hash, entry, stack)) return &slot.site;
    if (state != kEmpty) continue;
    if (!slot.state.compare_exchange_strong(state, kClaimed, std::memory_order_acquire)) continue;
    fill(&slot.site, hash, entry, stack);
    slot.state.store(kReady, std::memory_order_release);
    return &slot.site;
  }
  return nullptr;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
  if (amount != 0) counter.fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace

bool start_sites() noexcept {
  void* memory = mmap(nullptr, kMaxSites * sizeof(Slot), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_slots.store(static_cast<Slot*>(memory), std::memory_order_release);  // zero is a fresh table
  return true;
}

void record_site(runtime::EntryId entry, const Stack& stack, std::uint64_t ns,
                 const CallFacts& facts) noexcept {
  Site* site = find_or_add(entry, stack);
  if (site == nullptr) return add(g_dropped, 1);
  add(site->calls, 1);
  add(site->total_ns, ns);
  add(site->flushed, facts.flushed ? 1 : 0);
  add(site->failed, facts.failed ? 1 : 0);
  add(site->not_ready, facts.not_ready ? 1 : 0);
  add(site->bytes, facts.bytes);
  add(site->pageable_calls, facts.host == HostSide::kPageable ? 1 : 0);
  std::uint64_t max = site->max_ns.load(std::memory_order_relaxed);
  while (ns > max && !site->max_ns.compare_exchange_weak(max, ns, std::memory_order_relaxed)) {
  }
}

const Site* site_at(std::size_t slot) noexcept {
  Slot* slots = g_slots.load(std::memory_order_acquire);
  if (slots == nullptr || slot >= kMaxSites) return nullptr;
  return slots[slot].state.load(std::memory_order_acquire) == kReady ? &slots[slot].site : nullptr;
}

std::uint64_t dropped_site_calls() noexcept {
  return g_dropped.load(std::memory_order_relaxed);
}

}  // namespace profiler
