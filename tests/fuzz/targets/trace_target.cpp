// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the reader of the profiler's traces and what is made of a trace. A refusal is
// one short line; what was read shows within 100 columns, its sums hold, and exports keep to their
// limits.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/cli/failure.h"
#include "tools/cli/trace_export.h"
#include "tools/cli/trace_file.h"
#include "tools/cli/trace_json.h"
#include "tools/cli/trace_summary.h"

namespace {

constexpr int kLimit = 5;

void require(bool claim) {
  if (!claim) __builtin_trap();
}

void require_narrow(const std::string& text) {
  std::size_t column = 0;
  for (const char byte : text) {
    column = byte == '\n' ? 0 : column + 1;
    require(column <= 100);
  }
}

void require_sums(const cli::Trace& trace, const cli::TraceSummary& summary) {
  std::uint64_t kernels = 0, on_streams = 0, self = 0;
  for (const cli::KernelSum& sum : summary.kernels) {
    kernels += sum.count;
    require(sum.place_count <= sum.count && sum.gaps <= sum.count);
  }
  for (const cli::StreamSum& sum : summary.streams) {
    on_streams += sum.count;
    require(sum.busy_ns <= sum.span_ns);
  }
  for (const cli::FunctionSum& sum : summary.functions) {
    self += sum.self;
    require(sum.self <= sum.total);
  }
  require(kernels == trace.kernels.size() && on_streams == kernels && self <= summary.periods);
}

void use(const cli::Trace& trace) {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const cli::TraceSummary summary = cli::summary_of(trace);
  require_sums(trace, summary);
  require_narrow(cli::text_of(cli::page_of(trace, summary, 2), false));
  (void)cli::markdown_of(cli::page_of(trace, summary, 0));
  (void)cli::csv_of(trace, summary);
  profiler::JsonWriter out(nowhere);
  cli::write_summary(trace, summary, &out);
  (void)cli::write_speedscope(trace, kLimit, &out);
  require(out.finish());
  (void)cli::records_csv(trace, kLimit);
  if (trace.samples.empty()) return;
  const std::string folded = cli::folded_of(trace, kLimit).text;
  require(std::count(folded.begin(), folded.end(), '\n') <= kLimit);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    use(cli::parse_trace(bytes, "x.pftrace"));
  } catch (const cli::Failure& failure) {
    const std::string line = failure.what();
    require(!line.empty() && line.size() < 400 && line.find('\n') == line.npos);
  }
  return 0;
}
