// SPDX-License-Identifier: Apache-2.0
// The tables of a trace against numbers that are known from how it was made.
#include "tools/cli/trace_summary.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sstream>

#include "tests/unit/catch.h"
#include "tests/unit/cli/traces.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_file.h"
#include "tools/cli/trace_json.h"

namespace {

cli::Trace sample() {
  return cli::parse_trace(cli_test::sample_trace().bytes, "x.pftrace");
}

std::string text_of(const cli::Trace& trace, std::size_t top = 0) {
  return cli::text_of(cli::page_of(trace, cli::summary_of(trace), top), false);
}

cli::Trace trace_of(const cli_test::TraceBuilder::Numbers& header) {
  cli_test::TraceBuilder builder;
  builder.add_header(header);
  return cli::parse_trace(builder.bytes, "x.pftrace");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string json_of(const cli::Trace& trace) {
  const int file = memfd_create("summary", MFD_CLOEXEC);
  profiler::JsonWriter out(file);
  cli::write_summary(trace, cli::summary_of(trace), &out);
  REQUIRE(out.finish());
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(file);
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) {
    text.erase(at, std::min(text.find_first_not_of("\n ", at), text.size()) - at);
  }
  return text;
}

}  // namespace

TEST_CASE("a trace says why it has no Python lines") {
  const auto trace_with = [](const cli_test::TraceBuilder::Texts& texts) {
    cli_test::TraceBuilder builder;
    builder.add_header({{"format", 1}}, texts);
    return cli::parse_trace(builder.bytes, "x.pftrace");
  };
  const cli::Trace without = trace_with({{"python", "  "}, {"python_unread", " "}});
  CHECK_FALSE(has(text_of(without), "python"));
  CHECK(has(json_of(without), "\"python\":null"));
  const cli::Trace known = trace_with({{"python", "3.12.1  "}, {"python_unread", "   "}});
  CHECK_FALSE(has(text_of(known), "python"));
  CHECK(
      has(json_of(known), "\"python\":{\"version\":\"3.12.1\",\"is_read\":true,\"why_not\":null}"));
  const cli::Trace unread = trace_with({{"python", "3.15.0  "}, {"python_unread", "not known   "}});
  CHECK(has(text_of(unread), "\npython    3.15.0: no lines of it: not known\n"));
  CHECK(has(json_of(unread),
            "\"python\":{\"version\":\"3.15.0\",\"is_read\":false,\"why_not\":\"not known\"}"));
}

