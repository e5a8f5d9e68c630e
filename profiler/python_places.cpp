// SPDX-License-Identifier: Apache-2.0
// Two tables with open addressing, as in site_table: from calls to places, and the places by what
// they say, since code that is compiled again and again has new calls at the old lines. Who meets a
// slot that another thread has claimed and not finished goes on to the next, so that a place may be
// there twice.
#include "profiler/python_places.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace profiler {
namespace {

enum State : std::uint8_t { kEmpty, kClaimed, kReady };

// Twice as many slots as places, so that probes stay few. Calls that find no slot are read each
// time.
constexpr std::size_t kMaxPlaces = 4096;
constexpr std::size_t kSlots = 2 * kMaxPlaces;
constexpr std::size_t kProbes = 64;
constexpr std::size_t kPoolBytes = 1u << 20;

// The release of kReady pairs with the acquire of every reader.
struct CallSlot {
  std::atomic<std::uint8_t> state;
  PythonCall call;
  const PythonPlace* place;
};
struct PlaceSlot {
  std::atomic<std::uint8_t> state;
  PythonPlace place;
};

constinit CallSlot g_calls[kSlots]{};
constinit PlaceSlot g_places[kSlots]{};
char g_pool[kPoolBytes];
constinit std::atomic<std::size_t> g_place_count{0}, g_pool_used{0};
constinit std::atomic<bool> g_is_full{false};

// FNV-1a.
std::uint64_t hash_of(const char* text, std::uint64_t hash) noexcept {
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  return hash;
}

bool claim(std::atomic<std::uint8_t>* state) noexcept {
  std::uint8_t expected = kEmpty;
  return state->compare_exchange_strong(expected, kClaimed, std::memory_order_acquire);
}

const char* keep_text(const char* text) noexcept {
  const std::size_t bytes = std::strlen(text) + 1;
  const std::size_t at = g_pool_used.fetch_add(bytes, std::memory_order_relaxed);
  if (at > kPoolBytes - bytes) {
    g_pool_used.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  std::memcpy(g_pool + at, text, bytes);
  return g_pool + at;
}

bool fill(const PythonText& text, std::size_t slot, PythonPlace* place) noexcept {
  if (g_place_count.fetch_add(1, std::memory_order_relaxed) >= kMaxPlaces) return false;
  const char* file = keep_text(text.file);
  const char* function = keep_text(text.function);
  *place = {file, function, text.line, static_cast<std::uint32_t>(slot) + 1};
  return file != nullptr && function != nullptr;
}

const PythonPlace* find_or_add_place(const PythonText& text) noexcept {
  std::uint64_t hash = hash_of(text.function, hash_of(text.file, 0xcbf29ce484222325));
  hash = (hash ^ static_cast<std::uint64_t>(text.line)) * 0x9E3779B97F4A7C15u;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const std::size_t at = ((hash >> 32) + probe) % kSlots;
    PlaceSlot& slot = g_places[at];
    const std::uint8_t state = slot.state.load(std::memory_order_acquire);
    if (state == kReady && slot.place.line == text.line &&
        std::strcmp(slot.place.function, text.function) == 0 &&
        std::strcmp(slot.place.file, text.file) == 0) {
      return &slot.place;
    }
    if (state != kEmpty || g_is_full.load(std::memory_order_relaxed)) continue;
    if (!claim(&slot.state)) continue;
    if (fill(text, at, &slot.place)) {
      slot.state.store(kReady, std::memory_order_release);
      return &slot.place;
    }
    break;  // the slot stays claimed: nothing is added any more
  }
  g_is_full.store(true, std::memory_order_relaxed);
  return nullptr;
}

const PythonPlace* read_place(const PythonCall& call) noexcept {
  const int saved_errno = errno;
  PythonText text;
  const PythonPlace* place = read_python_text(call, &text) ? find_or_add_place(text) : nullptr;
  errno = saved_errno;
  return place;
}

}  // namespace

const PythonPlace* python_place_of(const PythonCall& call) noexcept {
  if (call.code == 0) return nullptr;
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  const std::uint64_t hash = (call.identity ^ call.code ^ call.instruction) * kPrime;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    CallSlot& slot = g_calls[((hash >> 32) + probe) % kSlots];
    const std::uint8_t state = slot.state.load(std::memory_order_acquire);
    if (state == kReady && slot.call == call) return slot.place;
    if (state != kEmpty || !claim(&slot.state)) continue;
    slot.call = call;
    slot.place = read_place(call);
    slot.state.store(kReady, std::memory_order_release);
    return slot.place;
  }
  return read_place(call);
}

bool python_places_are_full() noexcept {
  return g_is_full.load(std::memory_order_relaxed);
}

}  // namespace profiler
