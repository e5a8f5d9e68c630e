// SPDX-License-Identifier: Apache-2.0
// Sections of the JSON report, in the order of the schema; profiler/json_report.cpp has the same
// from the counters of a running process.
#include "tools/cli/report_json.h"

#include "profiler/json_report.h"

namespace cli {
namespace {

using profiler::JsonWriter;

void text(const char* key, const std::string& value, JsonWriter* out) {
  out->text(key, value.c_str());
}
void text_or_null(const char* key, const std::optional<std::string>& value, JsonWriter* out) {
  value ? out->text(key, value->c_str()) : out->null(key);
}
void number_or_null(const char* key, const std::optional<std::uint64_t>& value, JsonWriter* out) {
  value ? out->number(key, *value) : out->null(key);
}

void write_counted(const char* key, const std::vector<Counted>& list, const char* name,
                   const char* count, JsonWriter* out) {
  out->begin_array(key);
  for (const Counted& item : list) {
    out->begin_object();
    text(name, item.name, out);
    out->number(count, item.count);
    out->end_object();
  }
  out->end_array();
}

void write_process(const Process& process, JsonWriter* out) {
  out->begin_object("process");
  out->number("pid", process.pid);
  text("host", process.host, out);
  text("executable", process.executable, out);
  text("command", process.command, out);
  text("rank", process.rank, out);
  text("rank_source", process.rank_source, out);
  out->number("wall_ns", process.wall_ns);
  out->number("estimated_cost_ns", process.estimated_cost_ns);
  out->begin_object("settings");
  for (const auto& [name, value] : process.settings) text(name.c_str(), value, out);
  out->end_object();
  out->end_object();
}

void write_parts(const std::vector<Part>& parts, JsonWriter* out) {
  if (parts.empty()) return;
  out->begin_array("merged_from");
  for (const Part& part : parts) {
    out->begin_object();
    out->number("pid", part.pid);
    text("host", part.host, out);
    text("executable", part.executable, out);
    text("rank", part.rank, out);
    out->number("wall_ns", part.wall_ns);
    out->number("blocked_ns", part.blocked_ns);
    out->end_object();
  }
  out->end_array();
}

void write_times(const CallTotals& totals, JsonWriter* out) {
  out->number("total_ns", totals.total_ns);
  out->number("min_ns", totals.calls > 0 ? totals.min_ns : 0);
  out->number("median_ns", totals.quantile_ns(0.5));
  out->number("p99_ns", totals.quantile_ns(0.99));
  out->number("max_ns", totals.max_ns);
  out->begin_array("histogram");
  for (std::size_t bucket = 0; bucket < profiler::kBucketCount; ++bucket) {
    if (totals.buckets[bucket] == 0) continue;
    out->begin_array();
    out->number(nullptr, bucket);
    out->number(nullptr, totals.buckets[bucket]);
    out->end_array();
  }
  out->end_array();
}

void write_calls(const char* key, const CallTotals& totals, JsonWriter* out) {
  out->begin_object(key);
  out->number("calls", totals.calls);
  out->number("failed", totals.failed);
  write_times(totals, out);
  out->end_object();
}

void write_batches(const char* key, const CallTotals& totals, JsonWriter* out) {
  out->begin_object(key);
  out->number("submissions", totals.calls);
  out->number("launches", totals.amount);
  write_times(totals, out);
  out->end_object();
}

void write_launches(const Launches& launches, JsonWriter* out) {
  out->begin_object("launches");
  out->number("total", launches.total());
  out->number("queued", launches.queued);
  out->number("replayed", launches.replayed);
  out->number("sent_one_by_one", launches.sent_one_by_one);
  out->number("pending", launches.pending);
  write_calls("queueing_calls", launches.queueing_calls, out);
  write_calls("direct_calls", launches.direct_calls, out);
  write_batches("replayed_batches", launches.replayed_batches, out);
  write_batches("one_by_one_batches", launches.one_by_one_batches, out);
  if (const std::optional<Saving> saving = saving_of(launches)) {
    out->begin_object("saving");
    out->number("price_ns", saving->price_ns);
    out->signed_number("saved_ns", saving->saved_ns);
    out->end_object();
  } else {
    out->null("saving");
  }
  out->begin_object("graphs");
  out->number("built", launches.graphs_built);
  out->number("launched", launches.graphs_launched);
  out->number("nodes_patched", launches.nodes_patched);
  out->number("evicted", launches.graphs_evicted);
  out->number("held_bytes", launches.held_bytes);
  out->end_object();
  write_counted("one_by_one_reasons", launches.one_by_one_reasons, "reason", "launches", out);
  out->end_object();
}

void write_entry(const Entry& entry, JsonWriter* out) {
  out->begin_object();
  text("entry", entry.name, out);
  text("kind", entry.kind, out);
  out->number("calls", entry.totals.calls);
  out->number("flushed", entry.totals.flushed);
  out->number("failed", entry.totals.failed);
  out->number("not_ready", entry.totals.not_ready);
  out->number("submit_ns", entry.totals.submit_ns);
  out->number("bytes", entry.totals.amount);
  out->number("pageable_calls", entry.totals.pageable);
  out->number("page_locked_calls", entry.totals.locked);
  out->number("unknown_host_calls", entry.totals.unknown);
  write_times(entry.totals, out);
  out->end_object();
}

void write_frame(const Frame& frame, JsonWriter* out) {
  out->begin_object();
  frame.module ? out->number("module", *frame.module) : out->null("module");
  out->number("offset", frame.offset);
  text_or_null("function", frame.function, out);
  text_or_null("file", frame.file, out);
  number_or_null("line", frame.line, out);
  out->boolean("inlined", frame.is_inlined);
  out->end_object();
}

void write_python_place(const std::optional<PythonPlace>& python, JsonWriter* out) {
  if (!python) return out->null("python");
  out->begin_object("python");
  text("file", python->file, out);
  number_or_null("line", python->line, out);
  text("function", python->function, out);
  out->end_object();
}

void write_python(const std::optional<Python>& python, JsonWriter* out) {
  if (!python) return out->null("python");
  out->begin_object("python");
  text("version", python->version, out);
  out->boolean("is_read", python->is_read);
  text_or_null("why_not", python->why_not, out);
  out->end_object();
}

void write_site(const Site& site, std::size_t id, JsonWriter* out) {
  out->begin_object();
  out->number("id", id);
  text("entry", site.entry, out);
  text("kind", site.kind, out);
  out->number("calls", site.calls);
  out->number("total_ns", site.total_ns);
  out->number("max_ns", site.max_ns);
  out->number("flushed", site.flushed);
  out->number("failed", site.failed);
  out->number("not_ready", site.not_ready);
  out->number("bytes", site.bytes);
  out->number("pageable_calls", site.pageable_calls);
  text("place", site.place, out);
  text_or_null("through", site.through, out);
  write_python_place(site.python, out);
  out->begin_array("frames");
  for (const Frame& frame : site.frames) write_frame(frame, out);
  out->end_array();
  out->end_object();
}

void write_sites(const std::optional<Sites>& sites, JsonWriter* out) {
  if (!sites) return out->null("sites");
  out->begin_object("sites");
  text("walk", sites->walk, out);
  out->boolean("has_symbols", sites->has_symbols);
  out->begin_object("thresholds_ns");
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    number_or_null(kKinds[i], sites->thresholds_ns[i], out);
  }
  out->end_object();
  out->number("dropped_calls", sites->dropped_calls);
  write_python(sites->python, out);
  out->begin_array("modules");
  for (const Module& module : sites->modules) {
    out->begin_object();
    text("path", module.path, out);
    text("build_id", module.build_id, out);
    out->boolean("unloaded", module.is_unloaded);
    out->end_object();
  }
  out->end_array();
  out->begin_array("list");
  std::size_t id = 0;
  for (const Site& site : sites->list) write_site(site, ++id, out);
  out->end_array();
  out->end_object();
}

}  // namespace

void write_report(const Report& report, JsonWriter* out) {
  out->begin_object();
  out->text("schema", kSchemaName);
  out->text("schema_version", profiler::kSchemaVersion);
  text("tool_version", report.tool_version, out);
  text("written_at", report.written_at, out);
  write_process(report.process, out);
  write_parts(report.parts, out);
  write_launches(report.launches, out);
  out->begin_object("flushes");
  out->number("total", report.flushes);
  write_counted("by_entry", report.flushes_by_entry, "entry", "flushes", out);
  write_counted("by_reason", report.flushes_by_reason, "reason", "flushes", out);
  out->end_object();
  out->begin_array("entries");
  for (const Entry& entry : report.entries) write_entry(entry, out);
  out->end_array();
  write_sites(report.sites, out);
  write_counted("unknown_entries", report.unknown_entries, "entry", "calls", out);
  out->number("lost_calls", report.lost_calls);
  out->end_object();
}

}  // namespace cli
