// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/trace_json.h"

namespace cli {
namespace {

using profiler::JsonWriter;

void write_facts(const Trace& trace, JsonWriter* out) {
  const TraceFacts& facts = trace.facts;
  const std::pair<const char*, std::uint64_t> numbers[] = {
      {"pid", facts.pid},
      {"sample_hz", facts.sample_hz},
      {"ring_samples", facts.ring_samples},
      {"device_ring_launches", facts.device_ring_launches},
      {"samples_kept", facts.samples_kept},
      {"samples_dropped", facts.samples_dropped},
      {"launches_kept", facts.launches_kept},
      {"launches_dropped", facts.launches_dropped},
      {"launches_untimed", facts.launches_untimed},
      {"spans_kept", facts.spans_kept},
      {"spans_dropped", facts.spans_dropped},
      {"bytes_dropped", facts.bytes_dropped},
      {"own_cost_ns", facts.own_cost_ns},
  };
  out->begin_object("header");
  out->text("version", facts.version.c_str());
  out->text("command", facts.command.c_str());
  for (const auto& [name, value] : numbers) out->number(name, value);
  if (facts.python.empty()) {
    out->null("python");
  } else {
    out->begin_object("python");
    out->text("version", facts.python.c_str());
    out->boolean("is_read", facts.python_unread.empty());
    facts.python_unread.empty() ? out->null("why_not")
                                : out->text("why_not", facts.python_unread.c_str());
    out->end_object();
  }
  out->boolean("is_complete", facts.is_complete);
  out->end_object();
  out->begin_array("remarks");
  for (const std::string& remark : trace.remarks) out->text(nullptr, remark.c_str());
  out->end_array();
}

void write_kernels(const TraceSummary& summary, JsonWriter* out) {
  out->begin_array("kernels");
  for (const KernelSum& sum : summary.kernels) {
    out->begin_object();
    out->text("kernel", sum.name.c_str());
    out->number("launches", sum.count);
    out->number("total_ns", sum.total_ns);
    out->number("max_ns", sum.max_ns);
    out->number("gaps", sum.gaps);
    out->number("gap_ns", sum.gap_ns);
    sum.place.empty() ? out->null("place") : out->text("place", sum.place.c_str());
    out->number("place_launches", sum.place_count);
    out->end_object();
  }
  out->end_array();
}

void write_streams(const TraceSummary& summary, JsonWriter* out) {
  out->begin_array("streams");
  for (const StreamSum& sum : summary.streams) {
    out->begin_object();
    out->text("stream", sum.name.c_str());
    out->number("kernels", sum.count);
    out->number("span_ns", sum.span_ns);
    out->number("busy_ns", sum.busy_ns);
    out->number("idle_ns", sum.idle_ns());
    out->number("gaps", sum.gaps);
    out->number("max_gap_ns", sum.max_gap_ns);
    out->end_object();
  }
  out->end_array();
}

void write_blocked(const TraceSummary& summary, JsonWriter* out) {
  out->begin_array("blocked");
  for (const BlockedSum& sum : summary.blocked) {
    out->begin_object();
    out->text("entry", sum.entry.c_str());
    out->text("thread", sum.thread.c_str());
    out->number("calls", sum.count);
    out->number("total_ns", sum.total_ns);
    out->number("max_ns", sum.max_ns);
    out->end_object();
  }
  out->end_array();
}

void write_functions(const Trace& trace, const TraceSummary& summary, JsonWriter* out) {
  const auto ns = [&](std::uint64_t periods) {
    return static_cast<std::uint64_t>(cpu_ns(trace, periods));
  };
  out->begin_array("functions");
  for (const FunctionSum& sum : summary.functions) {
    out->begin_object();
    out->text("function", sum.name.c_str());
    out->text("module", sum.module.c_str());
    out->number("self_samples", sum.self);
    out->number("total_samples", sum.total);
    out->number("self_ns", ns(sum.self));
    out->number("total_ns", ns(sum.total));
    out->end_object();
  }
  out->end_array();
}

}  // namespace

void write_summary(const Trace& trace, const TraceSummary& summary, JsonWriter* out) {
  out->begin_object();
  out->text("schema", "cajeta-xpu.profile-summary");
  out->text("schema_version", "1.0.0");
  out->text("file", trace.file.c_str());
  write_facts(trace, out);
  out->number("wall_ns", summary.wall_ns);
  out->number("device_ns", summary.device_ns);
  out->number("blocked_ns", summary.blocked_ns);
  write_kernels(summary, out);
  write_streams(summary, out);
  write_blocked(summary, out);
  write_functions(trace, summary, out);
  out->end_object();
}

}  // namespace cli
