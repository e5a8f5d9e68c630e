// SPDX-License-Identifier: Apache-2.0
// Sections of the JSON report, in the order of the schema.
#include "profiler/json_report.h"

#include <cmath>
#include <cstring>

#include "profiler/site_report.h"
#include "runtime/call_kind.h"

namespace profiler {
namespace {

void write_process(const ReportInput& input, JsonWriter* out) noexcept {
  out->begin_object("process");
  out->number("pid", static_cast<std::uint64_t>(input.pid));
  out->text("host", input.host);
  out->text("executable", input.executable);
  out->text("command", input.command);
  out->text("rank", input.rank);
  out->text("rank_source", input.rank_source);
  out->number("wall_ns", static_cast<std::uint64_t>(input.wall_ns));
  out->number("estimated_cost_ns", static_cast<std::uint64_t>(estimate_own_ns(input)));
  out->begin_object("settings");
  for (std::size_t i = 0; i < input.setting_count; ++i) {
    const char* equals = std::strchr(input.setting_list[i], '=');
    char name[64];
    const auto length = static_cast<std::size_t>(equals - input.setting_list[i]);
    if (length >= sizeof name) continue;
    std::memcpy(name, input.setting_list[i], length);
    name[length] = '\0';
    out->text(name, equals + 1);
  }
  out->end_object();
  out->end_object();
}

// Pairs of bucket number and count, without the empty ones.
void write_histogram(const CallTotals& totals, JsonWriter* out) noexcept {
  out->begin_array("histogram");
  for (std::size_t bucket = 0; bucket < kBucketCount; ++bucket) {
    if (totals.buckets[bucket] == 0) continue;
    out->begin_array();
    out->number(nullptr, bucket);
    out->number(nullptr, totals.buckets[bucket]);
    out->end_array();
  }
  out->end_array();
}

void write_times(const CallTotals& totals, JsonWriter* out) noexcept {
  out->number("total_ns", totals.total_ns);
  out->number("min_ns", totals.calls > 0 ? totals.min_ns : 0);
  out->number("median_ns", totals.quantile_ns(0.5));
  out->number("p99_ns", totals.quantile_ns(0.99));
  out->number("max_ns", totals.max_ns);
  write_histogram(totals, out);
}

void write_launch_kind(const char* key, const CallTotals& totals, JsonWriter* out) noexcept {
  out->begin_object(key);
  out->number("calls", totals.calls);
  out->number("failed", totals.failed);
  write_times(totals, out);
  out->end_object();
}

void write_batches(const char* key, const CallTotals& totals, JsonWriter* out) noexcept {
  out->begin_object(key);
  out->number("submissions", totals.calls);
  out->number("launches", totals.amount);
  write_times(totals, out);
  out->end_object();
}

void write_saving(const ReportInput& input, JsonWriter* out) noexcept {
  const Saving saving = estimate_saving(input);
  if (!saving.has_price || input.counters->queued == 0) return out->null("saving");
  out->begin_object("saving");
  out->number("price_ns", static_cast<std::uint64_t>(saving.price_ns));
  out->signed_number("saved_ns", std::llround(saving.saved_ns));
  out->end_object();
}

void write_graphs(const runtime::CounterSnapshot& counters, JsonWriter* out) noexcept {
  out->begin_object("graphs");
  out->number("built", counters.graphs_built);
  out->number("launched", counters.graph_launches);
  out->number("nodes_patched", counters.patches);
  out->number("evicted", counters.graphs_evicted);
  out->number("held_bytes", counters.graph_bytes);
  out->end_object();
}

void write_direct_reasons(const runtime::CounterSnapshot& counters, JsonWriter* out) noexcept {
  out->begin_array("one_by_one_reasons");
  for (std::size_t i = 0; i < static_cast<std::size_t>(runtime::DirectReason::kCount); ++i) {
    if (counters.direct_by_reason[i] == 0) continue;
    out->begin_object();
    out->text("reason", runtime::name(static_cast<runtime::DirectReason>(i)));
    out->number("launches", counters.direct_by_reason[i]);
    out->end_object();
  }
  out->end_array();
}

void write_launches(const ReportInput& input, JsonWriter* out) noexcept {
  const runtime::CounterSnapshot& counters = *input.counters;
  const auto of = [&input](LaunchKind kind) -> const CallTotals& {
    return input.launches[static_cast<std::size_t>(kind)];
  };
  out->begin_object("launches");
  out->number("total", counters.replayed + counters.direct + counters.pending);
  out->number("queued", counters.queued);
  out->number("replayed", counters.replayed);
  out->number("sent_one_by_one", counters.direct);
  out->number("pending", counters.pending);
  write_launch_kind("queueing_calls", of(LaunchKind::kQueued), out);
  write_launch_kind("direct_calls", of(LaunchKind::kDirect), out);
  write_batches("replayed_batches", of(LaunchKind::kReplayed), out);
  write_batches("one_by_one_batches", of(LaunchKind::kOneByOne), out);
  write_saving(input, out);
  write_graphs(counters, out);
  write_direct_reasons(counters, out);
  out->end_object();
}

void write_flushes(const runtime::CounterSnapshot& counters, JsonWriter* out) noexcept {
  out->begin_object("flushes");
  out->number("total", counters.flushes);
  out->begin_array("by_entry");
  for (std::size_t i = 0; i < runtime::kEntryCount; ++i) {
    if (counters.flushes_by_entry[i] == 0) continue;
    out->begin_object();
    out->text("entry", runtime::kEntryTable[i].symbol);
    out->number("flushes", counters.flushes_by_entry[i]);
    out->end_object();
  }
  out->end_array();
  out->begin_array("by_reason");
  for (std::size_t i = 0; i < static_cast<std::size_t>(runtime::FlushReason::kCount); ++i) {
    if (counters.flushes_by_reason[i] == 0) continue;
    out->begin_object();
    out->text("reason", runtime::name(static_cast<runtime::FlushReason>(i)));
    out->number("flushes", counters.flushes_by_reason[i]);
    out->end_object();
  }
  out->end_array();
  out->end_object();
}

void write_entry(const EntryLine& line, JsonWriter* out) noexcept {
  const CallTotals& totals = *line.totals;
  out->begin_object();
  out->text("entry", runtime::row(line.entry).symbol);
  out->text("kind", runtime::name(runtime::kind_of(runtime::row(line.entry))));
  out->number("calls", totals.calls);
  out->number("flushed", totals.flushed);
  out->number("failed", totals.failed);
  out->number("not_ready", totals.not_ready);
  out->number("submit_ns", totals.submit_ns);
  out->number("bytes", totals.amount);
  out->number("pageable_calls", totals.pageable);
  out->number("page_locked_calls", totals.locked);
  out->number("unknown_host_calls", totals.unknown);
  write_times(totals, out);
  out->end_object();
}

void write_unknown(const ReportInput& input, JsonWriter* out) noexcept {
  out->begin_array("unknown_entries");
  for (std::size_t i = 0; i < input.unknown_count; ++i) {
    out->begin_object();
    out->text("entry", input.unknown[i].name);
    out->number("calls", input.unknown[i].calls);
    out->end_object();
  }
  out->end_array();
}

}  // namespace

void write_json_report(const ReportInput& input, JsonWriter* out) noexcept {
  out->begin_object();
  out->text("schema", "cajeta-xpu.report");
  out->text("schema_version", kSchemaVersion);
  out->text("tool_version", input.version);
  out->text("written_at", input.moment);
  write_process(input, out);
  write_launches(input, out);
  write_flushes(*input.counters, out);
  out->begin_array("entries");
  for (std::size_t i = 0; i < input.entry_count; ++i) write_entry(input.entries[i], out);
  out->end_array();
  write_json_sites(input.reads_symbols, out);
  write_unknown(input, out);
  out->number("lost_calls", input.lost_calls);
  out->end_object();
}

}  // namespace profiler
