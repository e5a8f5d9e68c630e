// SPDX-License-Identifier: Apache-2.0
// The summary of a trace as a page of tables, and as comma-separated values.
#include <algorithm>

#include "tools/cli/csv_output.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_summary.h"

namespace cli {
namespace {

constexpr std::size_t kRows = 20;

std::string share(std::uint64_t part, std::uint64_t whole) {
  return format("%.1f", percent(to_double(part), to_double(whole)));
}
std::string total(std::uint64_t ns) {
  return total_time(to_double(ns));
}
std::string mean(std::uint64_t ns, std::uint64_t count) {
  return count > 0 ? call_time(to_double(ns) / to_double(count)) : "-";
}
std::string times(std::uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string host_text(const TraceFacts& facts) {
  if (facts.sample_hz == 0) return "not sampled (CAJETA_PROFILER_HZ=0)";
  return format("%s a second of CPU time; %s kept, %s dropped (ring of %s a thread)",
                times(facts.sample_hz, "sample", "samples").c_str(),
                grouped(facts.samples_kept).c_str(), grouped(facts.samples_dropped).c_str(),
                grouped(facts.ring_samples).c_str());
}

std::string device_text(const TraceFacts& facts) {
  if (facts.device_ring_launches == 0) return "not timed (CAJETA_PROFILER_GPU=0)";
  return format("%s timed, %s not timed, %s dropped (ring of %s)",
                times(facts.launches_kept, "launch", "launches").c_str(),
                grouped(facts.launches_untimed).c_str(), grouped(facts.launches_dropped).c_str(),
                grouped(facts.device_ring_launches).c_str());
}

std::string file_text(const Trace& trace) {
  std::string text = !trace.facts.is_complete
                         ? "not complete: the process was killed, or was still running"
                     : trace.remarks.empty() ? "complete"
                                             : "damaged";
  if (trace.facts.bytes_dropped > 0) {
    text += "; " + bytes_text(to_double(trace.facts.bytes_dropped)) +
            " left out by CAJETA_PROFILER_BYTES";
  }
  return text;
}

void add_head(const Trace& trace, const TraceSummary& summary, Page* page) {
  const TraceFacts& facts = trace.facts;
  page->title = "cajeta-xpu profile";
  if (facts.pid != 0) page->title += "  pid " + std::to_string(facts.pid);
  if (!facts.command.empty()) page->head.push_back("command   " + facts.command);
  page->head.push_back("trace     " + trace.file + ", " + file_text(trace));
  for (const std::string& remark : trace.remarks) page->head.push_back("          " + remark);
  page->head.push_back("host      " + host_text(facts));
  page->head.push_back("device    " + device_text(facts));
  page->head.push_back("calls     " + grouped(facts.spans_kept) + " kept, " +
                       grouped(facts.spans_dropped) + " dropped");
  if (!facts.python_unread.empty()) {
    page->head.push_back("python    " + facts.python + ": no lines of it: " + facts.python_unread);
  }
  page->facts.push_back("wall " + total(summary.wall_ns));
  page->facts.push_back("blocked " + total(summary.blocked_ns) + " in all threads");
  page->facts.push_back("kernels " + total(summary.device_ns) + " on all streams");
  page->facts.push_back("profiling cost " + total(facts.own_cost_ns));
}

std::size_t shown_of(std::size_t count, std::size_t top) {
  return std::min(count, top > 0 ? top : kRows);
}

std::string extent(const char* what, std::size_t count, std::size_t top, const char* unit) {
  return format("    %s, %zu of %zu %s", what, shown_of(count, top), count, unit);
}

// "  none: WHY" in place of a table.
void add_none(const char* title, const std::string& why, Page* page) {
  page->tables.push_back({title, "    none: " + why, {}, {}, {}});
}

std::string why_no_kernels(const Trace& trace) {
  if (trace.facts.device_ring_launches == 0) return "device timing was off (CAJETA_PROFILER_GPU=0)";
  return trace.facts.launches_untimed + trace.facts.launches_dropped > 0
             ? "no launch could be timed"
             : "the program launched none";
}

std::vector<std::string> kernel_cells(const KernelSum& sum, std::uint64_t device_ns) {
  return {share(sum.total_ns, device_ns),
          total(sum.total_ns),
          grouped(sum.count),
          mean(sum.total_ns, sum.count),
          call_time(to_double(sum.max_ns)),
          mean(sum.gap_ns, sum.gaps)};
}

void add_kernels(const Trace& trace, const TraceSummary& summary, std::size_t top, Page* page) {
  const std::vector<KernelSum>& kernels = summary.kernels;
  if (kernels.empty()) return add_none("KERNELS", why_no_kernels(trace), page);
  Table table{"KERNELS", extent("by device time", kernels.size(), top, "kernels"), {}, {}, {}};
  table.columns = {
      {"time%", 5, false, 2}, {"total", 11}, {"launches", 11}, {"avg", 7}, {"max", 7}, {"gap", 7},
      {"kernel", 0, true, 2}};
  KernelSum rest, all;
  rest.name = "the other kernels";
  all.name = "total";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelSum& sum = kernels[i];
    for (KernelSum* to : {&all, i < shown_of(kernels.size(), top) ? nullptr : &rest}) {
      if (to == nullptr) continue;
      to->count += sum.count;
      to->total_ns += sum.total_ns;
      to->max_ns = std::max(to->max_ns, sum.max_ns);
      to->gaps += sum.gaps;
      to->gap_ns += sum.gap_ns;
    }
    if (i >= shown_of(kernels.size(), top)) continue;
    Row row{kernel_cells(sum, summary.device_ns), sum.name, {}};
    if (!sum.place.empty()) {
      row.below.push_back(sum.place_count == sum.count
                              ? "from " + sum.place
                              : share(sum.place_count, sum.count) + " % from " + sum.place);
    }
    table.rows.push_back(std::move(row));
  }
  if (rest.count > 0) {
    table.rows.push_back({kernel_cells(rest, summary.device_ns), rest.name, {}});
  }
  table.rows.push_back({kernel_cells(all, summary.device_ns), all.name, {}});
  table.notes.push_back({"", {"gap: mean time that the stream was idle before the kernel"}});
  page->tables.push_back(std::move(table));
}

void add_streams(const TraceSummary& summary, std::size_t top, Page* page) {
  const std::vector<StreamSum>& streams = summary.streams;
  if (streams.empty()) return;  // KERNELS says why
  Table table{"DEVICE STREAMS",
              extent("busy between the first and the last kernel", streams.size(), top, "streams"),
              {},
              {},
              {}};
  table.columns = {{"busy%", 5, false, 2}, {"busy", 11},    {"idle", 11},          {"gaps", 11},
                   {"longest", 7},         {"kernels", 11}, {"stream", 0, true, 2}};
  for (std::size_t i = 0; i < shown_of(streams.size(), top); ++i) {
    const StreamSum& sum = streams[i];
    table.rows.push_back(
        {{share(sum.busy_ns, sum.span_ns), total(sum.busy_ns), total(sum.idle_ns()),
          grouped(sum.gaps), sum.gaps > 0 ? call_time(to_double(sum.max_gap_ns)) : "-",
          grouped(sum.count)},
         sum.name,
         {}});
  }
  page->tables.push_back(std::move(table));
}

void add_blocked(const Trace& trace, const TraceSummary& summary, std::size_t top, Page* page) {
  const char* title = "HOST BLOCKED ON THE DEVICE";
  const std::vector<BlockedSum>& blocked = summary.blocked;
  if (blocked.empty()) {
    return add_none(title,
                    trace.facts.spans_kept + trace.facts.spans_dropped == 0
                        ? "no driver call was recorded"
                        : "no call that was recorded waited",
                    page);
  }
  Table table{title, extent("by entry and thread", blocked.size(), top, "rows"), {}, {}, {}};
  table.columns = {
      {"time%", 5, false, 2}, {"total", 11},         {"calls", 11}, {"avg", 7}, {"max", 7},
      {"entry", 24, true, 2}, {"thread", 0, true, 2}};
  BlockedSum rest, all;
  rest.entry = "the other rows";
  all.entry = "total";
  const auto cells = [&](const BlockedSum& sum) {
    return std::vector<std::string>{share(sum.total_ns, summary.blocked_ns),
                                    total(sum.total_ns),
                                    grouped(sum.count),
                                    mean(sum.total_ns, sum.count),
                                    call_time(to_double(sum.max_ns)),
                                    sum.entry,
                                    sum.thread};
  };
  for (std::size_t i = 0; i < blocked.size(); ++i) {
    const BlockedSum& sum = blocked[i];
    const bool is_shown = i < shown_of(blocked.size(), top);
    for (BlockedSum* to : {&all, is_shown ? nullptr : &rest}) {
      if (to == nullptr) continue;
      to->count += sum.count;
      to->total_ns += sum.total_ns;
      to->max_ns = std::max(to->max_ns, sum.max_ns);
    }
    if (is_shown) table.rows.push_back({cells(sum), "", {}});
  }
  if (rest.count > 0) table.rows.push_back({cells(rest), "", {}});
  table.rows.push_back({cells(all), "", {}});
  page->tables.push_back(std::move(table));
}

// The name gives way where both do not fit.
std::string function_text(const FunctionSum& sum) {
  if (sum.name == kNoSymbols) {
    return sum.module.empty() ? "code in no file" : sum.name + ": " + sum.module;
  }
  std::string name = short_name(sum.name);
  const std::string in = sum.module.empty() ? "" : "  in " + sum.module;
  constexpr std::size_t kFits = 90, kLeast = 40;
  const std::size_t most = in.size() + kLeast < kFits ? kFits - in.size() : kLeast;
  if (name.size() > most) name = name.substr(0, most - 3) + "...";
  return name + in;
}

void add_functions(const Trace& trace, const TraceSummary& summary, std::size_t top, Page* page) {
  const char* title = "HOT HOST FUNCTIONS";
  if (summary.functions.empty()) {
    return add_none(title,
                    trace.facts.sample_hz == 0 ? "host sampling was off (CAJETA_PROFILER_HZ=0)"
                                               : "no sample was taken; a sample needs CPU time",
                    page);
  }
  const std::vector<FunctionSum>& functions = summary.functions;
  Table table{title, extent("by CPU time in them", functions.size(), top, "functions"), {}, {}, {}};
  table.columns = {{"self%", 5, false, 2}, {"self", 11},   {"total%", 7},
                   {"total", 11},          {"samples", 9}, {"function", 0, true, 2}};
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const FunctionSum& sum = functions[i];
    if (i >= shown_of(functions.size(), top)) {
      rest += sum.self;
      continue;
    }
    table.rows.push_back({{share(sum.self, summary.periods), total_time(cpu_ns(trace, sum.self)),
                           share(sum.total, summary.periods), total_time(cpu_ns(trace, sum.total)),
                           grouped(sum.self)},
                          function_text(sum),
                          {}});
  }
  const auto add_sum = [&](const char* name, std::uint64_t periods) {
    table.rows.push_back({{share(periods, summary.periods), total_time(cpu_ns(trace, periods)), "",
                           "", grouped(periods), name},
                          "",
                          {}});
  };
  if (rest > 0) add_sum("the other functions", rest);
  add_sum("total", summary.periods);
  page->tables.push_back(std::move(table));
}

}  // namespace

