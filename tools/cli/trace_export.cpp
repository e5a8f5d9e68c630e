// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/trace_export.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "tools/cli/csv_output.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_summary.h"

namespace cli {
namespace {

// Of a text: names repeat in it, so that a small file could make a huge one.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

std::uint64_t period_ns(const Trace& trace, std::uint64_t periods) {
  return static_cast<std::uint64_t>(cpu_ns(trace, periods));
}

std::string folded_key(const Trace& trace, TraceIndex thread, TraceIndex stack) {
  const auto clean = [](std::string name) {
    std::replace(name.begin(), name.end(), ';', ',');
    return printable(name);
  };
  std::string key = clean(thread_name(trace, thread));
  const std::vector<std::string> names = stack_names(trace, stack);
  for (const std::string& name : names) key += ";" + clean(name);
  return names.empty() ? key + ";no stack" : key;
}

// The time from which on records are left out, so that at most `limit` stay.
class Window {
 public:
  explicit Window(std::size_t limit) : limit_(limit) {}

  void add(std::uint64_t start_ns) { starts_.push_back(start_ns); }
  void close() {
    first_ns_ = starts_.empty() ? 0 : *std::min_element(starts_.begin(), starts_.end());
    if (starts_.size() <= limit_) return;
    const auto at = starts_.begin() + static_cast<std::ptrdiff_t>(limit_);
    std::nth_element(starts_.begin(), at, starts_.end());
    end_ns_ = *at;
  }
  bool holds(std::uint64_t start_ns) const { return !end_ns_ || start_ns < *end_ns_; }
  std::uint64_t first_ns() const { return first_ns_; }
  std::string left_out() const {
    if (!end_ns_) return "";
    const auto kept = std::count_if(starts_.begin(), starts_.end(),
                                    [this](std::uint64_t start_ns) { return holds(start_ns); });
    return format("%s of %s records are left out, those after the first %s; see --limit",
                  grouped(starts_.size() - static_cast<std::size_t>(kept)).c_str(),
                  grouped(starts_.size()).c_str(),
                  total_time(to_double(*end_ns_ - first_ns_)).c_str());
  }

 private:
  std::size_t limit_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t first_ns_ = 0;
  std::optional<std::uint64_t> end_ns_;
};

// What stands in a row of records_csv().
struct Record {
  std::uint64_t start_ns;
  enum Kind { kSpan, kKernel, kSample } kind;
  std::size_t index;
};

std::vector<Record> records_of(const Trace& trace) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    records.push_back({trace.spans[i].start_ns, Record::kSpan, i});
  }
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    records.push_back({trace.kernels[i].start_ns, Record::kKernel, i});
  }
  for (std::size_t i = 0; i < trace.samples.size(); ++i) {
    records.push_back({trace.samples[i].time_ns, Record::kSample, i});
  }
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.start_ns, a.kind, a.index) < std::tie(b.start_ns, b.kind, b.index);
  });
  return records;
}

std::string joined_stack(const Trace& trace, TraceIndex stack) {
  std::string text;
  for (const std::string& name : stack_names(trace, stack)) {
    text += (text.empty() ? "" : ";") + name;
  }
  return text;
}

const char* name_of(SpanKind kind) {
  return kind == SpanKind::kLaunch ? "launch" : kind == SpanKind::kBlocked ? "blocked" : "call";
}

std::string row_of(const Trace& trace, const TraceSpan& span) {
  CsvLine line;
  line.add(name_of(span.kind)).add(trace.names[span.name]).add(thread_name(trace, span.thread));
  line.add("").add(span.start_ns).add(span.end_ns).add("").add(span.bytes).add("").add("").add("");
  line.add("").add(place_of(trace, span.stack));
  return line.add(joined_stack(trace, span.stack)).end();
}

std::string row_of(const Trace& trace, const TraceKernel& kernel) {
  const TraceSpan* launch = kernel.launch != kNone ? &trace.spans[kernel.launch] : nullptr;
  const auto text = [&](TraceIndex name) { return name != kNone ? trace.names[name] : ""; };
  CsvLine line;
  line.add("kernel").add(trace.names[kernel.name]);
  line.add(launch != nullptr ? thread_name(trace, launch->thread) : "");
  line.add(trace.streams[kernel.stream].name).add(kernel.start_ns).add(kernel.end_ns).add("");
  line.add("").add(text(kernel.grid)).add(text(kernel.block)).add(kernel.shared_bytes);
  line.add(launch != nullptr ? std::to_string(launch->start_ns) : "");
  line.add(launch != nullptr ? place_of(trace, launch->stack) : "");
  return line.add(launch != nullptr ? joined_stack(trace, launch->stack) : "").end();
}

