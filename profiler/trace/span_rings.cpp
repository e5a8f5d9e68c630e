// SPDX-License-Identifier: Apache-2.0
// Blocks are never freed: that of an ended thread goes to the next new one, with what is still in
// it.
#include "profiler/trace/span_rings.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "profiler/clock.h"

namespace profiler {

constinit std::atomic<bool> g_keeps_spans{false};

namespace {

// Of a thread between two looks: 40,000 a second, in 100 KiB a thread. A power of two.
constexpr std::uint32_t kSpans = 2048;

struct SpanRing {
  SpanRing* next = nullptr;  // written before the ring is published
  std::atomic<bool> is_owned{true};
  std::uint32_t tid = 0;  // of the owner
  // Written by the owner, release; read by the drain, acquire. And the other way round.
  std::atomic<std::uint32_t> written{0}, read{0};
  HostSpan spans[kSpans];
};

constinit std::atomic<SpanRing*> g_rings{nullptr};
constinit std::atomic<std::uint64_t> g_dropped{0};
constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;
[[gnu::tls_model("initial-exec")]] constinit thread_local SpanRing* t_ring = nullptr;

void give_up_ring(void* ring) noexcept {
  t_ring = nullptr;  // a later destructor of this thread may call the driver again
  static_cast<SpanRing*>(ring)->is_owned.store(false, std::memory_order_release);
}

void make_key() noexcept {
  g_has_key = pthread_key_create(&g_key, give_up_ring) == 0;
}

SpanRing* take_unowned() noexcept {
  SpanRing* ring = g_rings.load(std::memory_order_acquire);
  for (; ring != nullptr; ring = ring->next) {
    bool owned = false;
    if (ring->is_owned.compare_exchange_strong(owned, true, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
      return ring;
    }
  }
  return nullptr;
}

SpanRing* add_ring() noexcept {
  auto* ring = new (std::nothrow) SpanRing;
  if (ring == nullptr) return nullptr;
  ring->next = g_rings.load(std::memory_order_relaxed);
  while (!g_rings.compare_exchange_weak(ring->next, ring, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  return ring;
}

[[gnu::noinline]] SpanRing* attach_thread() noexcept {
  pthread_once(&g_key_once, make_key);
  SpanRing* ring = take_unowned();
  if (ring == nullptr) ring = add_ring();
  if (ring == nullptr) return nullptr;
  ring->tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  // Without a key the ring stays with its thread for ever: nothing lost but reuse.
  if (g_has_key) pthread_setspecific(g_key, ring);
  return t_ring = ring;
}

}  // namespace

void note_span(const SpanFacts& facts) noexcept {
  const int saved_errno = errno;
  SpanRing* ring = t_ring != nullptr ? t_ring : attach_thread();
  errno = saved_errno;
  const std::uint32_t at = ring != nullptr ? ring->written.load(std::memory_order_relaxed) : 0;
  if (ring == nullptr || at - ring->read.load(std::memory_order_acquire) == kSpans) {
    g_dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t end_ns = monotonic_ns();
  ring->spans[at % kSpans] = {facts.entry, ring->tid,   end_ns - facts.ns,
                              end_ns,      facts.bytes, facts.is_blocked};
  ring->written.store(at + 1, std::memory_order_release);
}

void drain_spans(void (*take)(void* context, const HostSpan& span), void* context) noexcept {
  SpanRing* ring = g_rings.load(std::memory_order_acquire);
  for (; ring != nullptr; ring = ring->next) {
    const std::uint32_t written = ring->written.load(std::memory_order_acquire);
    std::uint32_t at = ring->read.load(std::memory_order_relaxed);
    for (; at != written; ++at) take(context, ring->spans[at % kSpans]);
    ring->read.store(at, std::memory_order_release);
  }
}

std::uint64_t dropped_spans() noexcept {
  return g_dropped.load(std::memory_order_relaxed);
}

}  // namespace profiler
