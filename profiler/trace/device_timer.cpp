// SPDX-License-Identifier: Apache-2.0
// One ring of slots per context. A slot goes from free to claimed (a launch call is in it) to
// recorded (both events are) to timed (its times are known) and back; its events are made once and
// serve every launch that comes to it. The mutex of a ring is held by whoever reads times or ends
// them, never on the way of a launch.
#include "profiler/trace/device_timer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <new>

#include "profiler/clock.h"
#include "profiler/python_places.h"
#include "profiler/stack_walk.h"
#include "profiler/trace/id_table.h"
#include "profiler/trace/kernel_names.h"
#include "runtime/driver_scope.h"
#include "runtime/float_scope.h"
#include "runtime/mutex.h"
#include "runtime/stream_map.h"

namespace profiler {

enum SlotState : std::uint32_t { kFree, kClaimed, kRecorded, kTimed };

struct TimedSlot {
  std::atomic<std::uint32_t> state;  // release of kRecorded pairs with the acquire of the reader
  CUevent before, behind;            // of the ring's context; null: not made yet
  std::uint32_t generation;          // of the ring, that the events belong to
  runtime::EntryId entry;
  std::uint32_t tid;
  std::uint32_t stream;  // index in the ring
  std::uint32_t depth;
  runtime::LaunchShape shape;
  std::uint64_t number;
  const char* kernel;
  std::uint64_t begin_ns, host_start_ns, host_end_ns;
  std::uint64_t device_start_ns, device_end_ns;
  const PythonPlace* python;
  std::uintptr_t addresses[kTraceDepth];
};

namespace {

// Rows of a context, for streams and for threads' default streams; found by hash, with so many
// tries. Launches on a stream that finds no row are not timed: a shared one would show false times.
constexpr std::size_t kMostStreams = 16384;
constexpr std::uint32_t kRowProbes = 64;
// Slots of streams that are not done stay taken: more tries pass them by, and cost every launch
// that finds the ring full.
constexpr std::uint32_t kClaimProbes = 16;
constexpr std::uint64_t kAnchorPeriodNs = 1'000'000'000;
// An anchor that takes longer is asked for again at the next look: it would say little.
constexpr std::uint64_t kAnchorPatienceNs = 2'000'000;
constexpr long kAnchorPauseNs = 20'000;
// The first is often interrupted; each costs the context an event record.
constexpr int kAnchorTries = 3;

const auto kPerThreadHandle = reinterpret_cast<CUstream>(0x2);  // CU_STREAM_PER_THREAD
const auto kLegacyHandle = reinterpret_cast<CUstream>(0x1);     // CU_STREAM_LEGACY

struct StreamRow {
  CUstream handle;
  std::uint32_t tid;                  // 0: not a per-thread stream
  std::atomic<std::uint32_t> number;  // 0: free; release of it publishes the others
};

// A moment on both clocks. Floats of milliseconds count from here: after an hour they would be off
// by a quarter of a millisecond, so it moves on.
struct Anchor {
  CUevent event = nullptr;
  std::uint64_t host_ns = 0;
  bool is_set = false;  // host_ns may be 0 where the clock is faked
};

struct Ring {
  const runtime::ContextState* context;
  Ring* next;  // written before the ring is published
  std::uint32_t number;
  std::uint32_t capacity;
  std::atomic<std::uint32_t> generation;  // moves on when the context may have ended
  runtime::Mutex mutex;                   // guards what follows, up to the streams
  CUstream own_stream;
  Anchor anchor;
  CUevent spare_anchor;

  runtime::Mutex stream_mutex;  // for adding
  StreamRow* streams;           // behind the slots