std::string row_of(const Trace& trace, const TraceSample& sample) {
  CsvLine line;
  line.add("sample").add("").add(thread_name(trace, sample.thread)).add("").add(sample.time_ns);
  line.add(sample.time_ns).add(period_ns(trace, sample.weight)).add("").add("").add("").add("");
  return line.add("").add("").add(joined_stack(trace, sample.stack)).end();
}

class Speedscope {
 public:
  Speedscope(const Trace& trace, const Window& window, profiler::JsonWriter* out)
      : trace_(trace), window_(window), out_(*out), frames_of_(trace.stacks.size()) {}

  void write() {
    find_samples();
    find_kernels();
    out_.begin_object();
    out_.text("$schema", "https://www.speedscope.app/file-format-schema.json");
    out_.text("exporter", "cajeta-xpu");
    out_.text("name", printable(trace_.facts.command).c_str());
    out_.begin_object("shared");
    out_.begin_array("frames");
    for (const std::string& name : names_) {
      out_.begin_object();
      out_.text("name", name.c_str());
      out_.end_object();
    }
    out_.end_array();
    out_.end_object();
    out_.begin_array("profiles");
    for (const auto& [thread, samples] : samples_) write_thread(thread, samples);
    for (const auto& [stream, kernels] : kernels_) write_stream(stream, kernels);
    out_.end_array();
    out_.end_object();
  }

 private:
  using Frames = std::vector<std::uint64_t>;

  std::uint64_t number_of(const std::string& name) {
    const auto [at, is_new] = numbers_.try_emplace(printable(name), names_.size());
    if (is_new) names_.push_back(at->first);
    return at->second;
  }

  void find_samples() {
    for (const TraceSample& sample : trace_.samples) {
      if (!window_.holds(sample.time_ns)) continue;
      samples_[sample.thread].push_back(sample);
      if (sample.stack == kNone || !frames_of_[sample.stack].empty()) continue;
      for (const std::string& name : stack_names(trace_, sample.stack)) {
        frames_of_[sample.stack].push_back(number_of(name));
      }
    }
    for (auto& [thread, samples] : samples_) {
      std::stable_sort(
          samples.begin(), samples.end(),
          [](const TraceSample& a, const TraceSample& b) { return a.time_ns < b.time_ns; });
    }
  }

  void find_kernels() {
    for (const TraceKernel& kernel : trace_.kernels) {
      if (!window_.holds(kernel.start_ns)) continue;
      kernels_[kernel.stream].push_back(kernel);
      number_of(trace_.names[kernel.name]);
    }
    for (auto& [stream, kernels] : kernels_) {
      std::stable_sort(
          kernels.begin(), kernels.end(),
          [](const TraceKernel& a, const TraceKernel& b) { return a.start_ns < b.start_ns; });
    }
  }

  void begin_profile(const char* type, const std::string& name, std::uint64_t end_value) {
    out_.begin_object();
    out_.text("type", type);
    out_.text("name", printable(name).c_str());
    out_.text("unit", "nanoseconds");
    out_.number("startValue", 0);
    out_.number("endValue", end_value);
  }

  void write_thread(TraceIndex thread, const std::vector<TraceSample>& samples) {
    std::uint64_t sum = 0;
    for (const TraceSample& sample : samples) sum += period_ns(trace_, sample.weight);
    begin_profile("sampled", thread_name(trace_, thread) + ", CPU time", sum);
    out_.begin_array("samples");
    for (const TraceSample& sample : samples) {
      out_.begin_array();
      if (sample.stack != kNone) {
        for (const std::uint64_t frame : frames_of_[sample.stack]) out_.number(nullptr, frame);
      }
      out_.end_array();
    }
    out_.end_array();
    out_.begin_array("weights");
    for (const TraceSample& sample : samples) {
      out_.number(nullptr, period_ns(trace_, sample.weight));
    }
    out_.end_array();
    out_.end_object();
  }

  void write_event(const char* type, std::uint64_t frame, std::uint64_t at_ns) {
    out_.begin_object();
    out_.text("type", type);
    out_.number("frame", frame);
    out_.number("at", at_ns - window_.first_ns());
    out_.end_object();
  }

