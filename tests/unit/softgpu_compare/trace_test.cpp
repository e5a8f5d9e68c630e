// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/compare/trace.h"

#include "tests/unit/softgpu_compare/traces.h"

using namespace softgpu::compare;  // NOLINT
using compare_test::trace_of;

namespace {

std::string error_of(const std::string& content) {
  Trace trace;
  std::string error;
  REQUIRE_FALSE(parse_trace(content, &trace, &error));
  return error;
}

std::string error_of_line(const std::string& line) {
  return error_of("softgpu-trace 1\nO 1 0 1 1.1 0 - first\n" + line + "\n");
}

}  // namespace

TEST_CASE("a trace is read field by field") {
  const Trace trace = trace_of({
      "O 1 0 1 1.2 0 - kernel k args a1+0",
      "O 2 3 1 - - 1 ",
      "O 3 0 2 2.2147483649 7 1,2 copy 4x1x1 a1+0 -> host",
      "S 1 - if runs body 0",
      "S 1 w2:5 kernel b args 01",
      "D 1 done r1:0-3,9;w2:5;u3:0",
      "B 1 0 cuStreamSynchronize 2,3",
      "D 3 skipped -",
      "E 1",
      "B 2 0 cuCtxSynchronize c2",
      "Q 3 cuEventQuery e4 no 1",
      "Q 3 cuStreamQuery s1.2 yes -",
  });
  REQUIRE(trace.operations.size() == 3);
  const Operation& kernel = trace.operations[0];
  CHECK(kernel.stream == (1ull << 32 | 2));
  CHECK(kernel.text == "kernel k args a1+0");
  CHECK(kernel.outcome == Outcome::kDone);
  CHECK(kernel.steps == std::vector<std::string_view>{"if runs body 0", "kernel b args 01"});
  REQUIRE(kernel.accesses.size() == 4);
  CHECK(kernel.accesses[0].last == 3);
  CHECK(kernel.accesses[1].first == 9);
  CHECK(kernel.accesses[1].kind == AccessKind::kRead);
  CHECK(kernel.accesses[2].allocation == 2);
  CHECK(kernel.accesses[2].kind == AccessKind::kWrite);
  CHECK(kernel.accesses[3].kind == AccessKind::kUpdate);
  CHECK_FALSE(trace.operations[1].has_identity);
  CHECK(trace.operations[1].outcome == Outcome::kPending);
  CHECK(trace.operations[2].after == std::vector<OperationIndex>{0, 1});
  CHECK(trace.operations[2].stream == (2ull << 32 | 2147483649));
  CHECK(trace.operations[2].sequence == 7);
  CHECK(trace.operations[2].outcome == Outcome::kSkipped);
  REQUIRE(trace.waits.size() == 4);
  CHECK(trace.waits[0].is_over);
  CHECK(trace.waits[0].goals == std::vector<OperationIndex>{1, 2});
  CHECK(trace.waits[1].contexts == std::vector<std::uint64_t>{2});
  CHECK_FALSE(trace.waits[1].is_over);
  CHECK(trace.waits[2].object == "e4");
  CHECK_FALSE(trace.waits[2].is_over);
  CHECK(trace.waits[3].is_over);
  CHECK(trace.events.size() == 8);
}

TEST_CASE("what is no trace is refused with the reason") {
  CHECK(error_of("") == "is empty");
  CHECK(error_of("softgpu-trace 1\nO 1 0 1 1.1 0 - fir") ==
        "is truncated: its last line is not whole");
  CHECK(error_of("softgpu-trace 2\n") ==
        "is not a trace: it does not start with 'softgpu-trace 1'");
}

TEST_CASE("a wrong record is refused with its line") {
  for (const char* line : {
           "",
           "X 1",
           "O 3 0 1 1.1 1 - gap",
           "O 2 0 1 1.1 1 2 after itself",
           "O 2 0 1 1.1 1 0 after nothing",
           "O 2 0 1 11 1 - no stream",
           "O 2 0 1 1.1 x - no sequence",
           "O 2 0 1 1.1 1",
           "D 2 done -",
           "D 1 faulted -",
           "D 1 done ",
           "D 1 done r1",
           "D 1 done x1:0",
           "D 1 done r1:5-4",
           "S 2 - of nothing",
           "S 1 r1 no accesses",
           "S 1 -",
           "E 1",
           "B 1 0 cuCtxSynchronize c0",
           "B 1 0 cuStreamSynchronize 2",
           "Q 0 cuEventQuery e1 maybe 1",
       }) {
    CHECK(error_of_line(line) == "line 3 is not a record: '" + std::string(line) + "'");
  }
}

TEST_CASE("an operation ends once and a wait is open once") {
  const std::string start = "softgpu-trace 1\nO 1 0 1 1.1 0 - first\n";
  CHECK(error_of(start + "D 1 done -\nS 1 - late\n").find("line 4") == 0);
  CHECK(error_of(start + "D 1 done -\nD 1 done -\n").find("line 4") == 0);
  CHECK(error_of(start + "B 1 0 e 1\nB 1 0 e 1\n").find("line 4") == 0);
  CHECK(error_of(start + "B 1 0 e 1\nE 1\nE 1\n").find("line 5") == 0);
}

TEST_CASE("a file that cannot be read is an error") {
  Trace trace;
  std::string error;
  CHECK_FALSE(read_trace("/nonexistent", &trace, &error));
  CHECK(error == "No such file or directory");
  CHECK_FALSE(read_trace("/", &trace, &error));
  CHECK(error == "Is a directory");
}