Page page_of(const Trace& trace, const TraceSummary& summary, std::size_t top) {
  Page page;
  add_head(trace, summary, &page);
  add_kernels(trace, summary, top, &page);
  add_streams(summary, top, &page);
  add_blocked(trace, summary, top, &page);
  add_functions(trace, summary, top, &page);
  return page;
}

std::string csv_of(const Trace& trace, const TraceSummary& summary) {
  std::string out =
      "file,table,name,thread,count,total_ns,self_ns,max_ns,gaps,gap_ns,max_gap_ns,place,"
      "place_count\n";
  const auto begin = [&](const char* table, const std::string& name, const std::string& thread) {
    CsvLine line;
    line.add(trace.file).add(table).add(name).add(thread);
    return line;
  };
  for (const KernelSum& sum : summary.kernels) {
    out += begin("kernels", sum.name, "")
               .add(sum.count)
               .add(sum.total_ns)
               .add("")
               .add(sum.max_ns)
               .add(sum.gaps)
               .add(sum.gap_ns)
               .add("")
               .add(sum.place)
               .add(sum.place_count)
               .end();
  }
  for (const StreamSum& sum : summary.streams) {
    out += begin("streams", sum.name, "")
               .add(sum.count)
               .add(sum.busy_ns)
               .add("")
               .add("")
               .add(sum.gaps)
               .add(sum.idle_ns())
               .add(sum.max_gap_ns)
               .add("")
               .add("")
               .end();
  }
  for (const BlockedSum& sum : summary.blocked) {
    out += begin("blocked", sum.entry, sum.thread)
               .add(sum.count)
               .add(sum.total_ns)
               .add("")
               .add(sum.max_ns)
               .add("")
               .add("")
               .add("")
               .add("")
               .add("")
               .end();
  }
  for (const FunctionSum& sum : summary.functions) {
    out += begin("functions", sum.name, "")
               .add(sum.self)
               .add(static_cast<std::uint64_t>(cpu_ns(trace, sum.total)))
               .add(static_cast<std::uint64_t>(cpu_ns(trace, sum.self)))
               .add("")
               .add("")
               .add("")
               .add("")
               .add(sum.module)
               .add("")
               .end();
  }
  return out;
}

}  // namespace cli
