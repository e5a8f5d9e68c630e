// SPDX-License-Identifier: Apache-2.0
// Prologue and epilogue of a call. The slow parts run only when counters, a cost profile, random
// order, faults or an older driver ask for them.

#include "tools/softgpu/driver/entry.h"

#include <chrono>
#include <mutex>
#include <new>

#include "tools/softgpu/driver/absent.h"
#include "tools/softgpu/driver/costs.h"
#include "tools/softgpu/driver/counters.h"
#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/faults.h"
#include "tools/softgpu/driver/host_function.h"
#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/trace.h"

namespace softgpu {

namespace {

struct Watchers {
  bool counters = false;
  bool costs = false;
  bool progress = false;
  bool faults = false;
  bool absent = false;
  bool misuse = false;
  bool trace = false;  // waits are traced by the name of their entry

  bool any() const { return counters || costs || progress || faults || absent || misuse || trace; }
};

thread_local std::uint64_t t_node_cost_ns = 0;
thread_local std::optional<EntryId> t_entry;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

const Watchers& watchers() {
  static const Watchers* const chosen = [] {
    auto* const watchers = new Watchers();
    watchers->counters = start_counters();
    watchers->costs = options().costs != CostProfile::kNone;
    watchers->progress = options().order == Order::kRandom;
    watchers->faults = !options().faults.empty();
    watchers->absent = has_absent_entries();
    watchers->misuse = watchers->counters || options().misuse != MisusePolicy::kIgnore;
    watchers->trace = is_tracing();  // opens the file, so that a client without operations has one
    Call::watched.store(watchers->any(), std::memory_order_relaxed);
    return watchers;
  }();
  return *chosen;
}

}  // namespace

std::atomic<bool> Call::watched{true};

void Call::begin(EntryId id) {
  const Watchers& watch = watchers();
  if (!watch.any()) return;
  is_watched_ = true;
  id_ = id;
  t_entry = id;
  if (watch.counters) count_call(id);
  if (watch.absent && is_absent(id)) {
    verdict_ = CUDA_ERROR_NOT_FOUND;
    return;
  }
  if (watch.faults) verdict_ = next_fault(id);
  if (verdict_ != CUDA_SUCCESS) return;
  if (watch.progress && is_initialized() && !is_in_host_function()) {
    DriverLock lock;
    Engine::get().make_random_progress();
  }
  if (watch.costs) {
    t_node_cost_ns = 0;
    start_ns_ = now_ns();
  }
}

void Call::end() {
  const std::uint64_t until =
      start_ns_ == 0 ? 0 : start_ns_ + cost_of(id_).call_ns + t_node_cost_ns;
  while (now_ns() < until) {
  }
  t_entry.reset();
}

void Call::note_result(CUresult code) const {
  if (watchers().misuse) note_failure(code);
}

std::optional<EntryId> Call::current() {
  return t_entry;
}

void charge_nodes(std::size_t nodes) {
  if (!Call::watched.load(std::memory_order_relaxed) || !watchers().costs) return;
  t_node_cost_ns += static_cast<std::uint64_t>(static_cast<double>(nodes) *
                                               cost_of(t_entry.value_or(EntryId{})).node_ns);
}

CUresult Call::refusal() {
  if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (is_in_host_function()) {
    note_misuse(Misuse::kHostFunction);
    return CUDA_ERROR_NOT_PERMITTED;
  }
  return CUDA_SUCCESS;
}

CUresult result_of_exception() noexcept {
  try {
    throw;
  } catch (const DriverError& error) {
    return error.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace softgpu

// What a stub of entry_stubs.cpp does: `index` is its row.
extern "C" __attribute__((visibility("hidden"))) int softgpu_not_implemented(
    unsigned index) noexcept {
  using namespace softgpu;
  static std::atomic<bool> is_reported[kEntryCount];
  Call prologue(static_cast<EntryId>(index));
  if (prologue.verdict() != CUDA_SUCCESS) return prologue.verdict();
  if (!is_reported[index].exchange(true)) {
    say("%s is not implemented", kEntryTable[index].symbol);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
