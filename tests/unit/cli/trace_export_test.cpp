// SPDX-License-Identifier: Apache-2.0
// Traces in the formats of other tools, byte for byte, and their bounds.
#include "tools/cli/trace_export.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/catch.h"
#include "tests/unit/cli/traces.h"
#include "tools/cli/failure.h"
#include "tools/cli/trace_file.h"

namespace {

cli::Trace sample() {
  return cli::parse_trace(cli_test::sample_trace().bytes, "x.pftrace");
}

std::string speedscope_of(const cli::Trace& trace, std::size_t limit, std::string* left_out) {
  const int file = memfd_create("speedscope", MFD_CLOEXEC);
  profiler::JsonWriter out(file);
  *left_out = cli::write_speedscope(trace, limit, &out);
  REQUIRE(out.finish());
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_CUR)), '\0');
  REQUIRE(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(file);
  return text;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

}  // namespace

TEST_CASE("a trace as folded stacks") {
  const cli::Exported exported = cli::folded_of(sample(), 100);
  CHECK(exported.left_out.empty());
  CHECK(exported.text ==
        "main (41);main;step(int) 4000000\n"
        "main (41);main;step(int);sum 1000000\n"
        "thread 42;code at 0x7000 1000000\n"
        "thread 42;main;step(int);libplain.so+0x50 1000000\n");
}

TEST_CASE("the largest stacks stay") {
  const cli::Exported exported = cli::folded_of(sample(), 1);
  CHECK(exported.text == "main (41);main;step(int) 4000000\n");
  CHECK(exported.left_out == "3 stacks with 42.9 % of the time are left out; see --limit");
}

TEST_CASE("a trace without samples has no stacks") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}});
  const cli::Trace trace = cli::parse_trace(builder.bytes, "x.pftrace");
  CHECK_THROWS_AS(cli::folded_of(trace, 1), cli::Failure);
}

TEST_CASE("a trace as comma-separated values") {
  const cli::Exported exported = cli::records_csv(sample(), 100);
  CHECK(exported.left_out.empty());
  CHECK(
      exported.text ==
      R"(kind,name,thread,stream,start_ns,end_ns,cpu_ns,bytes,grid,block,shared_bytes,launch_start_ns,place,stack
call,cuMemAlloc,main (41),,1000,1500,,0,,,,,,
launch,cuLaunchKernel,main (41),,5000,6000,,0,,,,,solver.cpp:32 step,main;step(int);libcudart.so.13+0x10
launch,cuLaunchKernel,main (41),,7000,8000,,0,,,,,solver.cpp:32 step,main;step(int);libcudart.so.13+0x10
launch,cuLaunchKernel,main (41),,9000,9500,,0,,,,,sum.h:7 sum,main;step(int);sum;libcudart.so.13+0x10
launch,cuLaunchKernel,thread 42,,9000,9500,,0,,,,,sum.h:7 sum,main;step(int);sum;libcudart.so.13+0x10
launch,cuLaunchKernel,thread 42,,9600,9900,,0,,,,,,
kernel,solve(float*),main (41),stream 1 (legacy),10000,20000,,,64x1x1,,0,5000,solver.cpp:32 step,main;step(int);libcudart.so.13+0x10
kernel,norm,thread 42,stream 2 (0x7f00),15000,30000,,,64x1x1,,0,9600,,
kernel,solve(float*),main (41),stream 1 (legacy),25000,55000,,,64x1x1,,0,7000,solver.cpp:32 step,main;step(int);libcudart.so.13+0x10
sample,,main (41),,50000,50000,3000000,,,,,,,main;step(int)
kernel,norm,main (41),stream 1 (legacy),55000,60000,,,64x1x1,,0,9000,sum.h:7 sum,main;step(int);sum;libcudart.so.13+0x10
sample,,thread 42,,55000,55000,1000000,,,,,,,main;step(int);libplain.so+0x50
sample,,main (41),,60000,60000,1000000,,,,,,,main;step(int)
sample,,main (41),,70000,70000,1000000,,,,,,,main;step(int);sum
sample,,thread 42,,90000,90000,1000000,,,,,,,code at 0x7000
blocked,cuMemcpyDtoH,main (41),,100000,140000,,4,,,,,,
kernel,solve(float*),thread 42,stream 1 (legacy),100000,120000,,,64x1x1,,0,9000,sum.h:7 sum,main;step(int);sum;libcudart.so.13+0x10
blocked,cuMemcpyDtoH,main (41),,200000,220000,,4,,,,,,
blocked,cuStreamSynchronize,thread 42,,300000,310000,,0,,,,,,
)");
}

