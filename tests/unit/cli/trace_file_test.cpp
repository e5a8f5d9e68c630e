// SPDX-License-Identifier: Apache-2.0
// Reading traces: what the profiler writes, what else may be in the file, and every way it may end.
#include "tools/cli/trace_file.h"

#include <random>

#include "tests/unit/catch.h"
#include "tests/unit/cli/traces.h"
#include "tools/cli/failure.h"
#include "tools/cli/report_file.h"
#include "tools/cli/trace_export.h"
#include "tools/cli/trace_summary.h"

namespace {

using cli::kNone;

cli::Trace read(const cli_test::TraceBuilder& builder) {
  return cli::parse_trace(builder.bytes, "x.pftrace");
}

std::string refusal(const std::string& bytes) {
  try {
    (void)cli::parse_trace(bytes, "x.pftrace");
  } catch (const cli::Failure& failure) {
    return failure.what();
  }
  return "";
}

std::string text_of(const std::string& bytes) {
  const cli::Trace trace = cli::parse_trace(bytes, "x.pftrace");
  return cli::text_of(cli::page_of(trace, cli::summary_of(trace), 0), false);
}

}  // namespace

TEST_CASE("a trace is read record by record") {
  const cli::Trace trace = read(cli_test::sample_trace());
  CHECK(trace.remarks.empty());
  CHECK(trace.facts.version == "0.1.0");
  CHECK(trace.facts.command == "./solver 1");
  CHECK(trace.facts.pid == 77);
  CHECK(trace.facts.sample_hz == 1000);
  CHECK(trace.facts.launches_untimed == 3);
  CHECK(trace.facts.own_cost_ns == 12'000);
  CHECK(trace.facts.is_complete);
  REQUIRE(trace.threads.size() == 2);
  CHECK(cli::thread_name(trace, 0) == "main (41)");
  CHECK(cli::thread_name(trace, 1) == "thread 42");
  REQUIRE(trace.streams.size() == 2);
  CHECK(trace.streams[1].name == "stream 2 (0x7f00)");
  CHECK(trace.streams[1].context == "device context 1");
  REQUIRE(trace.spans.size() == 9);
  CHECK(trace.spans[0].kind == cli::SpanKind::kCall);
  CHECK(trace.names[trace.spans[1].name] == "cuMemcpyDtoH");
  CHECK(trace.spans[1].kind == cli::SpanKind::kBlocked);
  CHECK(trace.spans[1].bytes == 4);
  CHECK(trace.spans[1].start_ns == 100'000);
  CHECK(trace.spans[1].end_ns == 140'000);
  REQUIRE(trace.kernels.size() == 5);
  CHECK(trace.names[trace.kernels[0].name] == "solve(float*)");
  CHECK(trace.names[trace.kernels[0].grid] == "64x1x1");
  CHECK(trace.kernels[0].start_ns == 10'000);
  REQUIRE(trace.kernels[3].launch != kNone);
  CHECK(trace.spans[trace.kernels[3].launch].thread == 1);
  CHECK(trace.spans[trace.kernels[3].launch].kind == cli::SpanKind::kLaunch);
  CHECK(trace.spans[trace.kernels[4].launch].stack == kNone);
}

TEST_CASE("samples, stacks and symbols of a trace") {
  const cli::Trace trace = read(cli_test::sample_trace());
  REQUIRE(trace.samples.size() == 5);
  CHECK(trace.samples[0].weight == 3);
  CHECK(trace.samples[0].time_ns == 50'000);
  using Names = std::vector<std::string>;
  CHECK(cli::stack_names(trace, trace.samples[0].stack) == Names{"main", "step(int)"});
  CHECK(cli::stack_names(trace, trace.samples[2].stack) == Names{"main", "step(int)", "sum"});
  CHECK(cli::stack_names(trace, trace.samples[3].stack) ==
        Names{"main", "step(int)", "libplain.so+0x50"});
  CHECK(cli::stack_names(trace, trace.samples[4].stack) == Names{"code at 0x7000"});
  CHECK(cli::place_of(trace, trace.spans[trace.kernels[0].launch].stack) == "solver.cpp:32 step");
  CHECK(cli::place_of(trace, trace.spans[trace.kernels[2].launch].stack) == "sum.h:7 sum");
  CHECK(cli::place_of(trace, kNone).empty());
}

TEST_CASE("what is not ours in a trace changes nothing") {
  const std::string ours = cli_test::sample_trace().bytes;
  const std::string plain = text_of(ours);
  cli_test::TraceBuilder foreign;
  foreign.add_foreign();
  CHECK(text_of(foreign.bytes + ours) == plain);
  CHECK(text_of(ours + foreign.bytes) == plain);
  // A trace of another tool behind ours, which gave its packets our number.
  cli_test::TraceBuilder other;
  other.add_start();
  other.add_call("blocked", 41, "cuMemcpyDtoH", 1, 2);
  CHECK(text_of(ours + other.bytes) == plain);
  CHECK(text_of(other.bytes + ours) == plain);
}

TEST_CASE("a trace may end anywhere") {
  const std::string whole = cli_test::sample_trace().bytes;
  const std::size_t header =
      static_cast<unsigned char>(whole[1]) % 128u + 128u * static_cast<unsigned char>(whole[2]) + 3;
  REQUIRE(header < whole.size());
  std::size_t kernels = 0, cut = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    if (size < header) {
      CHECK(refusal(part).starts_with("x.pftrace: "));
      continue;
    }
    const cli::Trace trace = cli::parse_trace(part, "x.pftrace");
    CHECK(trace.kernels.size() >= kernels);  // never loses what it had with less
    kernels = trace.kernels.size();
    // The header counts five launches: whatever is missing is told of.
    const bool says_so = !trace.remarks.empty();
    CHECK((says_so || kernels == 5));
    for (const std::string& remark : trace.remarks) cut += remark.starts_with("the last packet");
    (void)text_of(part);
  }
  CHECK(kernels == 5);
  CHECK(cut > whole.size() / 2);
}

TEST_CASE("what is no trace gets one line") {
  CHECK(refusal("") == "x.pftrace: the file is empty; expected a trace");
  CHECK(refusal("\n") == "x.pftrace: no trace: expected the packets of one");
  CHECK(refusal("{\"schema\":1}").ends_with("of a report see cajeta-xpu report"));
  CHECK(refusal("\n{\"schema\":\"cajeta-xpu.report\"}").ends_with("cajeta-xpu report"));
  CHECK(refusal(std::string("\x1f\x8b\x08\x00", 4)).ends_with("expected the packets of one"));
  cli_test::TraceBuilder foreign;
  foreign.add_foreign();
  CHECK(refusal(foreign.bytes).find("no trace of the profiler") != std::string::npos);
  cli_test::TraceBuilder newer;
  newer.add_header({{"format", 2}});
  CHECK(refusal(newer.bytes).find("format: expected 1, found 2") != std::string::npos);
  const std::string one = cli_test::sample_trace().bytes;
  CHECK(refusal(one + one).find("several processes") != std::string::npos);
}

TEST_CASE("reports and traces are told apart by their content") {
  CHECK(cli::is_trace(cli_test::sample_trace().bytes));
  CHECK_FALSE(cli::is_trace("\n{\"schema\": \"cajeta-xpu.report\", \"schema_version\": \"1.0\"}"));
  CHECK_FALSE(cli::is_trace("cajeta-xpu 0.1.0  pid 1"));
  try {
    (void)cli::parse_report(cli_test::sample_trace().bytes, "x.pftrace");
    FAIL("a trace was read as a report");
  } catch (const cli::Failure& failure) {
    CHECK(std::string(failure.what()).find("cajeta-xpu profile summary") != std::string::npos);
  }
}

TEST_CASE("records that make no sense are counted and left out") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}, {"device_ring_launches", 1}, {"sample_hz", 1}});
  builder.add_thread(41, "main");
  builder.add_call("blocked", 41, "cuEventSynchronize", 900, 100);  // ends before it begins
  builder.add_call("blocked", 43, "cuEventSynchronize", 100, 900);  // no such track
  builder.add_call("other", 41, "cuEventSynchronize", 100, 900);    // no such category
  builder.bytes += std::string("\x0a\x03\x5a\x05\x01", 5);  // an event longer than its packet
  const cli::Trace trace = read(builder);
  CHECK(trace.spans.empty());
  CHECK(trace.remarks ==
        std::vector<std::string>{"1 broken packets are left out",
                                 "2 events without a track or without an end are left out"});
  builder.bytes += std::string(4096, '\0');  // as a machine that lost its power leaves it
  CHECK(read(builder).remarks.back().find("no packet begins at byte ") == 0);
}