TEST_CASE("sums of kernels") {
  const cli::TraceSummary summary = cli::summary_of(sample());
  CHECK(summary.wall_ns == 309'000);
  CHECK(summary.device_ns == 80'000);
  REQUIRE(summary.kernels.size() == 2);
  const cli::KernelSum& solve = summary.kernels[0];
  CHECK(solve.name == "solve(float*)");
  CHECK(solve.count == 3);
  CHECK(solve.total_ns == 60'000);
  CHECK(solve.max_ns == 30'000);
  CHECK(solve.gaps == 2);
  CHECK(solve.gap_ns == 45'000);
  CHECK(solve.place == "solver.cpp:32 step");
  CHECK(solve.place_count == 2);
  const cli::KernelSum& norm = summary.kernels[1];
  CHECK(norm.count == 2);
  CHECK(norm.total_ns == 20'000);
  CHECK(norm.gaps == 1);  // the other is the first of its stream
  CHECK(norm.gap_ns == 0);
  CHECK(norm.place == "sum.h:7 sum");
  CHECK(norm.place_count == 1);
}

TEST_CASE("sums of device streams") {
  const cli::TraceSummary summary = cli::summary_of(sample());
  REQUIRE(summary.streams.size() == 2);
  const cli::StreamSum& legacy = summary.streams[0];
  CHECK(legacy.name == "stream 1 (legacy)");
  CHECK(legacy.count == 4);
  CHECK(legacy.span_ns == 110'000);
  CHECK(legacy.busy_ns == 65'000);
  CHECK(legacy.idle_ns() == 45'000);
  CHECK(legacy.gaps == 2);
  CHECK(legacy.max_gap_ns == 40'000);
  CHECK(summary.streams[1].busy_ns == 15'000);
  CHECK(summary.streams[1].idle_ns() == 0);
}

TEST_CASE("kernels that overlap on a stream are busy time once") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}, {"device_ring_launches", 1}});
  builder.add_thread(41, "main");
  builder.add_stream(1, 1, "stream 1");
  // Not in the order of their times: 100 to 200, 150 to 180 inside it, 190 to 250, 300 to 310.
  builder.add_launch({1, 41, 1, 2, 0, 1, 300, 310, "d"});
  builder.add_launch({2, 41, 1, 2, 0, 1, 100, 200, "a"});
  builder.add_launch({3, 41, 1, 2, 0, 1, 190, 250, "c"});
  builder.add_launch({4, 41, 1, 2, 0, 1, 150, 180, "b"});
  const cli::TraceSummary summary = cli::summary_of(cli::parse_trace(builder.bytes, "x.pftrace"));
  REQUIRE(summary.streams.size() == 1);
  CHECK(summary.streams[0].span_ns == 210);
  CHECK(summary.streams[0].busy_ns == 160);
  CHECK(summary.streams[0].gaps == 1);
  CHECK(summary.streams[0].max_gap_ns == 50);
  CHECK(summary.device_ns == 200);
}

TEST_CASE("sums of waits and of host functions") {
  const cli::TraceSummary summary = cli::summary_of(sample());
  CHECK(summary.blocked_ns == 70'000);
  REQUIRE(summary.blocked.size() == 2);
  CHECK(summary.blocked[0].entry == "cuMemcpyDtoH");
  CHECK(summary.blocked[0].thread == "main (41)");
  CHECK(summary.blocked[0].count == 2);
  CHECK(summary.blocked[0].total_ns == 60'000);
  CHECK(summary.blocked[0].max_ns == 40'000);
  CHECK(summary.blocked[1].thread == "thread 42");
  CHECK(summary.periods == 7);
  const auto find = [&](const std::string& name) {
    for (const cli::FunctionSum& sum : summary.functions) {
      if (sum.name == name) return sum;
    }
    return cli::FunctionSum{};
  };
  CHECK(summary.functions[0].name == "step(int)");
  CHECK(find("step(int)").self == 4);
  CHECK(find("step(int)").total == 6);
  CHECK(find("main").self == 0);
  CHECK(find("main").total == 6);
  CHECK(find("sum").self == 1);
  CHECK(find("main").module == "solver");
  std::uint64_t self = 0;
  for (const cli::FunctionSum& sum : summary.functions) self += sum.self;
  CHECK(self == summary.periods);
  CHECK(cli::cpu_ns(sample(), 4) == 4e6);
}

TEST_CASE("a function that calls itself is counted once") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}, {"sample_hz", 1000}});
  const std::uint64_t frame = builder.frame("opt/a", 1), again = builder.frame("opt/a", 2);
  builder.add_sample(1, 5, builder.stack({frame, again, frame}));
  builder.add_symbols("opt/a", 1, {{"f", "", 0}});
  builder.add_symbols("opt/a", 2, {{"f", "", 0}});
  const cli::TraceSummary summary = cli::summary_of(cli::parse_trace(builder.bytes, "x.pftrace"));
  REQUIRE(summary.functions.size() == 1);
  CHECK(summary.functions[0].self == 1);
  CHECK(summary.functions[0].total == 1);
}

TEST_CASE("the summary as text") {
  CHECK(text_of(sample()) == R"(cajeta-xpu profile  pid 77
command   ./solver 1
trace     x.pftrace, complete
host      1,000 samples a second of CPU time; 7 kept, 2 dropped (ring of 4,096 a thread)
device    5 launches timed, 3 not timed, 1 dropped (ring of 8,192)
calls     4 kept, 0 dropped
wall 0.309 ms | blocked 0.070 ms in all threads | kernels 0.080 ms on all streams
  profiling cost 0.012 ms

KERNELS    by device time, 2 of 2 kernels
  time%       total    launches     avg     max     gap  kernel
   75.0    0.060 ms           3 20.0 us 30.0 us 22.5 us  solve(float*)
        66.7 % from solver.cpp:32 step
   25.0    0.020 ms           2 10.0 us 15.0 us 0.00 us  norm
        50.0 % from sum.h:7 sum
  100.0    0.080 ms           5 16.0 us 30.0 us 15.0 us  total
  gap: mean time that the stream was idle before the kernel

DEVICE STREAMS    busy between the first and the last kernel, 2 of 2 streams
  busy%        busy        idle        gaps longest     kernels  stream
   59.1    0.065 ms    0.045 ms           2 40.0 us           4  stream 1 (legacy)
  100.0    0.015 ms    0.000 ms           0       -           1  stream 2 (0x7f00)

HOST BLOCKED ON THE DEVICE    by entry and thread, 2 of 2 rows
  time%       total       calls     avg     max  entry                     thread
   85.7    0.060 ms           2 30.0 us 40.0 us  cuMemcpyDtoH              main (41)
   14.3    0.010 ms           1 10.0 us 10.0 us  cuStreamSynchronize       thread 42
  100.0    0.070 ms           3 23.3 us 40.0 us  total

HOT HOST FUNCTIONS    by CPU time in them, 5 of 5 functions
  self%        self  total%       total   samples  function
   57.1    4.000 ms    85.7    6.000 ms         4  step  in solver
   14.3    1.000 ms    14.3    1.000 ms         1  sum  in solver
   14.3    1.000 ms    14.3    1.000 ms         1  code in no file
   14.3    1.000 ms    14.3    1.000 ms         1  without symbols: libplain.so
    0.0    0.000 ms    85.7    6.000 ms         0  main  in solver
  100.0    7.000 ms                             7  total
)");
}

TEST_CASE("what is not in a trace is said in a line and has no table") {
  const std::string off = text_of(trace_of({{"format", 1}}));
  CHECK(has(off, "host      not sampled"));
  CHECK(has(off, "KERNELS    none: device timing was off (CAJETA_PROFILER_GPU=0)\n"));
  CHECK(has(off, "HOST BLOCKED ON THE DEVICE    none: no driver call was recorded\n"));
  CHECK(has(off, "HOT HOST FUNCTIONS    none: host sampling was off (CAJETA_PROFILER_HZ=0)\n"));
  CHECK(has(off, "not complete"));
  CHECK_FALSE(has(off, "total"));
  const std::string idle =
      text_of(trace_of({{"format", 1}, {"sample_hz", 99}, {"device_ring_launches", 16}}));
  CHECK(has(idle, "KERNELS    none: the program launched none\n"));
  CHECK(has(idle, "HOT HOST FUNCTIONS    none: no sample was taken"));
  const std::string untimed =
      text_of(trace_of({{"format", 1}, {"device_ring_launches", 16}, {"launches_untimed", 4}}));
  CHECK(has(untimed, "KERNELS    none: no launch could be timed\n"));
}

TEST_CASE("rows that are not shown are one row, and lines fit") {
  cli_test::TraceBuilder builder = cli_test::sample_trace();
  const std::string longest(700, 'k');
  for (std::uint64_t i = 0; i < 30; ++i) {
    const std::string name = i == 7 ? longest : "kernel" + std::to_string(i);
    builder.add_launch({100 + i, 41, 1, 2, 0, 1, 200'000 + i * 100, 200'050 + i * 100, name});
  }
  const cli::Trace trace = cli::parse_trace(builder.bytes, "x.pftrace");
  const std::string text = text_of(trace, 3);
  CHECK(has(text, "by device time, 3 of 32 kernels"));
  CHECK(has(text, "the other kernels"));
  CHECK(has(text, "3 of 5 functions"));
  CHECK(has(text, "the other functions"));
  std::istringstream lines(text_of(trace, 100));
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= cli::kWidth);
}

TEST_CASE("the summary as comma-separated values") {
  const cli::Trace trace = sample();
  CHECK(
      cli::csv_of(trace, cli::summary_of(trace)) ==
      R"(file,table,name,thread,count,total_ns,self_ns,max_ns,gaps,gap_ns,max_gap_ns,place,place_count
x.pftrace,kernels,solve(float*),,3,60000,,30000,2,45000,,solver.cpp:32 step,2
x.pftrace,kernels,norm,,2,20000,,15000,1,0,,sum.h:7 sum,1
x.pftrace,streams,stream 1 (legacy),,4,65000,,,2,45000,40000,,
x.pftrace,streams,stream 2 (0x7f00),,1,15000,,,0,0,0,,
x.pftrace,blocked,cuMemcpyDtoH,main (41),2,60000,,40000,,,,,
x.pftrace,blocked,cuStreamSynchronize,thread 42,1,10000,,10000,,,,,
x.pftrace,functions,step(int),,4,6000000,4000000,,,,,solver,
x.pftrace,functions,sum,,1,1000000,1000000,,,,,solver,
x.pftrace,functions,without symbols,,1,1000000,1000000,,,,,,
x.pftrace,functions,without symbols,,1,1000000,1000000,,,,,libplain.so,
x.pftrace,functions,main,,0,6000000,0,,,,,solver,
)");
}

TEST_CASE("the summary as JSON") {
  const cli::Trace trace = sample();
  const std::string text = json_of(trace);
  CHECK(
      text.starts_with("{\"schema\":\"cajeta-xpu.profile-summary\",\"schema_version\":\"1.0.0\","));
  CHECK(has(text, "\"is_complete\":true"));
  CHECK(has(text,
            "{\"kernel\":\"norm\",\"launches\":2,\"total_ns\":20000,\"max_ns\":15000,"
            "\"gaps\":1,\"gap_ns\":0,\"place\":\"sum.h:7 sum\",\"place_launches\":1}"));
  CHECK(has(text,
            "{\"stream\":\"stream 2 (0x7f00)\",\"kernels\":1,\"span_ns\":15000,\"busy_ns\":15000,"
            "\"idle_ns\":0,\"gaps\":0,\"max_gap_ns\":0}"));
  CHECK(has(text,
            "{\"function\":\"sum\",\"module\":\"solver\",\"self_samples\":1,\"total_samples\":1,"
            "\"self_ns\":1000000,\"total_ns\":1000000}"));
}