TEST_CASE("the first records stay") {
  const cli::Exported exported = cli::records_csv(sample(), 3);
  CHECK(count_of(exported.text, "\n") == 4);
  CHECK(exported.left_out ==
        "16 of 19 records are left out, those after the first 0.008 ms; see --limit");
}

TEST_CASE("a trace for speedscope") {
  std::string left_out;
  CHECK(speedscope_of(sample(), 100, &left_out) == R"--({
 "$schema":"https://www.speedscope.app/file-format-schema.json",
 "exporter":"cajeta-xpu",
 "name":"./solver 1",
 "shared":{
  "frames":[
   {"name":"main"},
   {"name":"step(int)"},
   {"name":"sum"},
   {"name":"libplain.so+0x50"},
   {"name":"code at 0x7000"},
   {"name":"solve(float*)"},
   {"name":"norm"}
  ]
 },
 "profiles":[
  {
   "type":"sampled",
   "name":"main (41), CPU time",
   "unit":"nanoseconds",
   "startValue":0,
   "endValue":5000000,
   "samples":[[0,1],[0,1],[0,1,2]],
   "weights":[3000000,1000000,1000000]
  },
  {
   "type":"sampled",
   "name":"thread 42, CPU time",
   "unit":"nanoseconds",
   "startValue":0,
   "endValue":2000000,
   "samples":[[0,1,3],[4]],
   "weights":[1000000,1000000]
  },
  {
   "type":"evented",
   "name":"stream 1 (legacy)",
   "unit":"nanoseconds",
   "startValue":0,
   "endValue":110000,
   "events":[{"type":"O","frame":5,"at":0},{"type":"C","frame":5,"at":10000},)--"
                                                   R"--({"type":"O","frame":5,"at":15000},)--"
                                                   R"--({"type":"C","frame":5,"at":45000},)--"
                                                   R"--({"type":"O","frame":6,"at":45000},)--"
                                                   R"--({"type":"C","frame":6,"at":50000},)--"
                                                   R"--({"type":"O","frame":5,"at":90000},)--"
                                                   R"--({"type":"C","frame":5,"at":110000}]
  },
  {
   "type":"evented",
   "name":"stream 2 (0x7f00)",
   "unit":"nanoseconds",
   "startValue":0,
   "endValue":20000,
   "events":[{"type":"O","frame":6,"at":5000},{"type":"C","frame":6,"at":20000}]
  }
 ]
}
)--");
  CHECK(left_out.empty());
}

TEST_CASE("kernels never overlap for speedscope, and the first records stay") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}, {"device_ring_launches", 1}});
  builder.add_stream(1, 1, "stream 1");
  builder.add_thread(41, "main");
  builder.add_launch({1, 41, 1, 2, 0, 1, 100, 200, "a"});
  builder.add_launch({2, 41, 1, 2, 0, 1, 150, 180, "b"});
  builder.add_launch({3, 41, 1, 2, 0, 1, 300, 310, "c"});
  const cli::Trace trace = cli::parse_trace(builder.bytes, "x.pftrace");
  std::string left_out;
  const std::string text = speedscope_of(trace, 2, &left_out);
  CHECK(count_of(text, "\"at\":100}") == 3);
  CHECK(count_of(text, "\"type\":\"C\"") == 2);
  CHECK(left_out == "1 of 3 records are left out, those after the first 0.000 ms; see --limit");
}