  // The format knows no overlap: a kernel begins after the end of the one before.
  void write_stream(TraceIndex stream, const std::vector<TraceKernel>& kernels) {
    std::uint64_t last_ns = window_.first_ns();
    for (const TraceKernel& kernel : kernels) last_ns = std::max(last_ns, kernel.end_ns);
    begin_profile("evented", trace_.streams[stream].name, last_ns - window_.first_ns());
    out_.begin_array("events");
    std::uint64_t before_ns = 0;
    for (const TraceKernel& kernel : kernels) {
      const std::uint64_t frame = number_of(trace_.names[kernel.name]);
      const std::uint64_t start_ns = std::max(kernel.start_ns, before_ns);
      before_ns = std::max(kernel.end_ns, start_ns);
      write_event("O", frame, start_ns);
      write_event("C", frame, before_ns);
    }
    out_.end_array();
    out_.end_object();
  }

  const Trace& trace_;
  const Window& window_;
  profiler::JsonWriter& out_;
  std::map<std::string, std::uint64_t> numbers_;
  std::vector<std::string> names_;
  std::vector<Frames> frames_of_;  // beside the trace's stacks, of those that are used
  std::map<TraceIndex, std::vector<TraceSample>> samples_;
  std::map<TraceIndex, std::vector<TraceKernel>> kernels_;
};

}  // namespace

Exported folded_of(const Trace& trace, std::size_t limit) {
  if (trace.samples.empty()) {
    throw Failure(trace.file +
                  ": no samples of host threads, so there are no stacks; kernels and"
                  " calls are in --format speedscope and csv");
  }
  std::map<std::pair<TraceIndex, TraceIndex>, std::uint64_t> by_stack;
  for (const TraceSample& sample : trace.samples) {
    by_stack[{sample.thread, sample.stack}] += sample.weight;
  }
  using Weighed = std::pair<std::uint64_t, std::pair<TraceIndex, TraceIndex>>;
  std::vector<Weighed> order;
  std::uint64_t all = 0, kept = 0;
  for (const auto& [key, weight] : by_stack) {
    order.push_back({weight, key});
    all += weight;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Weighed& a, const Weighed& b) { return a.first > b.first; });
  std::map<std::string, std::uint64_t> lines;
  std::size_t bytes = 0, left_out = 0;
  for (const auto& [weight, key] : order) {
    // The same names at other addresses are the same line.
    std::string line = bytes < kMostBytes ? folded_key(trace, key.first, key.second) : "";
    const auto known = lines.find(line);
    if (line.empty() || (known == lines.end() && lines.size() >= limit)) {
      ++left_out;
      continue;
    }
    kept += weight;
    bytes += known == lines.end() ? line.size() : 0;
    lines[std::move(line)] += weight;
  }
  Exported exported;
  for (const auto& [line, weight] : lines) {
    exported.text += line + " " + std::to_string(period_ns(trace, weight)) + "\n";
  }
  if (left_out > 0) {
    exported.left_out =
        format("%s stacks with %.1f %% of the time are left out; see --limit",
               grouped(left_out).c_str(), percent(to_double(all - kept), to_double(all)));
  }
  return exported;
}

Exported records_csv(const Trace& trace, std::size_t limit) {
  Exported exported;
  exported.text =
      "kind,name,thread,stream,start_ns,end_ns,cpu_ns,bytes,grid,block,shared_bytes,"
      "launch_start_ns,place,stack\n";
  const std::vector<Record> records = records_of(trace);
  std::size_t written = 0;
  for (const Record& record : records) {
    if (written == limit || exported.text.size() > kMostBytes) break;
    ++written;
    if (record.kind == Record::kSpan) exported.text += row_of(trace, trace.spans[record.index]);
    if (record.kind == Record::kKernel) exported.text += row_of(trace, trace.kernels[record.index]);
    if (record.kind == Record::kSample) exported.text += row_of(trace, trace.samples[record.index]);
  }
  if (written < records.size()) {
    const std::uint64_t covered = records[written].start_ns - records[0].start_ns;
    exported.left_out =
        format("%s of %s records are left out, those after the first %s; see --limit",
               grouped(records.size() - written).c_str(), grouped(records.size()).c_str(),
               total_time(to_double(covered)).c_str());
  }
  return exported;
}

std::string write_speedscope(const Trace& trace, std::size_t limit, profiler::JsonWriter* out) {
  Window window(limit);
  for (const TraceSample& sample : trace.samples) window.add(sample.time_ns);
  for (const TraceKernel& kernel : trace.kernels) window.add(kernel.start_ns);
  window.close();
  Speedscope(trace, window, out).write();
  return window.left_out();
}

}  // namespace cli
