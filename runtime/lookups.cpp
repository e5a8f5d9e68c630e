// SPDX-License-Identifier: Apache-2.0
#include "runtime/lookups.h"

#include <atomic>
#include <cstring>

#include "runtime/mutants.h"
#include "runtime/mutex.h"

namespace runtime {
namespace {

// Sets of 4 ways, 4096 entries, 64 KiB of static memory: a large application has a few thousand
// kernels; one with more submits its queue for some of them.
constexpr std::size_t kSets = 1024;
constexpr std::size_t kWays = 4;

// Names are compared by 64 bits: two that share them cost a submission that comes with the
// deadline, not a wrong answer.
struct Entry {
  std::atomic<std::uint64_t> key{0};  // 0: free
  const void* owner = nullptr;        // guarded by g_mutex
};

constinit Entry g_sets[kSets][kWays]{};
constinit Mutex g_mutex;  // guards writing
constinit std::size_t g_next_way = 0;

// What a key is about.
enum class Kind : std::uint64_t { kName = 1, kFunction, kLibrary, kQuestion };

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
  return hash ^ (hash >> 32);
}

std::uint64_t key_of(Kind kind, const void* first, const void* second) noexcept {
  std::uint64_t key =
      mix(static_cast<std::uint64_t>(kind), reinterpret_cast<std::uintptr_t>(first));
  key = mix(key, reinterpret_cast<std::uintptr_t>(second));
  return key | 1;
}

// Mangled names are long, and some clients ask ahead of each launch: eight bytes at a time.
std::uint64_t hash_name(std::uint64_t hash, const char* name) noexcept {
  std::size_t left = std::strlen(name);
  hash = mix(hash, left);
  for (; left >= 8; left -= 8, name += 8) {
    std::uint64_t word;
    std::memcpy(&word, name, 8);
    hash = mix(hash, word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, name, left);
  return mix(hash, rest);
}

template <typename Claim>
void forget_if(Claim claim) noexcept {
  const MutexGuard guard(g_mutex);
  for (auto& set : g_sets) {
    for (Entry& entry : set) {
      if (claim(entry)) entry.key.store(0, std::memory_order_relaxed);
    }
  }
}

Entry* set_of(std::uint64_t key) noexcept {
  return g_sets[(key >> 32) % kSets];
}

}  // namespace

Lookup Lookup::of_name(CUmodule module, const char* name) noexcept {
  return {module, hash_name(key_of(Kind::kName, module, nullptr), name) | 1};
}
Lookup Lookup::of_function(CUkernel kernel, CUlibrary library,
                           const ContextState* context) noexcept {
  return {library, key_of(Kind::kFunction, kernel, context)};
}
Lookup Lookup::of_library(CUlibrary library, const ContextState* context) noexcept {
  return {library, key_of(Kind::kLibrary, library, context)};
}
Lookup Lookup::of_question(CUfunction function, const ContextState* context) noexcept {
  return {nullptr, key_of(Kind::kQuestion, function, context)};
}

// Relaxed: the key carries no other data, and a late view costs a submission.
bool Lookup::is_known() const noexcept {
  const Entry* set = set_of(key_);
  for (std::size_t way = 0; way < kWays; ++way) {
    if (set[way].key.load(std::memory_order_relaxed) == key_) return true;
  }
  return false;
}

void Lookup::remember() const noexcept {
  const MutexGuard guard(g_mutex);
  if (is_known()) return;
  Entry* set = set_of(key_);
  std::size_t way = 0;
  while (way < kWays && set[way].key.load(std::memory_order_relaxed) != 0) ++way;
  if (way == kWays) way = g_next_way++ % kWays;
  set[way].owner = owner_;
  set[way].key.store(key_, std::memory_order_relaxed);
}

void forget_lookups_of(const void* owner) noexcept {
  if (is_mutant(Mutant::kLookupKept)) return;
  // Whose module a question was about is not known.
  forget_if([owner](const Entry& entry) { return entry.owner == owner || entry.owner == nullptr; });
}

void forget_all_lookups() noexcept {
  if (is_mutant(Mutant::kLookupKept)) return;
  forget_if([](const Entry&) { return true; });
}

}  // namespace runtime
