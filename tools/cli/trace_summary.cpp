// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/trace_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace cli {
namespace {

// Largest first, equal ones by name.
template <typename Sum, typename Size, typename Name>
void sort_sums(std::vector<Sum>* sums, Size size, Name name) {
  std::stable_sort(sums->begin(), sums->end(), [&](const Sum& a, const Sum& b) {
    return size(a) != size(b) ? size(a) > size(b) : name(a) < name(b);
  });
}

class Wall {
 public:
  void add(std::uint64_t start_ns, std::uint64_t end_ns) {
    first_ns_ = std::min(first_ns_, start_ns);
    last_ns_ = std::max(last_ns_, end_ns);
  }
  std::uint64_t ns() const { return last_ns_ > first_ns_ ? last_ns_ - first_ns_ : 0; }

 private:
  std::uint64_t first_ns_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last_ns_ = 0;
};

std::uint64_t wall_of(const Trace& trace) {
  Wall wall;
  for (const TraceSpan& span : trace.spans) wall.add(span.start_ns, span.end_ns);
  for (const TraceKernel& kernel : trace.kernels) wall.add(kernel.start_ns, kernel.end_ns);
  for (const TraceSample& sample : trace.samples) wall.add(sample.time_ns, sample.time_ns);
  return wall.ns();
}

// Sums of streams and the gaps before kernels, which need the kernels of a stream in their order.
class Device {
 public:
  Device(const Trace& trace, TraceSummary* summary)
      : trace_(trace), summary_(summary), of_name_(trace.names.size(), kNone) {}

  void add_up() {
    std::vector<const TraceKernel*> order;
    for (const TraceKernel& kernel : trace_.kernels) order.push_back(&kernel);
    std::stable_sort(order.begin(), order.end(), [](const TraceKernel* a, const TraceKernel* b) {
      return std::tie(a->stream, a->start_ns) < std::tie(b->stream, b->start_ns);
    });
    TraceIndex stream = kNone;
    for (const TraceKernel* kernel : order) {
      if (kernel->stream != stream || summary_->streams.empty()) begin_stream(*kernel);
      stream = kernel->stream;
      add(*kernel);
    }
    find_places();
    sort_sums(
        &summary_->kernels, [](const KernelSum& sum) { return sum.total_ns; },
        [](const KernelSum& sum) { return sum.name; });
    sort_sums(
        &summary_->streams, [](const StreamSum& sum) { return sum.busy_ns; },
        [](const StreamSum& sum) { return sum.name; });
  }

 private:
  void begin_stream(const TraceKernel& kernel) {
    summary_->streams.push_back({trace_.streams[kernel.stream].name, 0, 0, 0, 0, 0});
    first_ns_ = kernel.start_ns;
    last_ns_ = kernel.start_ns;
  }

  void add(const TraceKernel& kernel) {
    const bool is_known = of_name_[kernel.name] != kNone;
    if (!is_known) {
      of_name_[kernel.name] = static_cast<TraceIndex>(summary_->kernels.size());
      summary_->kernels.push_back({trace_.names[kernel.name], 0, 0, 0, 0, 0, "", 0});
    }
    KernelSum& sum = summary_->kernels[of_name_[kernel.name]];
    StreamSum& stream = summary_->streams.back();
    const std::uint64_t ns = kernel.end_ns - kernel.start_ns;
    if (stream.count > 0) {
      const std::uint64_t gap_ns =
          kernel.start_ns > last_ns_ ? kernel.start_ns - last_ns_ : std::uint64_t{0};
      ++sum.gaps;
      sum.gap_ns += gap_ns;
      stream.gaps += gap_ns > 0 ? 1 : 0;
      stream.max_gap_ns = std::max(stream.max_gap_ns, gap_ns);
    }
    ++sum.count;
    sum.total_ns += ns;
    sum.max_ns = std::max(sum.max_ns, ns);
    summary_->device_ns += ns;
    ++stream.count;
    if (kernel.end_ns > last_ns_) {
      stream.busy_ns += kernel.end_ns - std::max(kernel.start_ns, last_ns_);
      last_ns_ = kernel.end_ns;
    }
    stream.span_ns = last_ns_ - first_ns_;
  }

