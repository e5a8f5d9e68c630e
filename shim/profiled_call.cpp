// SPDX-License-Identifier: Apache-2.0
// The end of a timed call: what is the same for every entry.
#include "shim/profiled_call.h"

#include <algorithm>

#include "profiler/call_site.h"
#include "profiler/report_writer.h"
#include "profiler/trace/device_timer.h"
#include "profiler/trace/span_rings.h"

namespace shim {
namespace {

// The kind that decides about the sites of an entry; kCount for those that do not observe the
// device: the report's tables are to add up.
struct KindTable {
  runtime::CallKind kinds[runtime::kEntryCount];
};
constexpr KindTable make_kinds() {
  KindTable table{};
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    const runtime::EntryRow& row = runtime::kEntryTable[i];
    table.kinds[i] =
        profiler::observes_device(row) ? runtime::kind_of(row) : runtime::CallKind::kCount;
  }
  return table;
}
constexpr KindTable kKinds = make_kinds();

[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t t_calls = 0;

// Now and then, what recording took since the call ended.
void sample_own_cost(std::uint64_t end_ticks) noexcept {
  if (++t_calls % profiler::kOwnCostEvery != 0) [[likely]]
    return;
  const std::uint64_t ns = profiler::ns_between(end_ticks, profiler::now_ticks());
  profiler::CallStats::record(profiler::kOwnCostStat, ns, {});
}

// What synchronises waits by its name. Of copies and allocations those that are only put into a
// stream return at once, unless they copy memory that the device does not reach by itself
// (cuda-driver-api, API synchronization behavior).
bool may_wait(EntryId id, const CallFacts& facts) noexcept {
  const runtime::CallKind kind = kKinds.kinds[static_cast<std::size_t>(id)];
  if (kind == runtime::CallKind::kSync) return true;
  if (kind != runtime::CallKind::kCopy && kind != runtime::CallKind::kAlloc) return false;
  return row(id).entry_class != EntryClass::kStreamOrdered || facts.host == HostSide::kPageable;
}

// The device profiler draws graph launches itself.
bool is_drawn_elsewhere(EntryId id) noexcept {
  const bool is_graph_launch = id == EntryId::cuGraphLaunch || id == EntryId::cuGraphLaunch_ptsz;
  return is_graph_launch && profiler::times_launches();
}

[[gnu::cold]] void note_span(EntryId id, std::uint64_t ns, const CallFacts& facts) noexcept {
  if (is_drawn_elsewhere(id)) return;
  profiler::note_span({id, ns, facts.bytes, may_wait(id, facts)});
}

}  // namespace

void finish_launch(const CallStart& start, bool is_always_direct, CUresult result) noexcept {
  const std::uint64_t end_ticks = profiler::now_ticks();
  std::uint64_t ns = profiler::ns_between(start.ticks, end_ticks);
  // What it submitted of others is recorded where it was submitted.
  ns -= std::min(ns, profiler::t_submissions.ns - start.submissions.ns);
  const bool is_direct =
      is_always_direct || runtime::t_thread.direct_launches != start.direct_launches;
  CallFacts facts;
  facts.failed = result != CUDA_SUCCESS;
  profiler::CallStats::record(
      profiler::stat_of(is_direct ? profiler::LaunchKind::kDirect : profiler::LaunchKind::kQueued),
      ns, facts);
}

void finish_call(EntryId id, const CallStart& start, CUresult result, CallFacts facts,
                 const void* frame) noexcept {
  const std::uint64_t end_ticks = profiler::now_ticks();
  const std::uint64_t ns = profiler::ns_between(start.ticks, end_ticks);
  facts.flushed = profiler::t_submissions.count != start.submissions.count;
  facts.submit_ns = profiler::t_submissions.ns - start.submissions.ns;
  facts.not_ready = result == CUDA_ERROR_NOT_READY;
  facts.failed = result != CUDA_SUCCESS && !facts.not_ready;
  profiler::CallStats::record(profiler::stat_of(id), ns, facts);
  if (profiler::wants_site(kKinds.kinds[static_cast<std::size_t>(id)], ns)) {
    profiler::keep_site(id, frame, ns, facts);
  }
  if (ns >= profiler::kShortestSpanNs && profiler::g_keeps_spans.load(std::memory_order_relaxed))
      [[unlikely]] {
    note_span(id, ns, facts);
  }
  sample_own_cost(end_ticks);
}

}  // namespace shim