TEST_CASE("any bytes may be in a trace") {
  const std::string whole = cli_test::sample_trace().bytes;
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (int change = 0; change < 4; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      const cli::Trace trace = cli::parse_trace(bytes, "x");
      (void)cli::page_of(trace, cli::summary_of(trace), 3);
      (void)cli::records_csv(trace, 10);
    } catch (const cli::Failure& failure) {
      CHECK(std::string(failure.what()).find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("the Python line is the place, with code of the program's own that is behind it") {
  cli_test::TraceBuilder builder;
  builder.add_header({{"format", 1}, {"device_ring_launches", 1}},
                     {{"python", "3.12.1    "}, {"python_unread", "          "}});
  builder.add_thread(41, "main");
  builder.add_stream(1, 1, "stream 1");
  const std::uint64_t interpreter = builder.frame("usr/lib/libpython3.12.so.1.0", 0x10);
  const std::uint64_t bridge = builder.frame("usr/lib/libffi.so.8", 0x20);
  const std::uint64_t runtime = builder.frame("usr/lib/libcudart.so.13", 0x30);
  const std::uint64_t model = builder.frame("home/model.so", 0x40);
  const std::uint64_t line = builder.frame("[python]", 1), unknown = builder.frame("[python]", 2);
  builder.add_symbols("[python]", 1, {{"Net.step", "/home/train.py", 12}});
  builder.add_symbols("[python]", 2, {{"<lambda>", "<cell 3>", 0}});
  builder.add_symbols("home/model.so", 0x40, {{"run(int)", "/home/model.cpp", 7}});
  const std::vector<std::vector<std::uint64_t>> stacks = {
      {interpreter, bridge, line}, {interpreter, model, runtime, line}, {unknown}, {runtime, line}};
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    builder.add_launch({i + 1, 41, 1, 2, builder.stack(stacks[i]), 1, 10, 20, "k"});
  }
  const cli::Trace trace = read(builder);
  std::vector<std::string> places;
  for (const cli::TraceSpan& span : trace.spans) {
    places.push_back(cli::place_of(trace, span.stack));
  }
  CHECK(places == std::vector<std::string>{"train.py:12 Net.step",
                                           "train.py:12 Net.step by model.cpp:7 run",
                                           "<cell 3>:? <lambda>", "train.py:12 Net.step"});
  CHECK(trace.facts.python == "3.12.1");
  CHECK(trace.facts.python_unread.empty());
}

TEST_CASE("functions are shown without their parameters") {
  CHECK(cli::short_name("main") == "main");
  CHECK(cli::short_name("a::(anonymous namespace)::f(int (*)(char)) const") == "a::f");
  CHECK(cli::short_name("f(int)::{lambda()#1}::operator()() const") ==
        "f(int)::{lambda()#1}::operator()");
  CHECK(cli::short_name("f<int, (Mode)3>") == "f<int, (Mode)3>");
  CHECK(cli::short_name("f<int, (Mode)3>(int)") == "f<int, (Mode)3>");
  CHECK(cli::short_name("operator()") == "operator()");
  CHECK(cli::short_name("a::operator()(int)") == "a::operator()");
  CHECK(cli::short_name(")") == ")");
  CHECK(cli::short_name("(x)") == "(x)");
  CHECK(cli::short_name("").empty());
}