  // Launches by kernel and stack, then by kernel and place.
  void find_places() {
    std::map<std::pair<TraceIndex, TraceIndex>, std::uint64_t> by_stack;
    for (const TraceKernel& kernel : trace_.kernels) {
      if (kernel.launch == kNone) continue;
      const TraceIndex stack = trace_.spans[kernel.launch].stack;
      if (stack != kNone) ++by_stack[{of_name_[kernel.name], stack}];
    }
    std::map<std::pair<TraceIndex, std::string>, std::uint64_t> by_place;
    for (const auto& [key, count] : by_stack) {
      by_place[{key.first, place_of(trace_, key.second)}] += count;
    }
    for (const auto& [key, count] : by_place) {
      KernelSum& sum = summary_->kernels[key.first];
      if (key.second.empty() || count <= sum.place_count) continue;
      sum.place = key.second;
      sum.place_count = count;
    }
  }

  const Trace& trace_;
  TraceSummary* summary_;
  std::vector<TraceIndex> of_name_;           // position in the sums of kernels
  std::uint64_t first_ns_ = 0, last_ns_ = 0;  // of the stream at hand
};

void add_blocked(const Trace& trace, TraceSummary* summary) {
  std::map<std::pair<TraceIndex, TraceIndex>, std::size_t> known;
  for (const TraceSpan& span : trace.spans) {
    if (span.kind != SpanKind::kBlocked) continue;
    const auto [at, is_new] = known.try_emplace({span.name, span.thread}, summary->blocked.size());
    if (is_new) {
      summary->blocked.push_back(
          {trace.names[span.name], thread_name(trace, span.thread), 0, 0, 0});
    }
    BlockedSum& sum = summary->blocked[at->second];
    const std::uint64_t ns = span.end_ns - span.start_ns;
    ++sum.count;
    sum.total_ns += ns;
    sum.max_ns = std::max(sum.max_ns, ns);
    ++summary->blocked_calls;
    summary->blocked_ns += ns;
  }
  sort_sums(
      &summary->blocked, [](const BlockedSum& sum) { return sum.total_ns; },
      [](const BlockedSum& sum) { return sum.entry + sum.thread; });
}

// Sums by function. A stack is added once, with the weight of all its samples.
class Functions {
 public:
  explicit Functions(std::vector<FunctionSum>* sums) : sums_(sums) {}

  void add(const Trace& trace, const TraceStack& stack, std::uint64_t weight) {
    std::set<std::size_t> counted;  // a function that calls itself counts once
    bool is_innermost = true;
    for (const TraceIndex number : stack) {
      const TraceFrame& frame = trace.frames[number];
      for (std::size_t line = 0; line < std::max<std::size_t>(frame.lines.size(), 1); ++line) {
        const std::size_t at = position_of(trace, frame, line);
        if (is_innermost) (*sums_)[at].self += weight;
        if (counted.insert(at).second) (*sums_)[at].total += weight;
        is_innermost = false;
      }
    }
  }

 private:
  std::size_t position_of(const Trace& trace, const TraceFrame& frame, std::size_t line) {
    const bool is_named = line < frame.lines.size() && !frame.lines[line].function.empty();
    FunctionSum sum{is_named ? frame.lines[line].function : kNoSymbols, module_name(trace, frame),
                    0, 0};
    const auto [at, is_new] = known_.try_emplace({sum.name, sum.module}, sums_->size());
    if (is_new) sums_->push_back(std::move(sum));
    return at->second;
  }

  std::vector<FunctionSum>* sums_;
  std::map<std::pair<std::string, std::string>, std::size_t> known_;
};

void add_functions(const Trace& trace, TraceSummary* summary) {
  std::map<TraceIndex, std::uint64_t> by_stack;
  for (const TraceSample& sample : trace.samples) {
    by_stack[sample.stack] += sample.weight;
    summary->periods += sample.weight;
  }
  Functions functions(&summary->functions);
  for (const auto& [stack, weight] : by_stack) {
    if (stack != kNone) functions.add(trace, trace.stacks[stack], weight);
  }
  std::stable_sort(summary->functions.begin(), summary->functions.end(),
                   [](const FunctionSum& a, const FunctionSum& b) {
                     return std::tie(b.self, b.total, a.name, a.module) <
                            std::tie(a.self, a.total, b.name, b.module);
                   });
}

}  // namespace

double cpu_ns(const Trace& trace, std::uint64_t periods) noexcept {
  const auto hz = static_cast<double>(trace.facts.sample_hz);
  return hz > 0 ? static_cast<double>(periods) * 1e9 / hz : 0;
}

TraceSummary summary_of(const Trace& trace) {
  TraceSummary summary;
  summary.wall_ns = wall_of(trace);
  Device(trace, &summary).add_up();
  add_blocked(trace, &summary);
  add_functions(trace, &summary);
  return summary;
}

}  // namespace cli