  std::atomic<std::uint32_t> next_slot;
  TimedSlot* slots;  // behind the ring
};

constinit std::atomic<Ring*> g_rings{nullptr};  // release pairs with the acquires of the readers
constinit runtime::Mutex g_mutex;               // guards adding rings
constinit std::atomic<std::uint32_t> g_capacity{0};  // launches of a ring; 0: off
constinit std::atomic<std::uint32_t> g_ring_count{0};
constinit std::atomic<std::uint32_t> g_stream_count{0};
constinit std::atomic<std::uint64_t> g_launches{0};
constinit std::atomic<std::uint64_t> g_dropped{0}, g_untimed{0}, g_own_ns{0}, g_outstanding{0};

// What a thread launched into last.
[[gnu::tls_model("initial-exec")]] constinit thread_local Ring* t_ring = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t t_tid = 0;

std::uint32_t own_tid() noexcept {
  if (t_tid == 0) t_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return t_tid;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

Ring* make_ring(const runtime::ContextState* context) noexcept {
  const std::uint32_t capacity = g_capacity.load(std::memory_order_relaxed);
  const std::size_t bytes =
      sizeof(Ring) + capacity * sizeof(TimedSlot) + kMostStreams * sizeof(StreamRow);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Zero pages are free slots without events.
  Ring* ring = new (memory) Ring{};
  ring->context = context;
  ring->capacity = capacity;
  ring->slots = reinterpret_cast<TimedSlot*>(ring + 1);
  ring->streams = reinterpret_cast<StreamRow*>(ring->slots + capacity);
  ring->number = g_ring_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return ring;
}

Ring* find_ring(const runtime::ContextState* context) noexcept {
  Ring* ring = g_rings.load(std::memory_order_acquire);
  while (ring != nullptr && ring->context != context) ring = ring->next;
  return ring;
}

Ring* ring_of(const runtime::ContextState* context) noexcept {
  if (t_ring != nullptr && t_ring->context == context) return t_ring;
  Ring* ring = find_ring(context);
  if (ring == nullptr) {
    const runtime::MutexGuard guard(g_mutex);
    ring = find_ring(context);
    if (ring == nullptr) {
      ring = make_ring(context);
      if (ring == nullptr) return nullptr;
      ring->next = g_rings.load(std::memory_order_relaxed);
      g_rings.store(ring, std::memory_order_release);
    }
  }
  return t_ring = ring;
}

// Oldest first; slots that no launch came to yet are left out, and their pages untouched.
template <typename Visit>
void for_each_used_slot(Ring& ring, Visit visit) noexcept {
  const std::uint32_t next = ring.next_slot.load(std::memory_order_relaxed);
  const std::uint32_t used = std::min(next, ring.capacity);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint32_t at = next <= ring.capacity ? i : (next + i) % ring.capacity;
    visit(ring.slots[at]);
  }
}

TimedSlot* claim_slot(Ring& ring) noexcept {
  for (std::uint32_t probe = 0; probe < kClaimProbes; ++probe) {
    const std::uint32_t at = ring.next_slot.fetch_add(1, std::memory_order_relaxed);
    TimedSlot& slot = ring.slots[at % ring.capacity];
    std::uint32_t expected = kFree;
    if (slot.state.compare_exchange_strong(expected, kClaimed, std::memory_order_acquire)) {
      return &slot;
    }
  }
  return nullptr;
}

void release_slot(TimedSlot& slot) noexcept {
  slot.state.store(kFree, std::memory_order_release);
}

struct FoundRow {
  std::uint32_t index;  // kMostStreams: none is left
  bool is_known;        // else it is free
};

FoundRow find_stream_row(const Ring& ring, CUstream handle, std::uint32_t tid) noexcept {
  const std::uint64_t hash = hash_next(reinterpret_cast<std::uintptr_t>(handle), tid);
  for (std::uint32_t probe = 0; probe < kRowProbes; ++probe) {
    const auto index = static_cast<std::uint32_t>((hash + probe) % kMostStreams);
    const StreamRow& row = ring.streams[index];
    if (row.number.load(std::memory_order_acquire) == 0) return {index, false};
    if (row.handle == handle && row.tid == tid) return {index, true};
  }
  return {kMostStreams, false};
}

// Handles are reused; a stream that got the handle of a dead one continues its track.
std::uint32_t stream_index(Ring& ring, const LaunchFacts& facts) noexcept {
  const bool is_per_thread =
      facts.stream == kPerThreadHandle || (facts.stream == nullptr && facts.is_per_thread);
  const bool is_default = is_per_thread || facts.stream == kLegacyHandle;
  const CUstream handle = is_default ? nullptr : facts.stream;
  const std::uint32_t tid = is_per_thread ? own_tid() : 0;
  FoundRow found = find_stream_row(ring, handle, tid);
  if (found.is_known || found.index == kMostStreams) return found.index;
  const runtime::MutexGuard guard(ring.stream_mutex);
  found = find_stream_row(ring, handle, tid);
  if (found.is_known || found.index == kMostStreams) return found.index;
  StreamRow& row = ring.streams[found.index];
  row.handle = handle;
  row.tid = tid;
  row.number.store(g_stream_count.fetch_add(1, std::memory_order_relaxed) + 1,
                   std::memory_order_release);
  return found.index;
}

bool make_events(const Ring& ring, TimedSlot& slot) noexcept {
  const std::uint32_t generation = ring.generation.load(std::memory_order_relaxed);
  if (slot.behind != nullptr && slot.generation == generation) [[likely]]
    return true;
  if (slot.generation != generation) slot.before = slot.behind = nullptr;  // gone with the context
  slot.generation = generation;
  // A bare program would not make these calls here: never inside its captures.
  const runtime::DriverScope scope(nullptr, true);
  for (CUevent* event : {&slot.before, &slot.behind}) {
    if (*event != nullptr) continue;
    if (runtime::real.cuEventCreate(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
      *event = nullptr;
      return false;
    }
  }
  return true;
}

CUresult record(CUevent event, CUstream stream, bool is_per_thread) noexcept {
  return is_per_thread ? runtime::real.cuEventRecord_ptsz(event, stream)
                       : runtime::real.cuEventRecord(event, stream);
}

// `context`: the current one. An event of it cannot be recorded on a stream of another.
bool is_untimed(const runtime::ContextState* context, const LaunchFacts& facts) noexcept {
  if (context == nullptr || context->captures.load(std::memory_order_relaxed) != 0 ||
      context->is_suspect.load(std::memory_order_relaxed)) {
    return true;
  }
  return runtime::find_stream(facts.stream, facts.is_per_thread).context != context;
}

void fill(Ring& ring, TimedSlot* slot, const LaunchFacts& facts) noexcept {
  slot->entry = facts.entry;
  slot->tid = own_tid();
  slot->stream = stream_index(ring, facts);
  slot->shape = facts.shape;
  slot->kernel = facts.function != nullptr ? kernel_name(facts.function) : "graph";
  slot->number = g_launches.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Waits a little for the event; `host_ns` is the middle of recording it and seeing it done.
bool record_anchor(Ring& ring, CUevent event, std::uint64_t* host_ns,
                   std::uint64_t* gap_ns) noexcept {
  const std::uint64_t start = monotonic_ns();
  if (runtime::real.cuEventRecord(event, ring.own_stream) != CUDA_SUCCESS) return false;
  // Counted too: the clock may stand still.
  for (std::uint64_t waited = 0;; waited += kAnchorPauseNs) {
    const CUresult result = runtime::real.cuEventQuery(event);
    const std::uint64_t now = monotonic_ns();
    if (result == CUDA_SUCCESS) {
      *gap_ns = now - start;
      *host_ns = start + *gap_ns / 2;
      return true;
    }
    if (result != CUDA_ERROR_NOT_READY || now - start > kAnchorPatienceNs) return false;
    if (waited > kAnchorPatienceNs) return false;
    const timespec pause{0, kAnchorPauseNs};
    nanosleep(&pause, nullptr);
  }
}

bool make_anchor_objects(Ring& ring) noexcept {
  if (ring.own_stream == nullptr &&
      runtime::real.cuStreamCreate(&ring.own_stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    ring.own_stream = nullptr;
  }
  for (CUevent* event : {&ring.anchor.event, &ring.spare_anchor}) {
    if (*event == nullptr && runtime::real.cuEventCreate(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
      *event = nullptr;
    }
  }
  return ring.own_stream != nullptr && ring.anchor.event != nullptr && ring.spare_anchor != nullptr;
}

// With the mutex held and the context current. The tightest of a few.
void move_anchor(Ring& ring) noexcept {
  if (!make_anchor_objects(ring)) return;
  std::uint64_t least_gap = UINT64_MAX;
  for (int attempt = 0; attempt < kAnchorTries; ++attempt) {
    std::uint64_t host_ns = 0, gap_ns = 0;
    if (!record_anchor(ring, ring.spare_anchor, &host_ns, &gap_ns)) return;
    if (gap_ns >= least_gap) continue;
    least_gap = gap_ns;
    std::swap(ring.anchor.event, ring.spare_anchor);
    ring.anchor.host_ns = host_ns;
    ring.anchor.is_set = true;
  }
}

bool time_on_host(const Anchor& anchor, CUevent event, std::uint64_t* ns) noexcept {
  float milliseconds = 0;
  if (runtime::real.cuEventElapsedTime(&milliseconds, anchor.event, event) != CUDA_SUCCESS) {
    return false;
  }
  const runtime::DefaultFloats scope;
  const double at = static_cast<double>(anchor.host_ns) + static_cast<double>(milliseconds) * 1e6;
  *ns = at > 0 ? static_cast<std::uint64_t>(at) : 0;
  return true;
}

enum class Reading { kNotReady, kTimed, kFailed };

// With the mutex held and the context current.
Reading read_times(const Ring& ring, TimedSlot* slot) noexcept {
  const CUresult done = runtime::real.cuEventQuery(slot->behind);
  if (done == CUDA_ERROR_NOT_READY) return Reading::kNotReady;
  if (done != CUDA_SUCCESS) return Reading::kFailed;
  if (!ring.anchor.is_set) return Reading::kNotReady;
  if (!time_on_host(ring.anchor, slot->before, &slot->device_start_ns) ||
      !time_on_host(ring.anchor, slot->behind, &slot->device_end_ns)) {
    return Reading::kFailed;
  }
  // No kernel starts before its launch call; the first event may well be done by then.
  slot->device_start_ns = std::max(slot->device_start_ns, slot->host_start_ns);
  slot->device_end_ns = std::max(slot->device_end_ns, slot->device_start_ns);
  return Reading::kTimed;
}

// Reads the times of recorded slots, oldest first. A stream whose work is not done is not asked
// again: what comes later on it is not done either.
void read_ring(Ring& ring) noexcept {
  const runtime::DriverScope scope(ring.context, true);
  if (!ring.anchor.is_set || monotonic_ns() - ring.anchor.host_ns > kAnchorPeriodNs) {
    move_anchor(ring);
  }
  std::bitset<kMostStreams> is_waiting;
  for_each_used_slot(ring, [&](TimedSlot& slot) {
    if (slot.state.load(std::memory_order_acquire) != kRecorded) return;
    if (is_waiting[slot.stream]) return;
    const Reading reading = read_times(ring, &slot);
    if (reading == Reading::kNotReady) is_waiting[slot.stream] = true;
    if (reading == Reading::kTimed) slot.state.store(kTimed, std::memory_order_relaxed);
    if (reading == Reading::kFailed) {
      add(g_untimed, 1);
      g_outstanding.fetch_sub(1, std::memory_order_relaxed);
      release_slot(slot);
    }
  });
}

bool has_recorded(Ring& ring) noexcept {
  bool found = false;
  for_each_used_slot(ring, [&](const TimedSlot& slot) {
    found |= slot.state.load(std::memory_order_relaxed) == kRecorded;
  });
  return found;
}

TimedLaunch launch_of(const Ring& ring, const TimedSlot& slot) noexcept {
  TimedLaunch launch{};
  launch.entry = slot.entry;
  launch.tid = slot.tid;
  launch.host_start_ns = slot.host_start_ns;
  launch.host_end_ns = slot.host_end_ns;
  launch.device_start_ns = slot.device_start_ns;
  launch.device_end_ns = slot.device_end_ns;
  launch.kernel = slot.kernel;
  std::copy_n(slot.shape.grid, 3, launch.grid);
  std::copy_n(slot.shape.block, 3, launch.block);
  launch.shared_bytes = slot.shape.shared_bytes;
  const StreamRow& stream = ring.streams[slot.stream];
  launch.stream = {stream.number, ring.number, reinterpret_cast<std::uintptr_t>(stream.handle),
                   stream.tid != 0};
  launch.stack = {slot.addresses, slot.depth, slot.python};
  launch.number = slot.number;
  return launch;
}

// True when no launch call is in the slot, which is then ours.
bool take_slot(TimedSlot& slot) noexcept {
  std::uint32_t state = kFree;
  if (slot.state.compare_exchange_strong(state, kClaimed, std::memory_order_acquire)) return true;
  if (state != kRecorded) return false;
  add(g_untimed, 1);
  g_outstanding.fetch_sub(1, std::memory_order_relaxed);
  slot.state.store(kClaimed, std::memory_order_relaxed);
  return true;
}

void destroy_event(CUevent* event) noexcept {
  if (*event != nullptr) runtime::real.cuEventDestroy_v2(*event);
  *event = nullptr;
}

// With the mutex held. What another thread is just launching keeps its events: if the context does
// end, they go with it, and the generation tells.
void destroy_objects(Ring& ring) noexcept {
  const runtime::DriverScope scope(ring.context, true);
  for_each_used_slot(ring, [](TimedSlot& slot) {
    const bool is_timed = slot.state.load(std::memory_order_acquire) == kTimed;
    if (!is_timed && !take_slot(slot)) return;
    destroy_event(&slot.before);
    destroy_event(&slot.behind);
    if (!is_timed) release_slot(slot);
  });
  ring.generation.fetch_add(1, std::memory_order_relaxed);
  destroy_event(&ring.anchor.event);
  destroy_event(&ring.spare_anchor);
  ring.anchor.is_set = false;
  if (ring.own_stream != nullptr) runtime::real.cuStreamDestroy_v2(ring.own_stream);
  ring.own_stream = nullptr;
}

}  // namespace

void start_device_times(std::uint32_t launches) noexcept {
  g_capacity.store(launches, std::memory_order_relaxed);
}

bool times_launches() noexcept {
  return g_capacity.load(std::memory_order_relaxed) != 0;
}

TimedSlot* begin_device_time(const LaunchFacts& facts) noexcept {
  const std::uint64_t begin_ns = monotonic_ns();
  const int saved_errno = errno;
  const runtime::ContextState* context = runtime::current_context();
  Ring* ring = is_untimed(context, facts) ? nullptr : ring_of(context);
  TimedSlot* slot = ring != nullptr ? claim_slot(*ring) : nullptr;
  if (slot == nullptr) {
    add(ring != nullptr ? g_dropped : g_untimed, 1);
    errno = saved_errno;
    return nullptr;
  }
  fill(*ring, slot, facts);
  CUresult recorded = CUDA_ERROR_UNKNOWN;
  if (slot->stream != kMostStreams && make_events(*ring, *slot)) {
    const runtime::DriverScope scope(nullptr);
    recorded = record(slot->before, facts.stream, facts.is_per_thread);
  }
  errno = saved_errno;
  if (recorded != CUDA_SUCCESS) {
    add(g_untimed, 1);
    release_slot(*slot);
    return nullptr;
  }
  slot->begin_ns = begin_ns;
  slot->host_start_ns = monotonic_ns();
  return slot;
}

void end_device_time(TimedSlot* slot, const LaunchFacts& facts, CUresult result) noexcept {
  slot->host_end_ns = monotonic_ns();
  const int saved_errno = errno;
  CUresult recorded = result;
  if (result == CUDA_SUCCESS) {
    const runtime::DriverScope scope(nullptr);
    recorded = record(slot->behind, facts.stream, facts.is_per_thread);
  }
  if (recorded == CUDA_SUCCESS) {
    slot->depth = static_cast<std::uint32_t>(
        walk_stack(__builtin_frame_address(0), slot->addresses, kTraceDepth));
    slot->python = python_place_of(find_python_call());
    const std::uint64_t own = monotonic_ns() - slot->begin_ns;
    add(g_own_ns, own - std::min(own, slot->host_end_ns - slot->host_start_ns));
    g_outstanding.fetch_add(1, std::memory_order_relaxed);
    slot->state.store(kRecorded, std::memory_order_release);
  } else {
    if (result == CUDA_SUCCESS) add(g_untimed, 1);
    release_slot(*slot);
  }
  errno = saved_errno;
}

void count_untimed_launches(std::uint64_t launches) noexcept {
  add(g_untimed, launches);
}

void drain_device_times(void (*take)(void* context, const TimedLaunch& launch),
                        void* context) noexcept {
  Ring* ring = g_rings.load(std::memory_order_acquire);
  for (; ring != nullptr; ring = ring->next) {
    const runtime::MutexGuard guard(ring->mutex);
    if (has_recorded(*ring)) read_ring(*ring);
    for_each_used_slot(*ring, [&](TimedSlot& slot) {
      if (slot.state.load(std::memory_order_acquire) != kTimed) return;
      take(context, launch_of(*ring, slot));
      g_outstanding.fetch_sub(1, std::memory_order_relaxed);
      release_slot(slot);
    });
  }
}

void end_device_times(const runtime::ContextState& context) noexcept {
  forget_kernel_names();
  Ring* ring = find_ring(&context);
  if (ring == nullptr) return;
  const int saved_errno = errno;
  {
    const runtime::MutexGuard guard(ring->mutex);
    if (has_recorded(*ring)) read_ring(*ring);
    destroy_objects(*ring);
  }
  errno = saved_errno;
}

DeviceCounts device_counts() noexcept {
  return {g_dropped.load(std::memory_order_relaxed), g_untimed.load(std::memory_order_relaxed),
          g_own_ns.load(std::memory_order_relaxed)};
}

std::uint64_t outstanding_launches() noexcept {
  return g_outstanding.load(std::memory_order_relaxed);
}

}  // namespace profiler
