// SPDX-License-Identifier: Apache-2.0
// Each kind of difference between two runs, in traces of a few operations.
#include "tools/softgpu/compare/compare.h"

#include <chrono>

#include "tests/unit/softgpu_compare/traces.h"

using compare_test::compare;
using softgpu::compare::Finding;
using softgpu::compare::Report;
using Lines = std::vector<std::string>;

namespace {

// Two operations on two streams, the second with `after` as its list.
Lines two_streams(const std::string& after, const std::string& first_access,
                  const std::string& second_access, const std::string& between = "") {
  Lines lines = {"O 1 0 1 1.1 0 - kernel a", "D 1 done " + first_access};
  if (!between.empty()) lines.push_back(between);
  lines.push_back("O 2 0 1 1.2 0 " + after + " kernel b");
  lines.push_back("D 2 done " + second_access);
  return lines;
}

Lines joined(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

void check_only(const Report& report, Finding finding, std::uint64_t count = 1) {
  for (std::size_t kind = 0; kind < softgpu::compare::kFindings; ++kind) {
    INFO("finding " << kind);
    CHECK(report.counts[kind] == (kind == static_cast<std::size_t>(finding) ? count : 0));
  }
}

void check_equal(const Report& report) {
  CHECK_FALSE(report.has_bugs());
  check_only(report, Finding::kRace, 0);
}

}  // namespace

TEST_CASE("a run equals itself") {
  const Lines lines = joined(two_streams("1", "w1:0-3", "r1:0-3"),
                             {"B 1 0 cuStreamSynchronize 2", "E 1", "Q 0 cuEventQuery e1 yes 1"});
  const Report report = compare(lines, lines);
  check_equal(report);
  CHECK(report.summary() ==
        "2 operations, 2 waits: equal; 0 added orders, 0 races, 0 with other accesses");
}

TEST_CASE("an operation that is not submitted is missing") {
  const Report report =
      compare(two_streams("-", "-", "-"), {"O 1 0 1 1.1 0 - kernel a", "D 1 done -"});
  check_only(report, Finding::kMissing);
  CHECK(report.lines_of(Finding::kMissing).front() == "1.2#0 [kernel b]");
}

TEST_CASE("one operation too many is extra") {
  const Lines once = {"O 1 0 1 1.1 0 - kernel a", "D 1 done -"};
  const Lines twice = joined(once, {"O 2 0 1 1.1 1 1 kernel a", "D 2 done -"});
  check_only(compare(once, twice), Finding::kExtra);
}

TEST_CASE("other arguments are a change") {
  const Report report =
      compare({"O 1 0 1 1.1 0 - kernel a args 01"}, {"O 1 0 1 1.1 0 - kernel a args 02"});
  check_only(report, Finding::kChanged);
  CHECK(report.lines_of(Finding::kChanged).front() ==
        "1.1#0 [kernel a args 01] became 1.1#0 [kernel a args 02]");
}

TEST_CASE("another step of a conditional node is a change") {
  const auto run = [](const Lines& steps, const std::string& end) {
    Lines lines = {"O 1 0 1 1.1 0 - while"};
    for (const std::string& step : steps) lines.push_back("S 1 - " + step);
    lines.push_back("D 1 " + end + " -");
    return lines;
  };
  const Lines once = run({"runs body 0", "kernel a", "runs nothing"}, "done");
  check_equal(compare(once, once));
  const Lines twice =
      run({"runs body 0", "kernel a", "runs body 0", "kernel a", "runs nothing"}, "done");
  const Report more = compare(once, twice);
  check_only(more, Finding::kChanged);
  CHECK(more.lines_of(Finding::kChanged).front() ==
        "1.1#0 [while] step 3 [runs nothing] became [runs body 0]");
  const Report fewer = compare(once, run({"runs body 0", "kernel a"}, "done"));
  check_only(fewer, Finding::kChanged);
  CHECK(fewer.lines_of(Finding::kChanged).front() ==
        "1.1#0 [while] step 3 [runs nothing] became nothing");
  check_equal(compare(once, run({"runs body 0"}, "skipped")));
}

TEST_CASE("what never ended in bare need not be submitted") {
  check_equal(compare({"O 1 0 1 1.1 0 - kernel a"}, {}));
  check_equal(compare({"O 1 0 1 1.1 0 - kernel a", "D 1 skipped -"}, {}));
}

TEST_CASE("what a fault skips may be submitted in addition") {
  check_equal(compare({}, {"O 1 0 1 1.1 0 - kernel a", "D 1 skipped -"}));
}

TEST_CASE("conflicting operations that lose their order are found") {
  for (const auto& [first, second] :
       std::vector<std::pair<std::string, std::string>>{{"w1:0-3", "r1:3"},
                                                        {"r1:2", "w1:0-9"},
                                                        {"w1:4", "w1:4"},
                                                        {"u1:4", "r1:4"},
                                                        {"u1:0", "u1:0"}}) {
    INFO(first << " and " << second);
    const Report report = compare(two_streams("1", first, second), two_streams("-", first, second));
    check_only(report, Finding::kLostOrder);
  }
  const Report report =
      compare(two_streams("1", "w7:0-3", "r7:3"), two_streams("-", "w7:0-3", "r7:3"));
  CHECK(report.lines_of(Finding::kLostOrder).front() ==
        "1.1#0 [kernel a] and 1.2#0 [kernel b] on allocation 7 byte 192");
}

TEST_CASE("operations without a conflict may lose their order") {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"r1:0-3", "r1:0-3"}, {"w1:0-3", "w1:4"}, {"w1:0", "w2:0"}, {"-", "w1:0"}}) {
    INFO(first << " and " << second);
    check_equal(compare(two_streams("1", first, second), two_streams("-", first, second)));
  }
}

TEST_CASE("operations that swap are found") {
  const Lines swapped = {"O 1 0 1 1.2 0 - kernel b", "D 1 done w1:0", "O 2 0 1 1.1 0 1 kernel a",
                         "D 2 done w1:0"};
  const Report report = compare(two_streams("1", "w1:0", "w1:0"), swapped);
  CHECK(report.count(Finding::kLostOrder) == 1);
  CHECK(report.count(Finding::kAddedOrder) == 1);
}

TEST_CASE("order that is kept by another way is kept") {
  const Lines by_third = {"O 1 0 1 1.1 0 - kernel a", "D 1 done w1:0",
                          "O 2 0 1 - - 1 ",           "D 2 done -",
                          "O 3 0 1 1.2 0 2 kernel b", "D 3 done r1:0"};
  check_equal(compare(two_streams("1", "w1:0", "r1:0"), by_third));
}

TEST_CASE("every reader is held against the next writer") {
  const auto run = [](const std::string& after) {
    return Lines{"O 1 0 1 1.1 0 - read a",
                 "D 1 done r1:0",
                 "O 2 0 1 1.1 1 1 read b",
                 "D 2 done r1:0",
                 "O 3 0 1 1.2 0 " + after + " write",
                 "D 3 done w1:0"};
  };
  CHECK(compare(run("2"), run("1")).count(Finding::kLostOrder) == 1);
  CHECK(compare(run("2"), run("-")).count(Finding::kLostOrder) == 2);
}

TEST_CASE("a writer hides an earlier one from those that follow it only") {
  // a, then b and c after a, in no order among themselves.
  const auto run = [](const std::string& after) {
    return Lines{"O 1 0 1 1.1 0 - write a",
                 "D 1 done w1:0",
                 "O 2 0 1 1.2 0 1 write b",
                 "D 2 done w1:0",
                 "O 3 0 1 1.3 0 " + after + " write c",
                 "D 3 done w1:0"};
  };
  const Report report = compare(run("1"), run("-"));
  CHECK(report.count(Finding::kLostOrder) == 1);
  CHECK(report.lines_of(Finding::kLostOrder).front() ==
        "1.1#0 [write a] and 1.3#0 [write c] on allocation 1 byte 0");
}

TEST_CASE("the host orders what a thread submits after it has seen") {
  const std::string access = "w1:0";
  const Lines waits =
      joined({"O 1 0 1 1.1 0 - kernel a", "D 1 done w1:0", "B 1 0 cuStreamSynchronize 1", "E 1"},
             {"O 2 0 1 1.2 0 - kernel b", "D 2 done w1:0"});
  const Lines forgets = {"O 1 0 1 1.1 0 - kernel a",    "D 1 done w1:0",
                         "O 2 0 1 1.2 0 - kernel b",    "D 2 done w1:0",
                         "B 1 0 cuStreamSynchronize 1", "E 1"};
  check_only(compare(waits, forgets), Finding::kLostOrder);
  // The program did not wait: a race, in whatever order it was submitted.
  CHECK(compare(forgets, waits).count(Finding::kRace) == 1);
  CHECK_FALSE(compare(forgets, waits).has_bugs());
}

TEST_CASE("every way to see a completion orders") {
  for (const char* seen : {"Q 0 cuStreamQuery s1.1 yes 1", "Q 0 cuEventQuery e1 yes 1"}) {
    const Lines ordered = two_streams("-", "w1:0", "r1:0", seen);
    const Lines lost = joined(two_streams("-", "w1:0", "r1:0"), {seen});
    CHECK(compare(ordered, ordered).count(Finding::kRace) == 0);
    check_only(compare(ordered, lost), Finding::kLostOrder);
  }
  const Lines context = {"O 1 0 1 1.1 0 - kernel a",  "D 1 done w1:0",
                         "B 9 0 cuCtxSynchronize c1", "E 9",
                         "O 2 0 1 1.2 0 - kernel b",  "D 2 done r1:0"};
  CHECK(compare(context, context).count(Finding::kRace) == 0);
}

TEST_CASE("a yes heard by chance orders nothing") {
  const auto run = [](const char* answer) {
    return two_streams("-", "w1:0", "r1:0", std::string("Q 0 cuStreamQuery s1.1 ") + answer + " 1");
  };
  check_only(compare(run("yes"), run("no")), Finding::kRace);
  check_equal(compare(run("yes"), run("yes")));
  // Asked until it is heard: the second run needed one question more.
  Lines again = run("yes");
  again.insert(again.begin() + 1, "Q 0 cuStreamQuery s1.1 no 1");
  check_equal(compare(run("yes"), again));
}

TEST_CASE("a query that says no orders nothing") {
  const Lines lines = two_streams("-", "w1:0", "r1:0", "Q 0 cuStreamQuery s1.1 no 1");
  check_only(compare(lines, lines), Finding::kRace);
}

TEST_CASE("bare is read strictly and shimmed liberally") {
  // Seen by thread 0, submitted by thread 5 (the deadline's).
  const auto run = [](const char* submitter) {
    return Lines{"O 1 0 1 1.1 0 - kernel a",
                 "D 1 done w1:0",
                 "B 1 0 cuStreamSynchronize 1",
                 "E 1",
                 std::string("O 2 ") + submitter + " 1 1.2 0 - kernel b",
                 "D 2 done r1:0"};
  };
  check_equal(compare(run("0"), run("5")));
  check_only(compare(run("5"), run("5")), Finding::kRace);
}

TEST_CASE("what is submitted while another thread waits is not ordered") {
  const Lines during = {"O 1 0 1 1.1 0 - kernel a", "D 1 done w1:0", "B 1 0 cuStreamSynchronize 1",
                        "O 2 5 1 1.2 0 - kernel b", "E 1",           "D 2 done r1:0"};
  const Lines after = {"O 1 0 1 1.1 0 - kernel a",    "D 1 done w1:0",
                       "B 1 0 cuStreamSynchronize 1", "E 1",
                       "O 2 0 1 1.2 0 - kernel b",    "D 2 done r1:0"};
  check_only(compare(after, during), Finding::kLostOrder);
}

TEST_CASE("a wait that comes too early is a lost observation") {
  const Lines bare = {"O 1 0 1 1.1 0 - kernel a",    "D 1 done -",
                      "O 2 0 1 1.1 1 1 kernel b",    "D 2 done -",
                      "B 1 0 cuStreamSynchronize 2", "E 1"};
  const Lines early = {"O 1 0 1 1.1 0 - kernel a",    "D 1 done -",
                       "B 1 0 cuStreamSynchronize 1", "E 1",
                       "O 2 0 1 1.1 1 1 kernel b",    "D 2 done -"};
  const Report report = compare(bare, early);
  check_only(report, Finding::kLostObservation);
  CHECK(report.lines_of(Finding::kLostObservation).front() ==
        "thread 0 cuStreamSynchronize call 1 came before 1.1#1 [kernel b]");
}

TEST_CASE("a wait sees through events and contexts") {
  // The kernel is not the goal but comes before it.
  const auto run = [](const std::string& after, const std::string& goals) {
    return Lines{"O 1 0 1 1.1 0 - kernel a",
                 "O 2 0 1 1.2 0 " + after + " wait e1",
                 "D 1 done -",
                 "D 2 done -",
                 "B 1 0 cuEventSynchronize " + goals,
                 "E 1"};
  };
  check_equal(compare(run("1", "2"), run("1", "c1")));
  check_equal(compare(run("1", "c1"), run("1", "2")));
  check_only(compare(run("1", "2"), run("-", "2")), Finding::kLostObservation);
  check_only(compare(run("-", "c1"), run("-", "2")), Finding::kLostObservation);
}

TEST_CASE("a wait that is not made or made twice is found") {
  const Lines once = {"O 1 0 1 1.1 0 - kernel a", "D 1 done -", "B 1 0 cuCtxSynchronize c1", "E 1"};
  const Lines none = {once[0], once[1]};
  const Lines twice = joined(once, {"B 2 0 cuCtxSynchronize c1", "E 2"});
  check_only(compare(once, none), Finding::kLostObservation);
  check_only(compare(none, once), Finding::kLostObservation);
  check_only(compare(once, twice), Finding::kLostObservation);
}

TEST_CASE("waiting threads are known by their rank") {
  const auto run = [](const char* first, const char* second) {
    return Lines{"O 1 0 1 1.1 0 - kernel a",
                 "O 2 0 1 1.2 0 - kernel b",
                 "D 1 done -",
                 "D 2 done -",
                 std::string("B 1 ") + second + " cuStreamSynchronize 2",
                 "E 1",
                 std::string("B 2 ") + first + " cuStreamSynchronize 1",
                 "E 2"};
  };
  check_equal(compare(run("3", "17"), run("5", "6")));
}

TEST_CASE("threads that race are not held to what they saw of each other") {
  // Thread 0 frees memory, which waits for the context; thread 5 submits in between or later.
  const std::string theirs = "O 1 5 1 1.2 0 - kernel b", ours = "O 2 0 1 1.1 0 - kernel a";
  const Lines wait = {"B 1 0 cuMemFree_v2 c1", "E 1"};
  const Lines first = {theirs, ours, "D 1 done -", "D 2 done -", wait[0], wait[1]};
  const Lines second = {"O 1 0 1 1.1 0 - kernel a", "D 1 done -", wait[0], wait[1],
                        "O 2 5 1 1.2 0 - kernel b", "D 2 done -"};
  const softgpu::compare::Options racing{true};
  const auto run = [](const Lines& lines) { return compare_test::trace_of(lines); };
  check_only(compare(first, second), Finding::kLostObservation);
  check_equal(softgpu::compare::compare(run(first), run(second), racing));
  // Its own are missing in a wait that forgot them.
  const Lines forgets = {
      wait[0],     wait[1], "O 1 0 1 1.1 0 - kernel a", "D 1 done -", "O 2 5 1 1.2 0 - kernel b",
      "D 2 done -"};
  check_only(softgpu::compare::compare(run(first), run(forgets), racing),
             Finding::kLostObservation);
}

TEST_CASE("queries are compared by what they ask for") {
  const Lines kernels = {"O 1 0 1 1.1 0 - kernel a", "D 1 done -", "O 2 0 1 1.1 1 1 kernel b"};
  const Lines polls = joined(kernels, {"Q 0 cuStreamQuery s1.1 no 2", "Q 0 cuStreamQuery s1.1 no 2",
                                       "D 2 done -", "Q 0 cuStreamQuery s1.1 yes 2"});
  const Lines asks = joined(kernels, {"D 2 done -", "Q 0 cuStreamQuery s1.1 yes 2"});
  check_equal(compare(polls, asks));
  check_equal(compare(asks, polls));
  const Lines early = {kernels[0], kernels[1],   "Q 0 cuStreamQuery s1.1 yes 1",
                       kernels[2], "D 2 done -", "Q 0 cuStreamQuery s1.1 yes 2"};
  check_only(compare(polls, early), Finding::kLostObservation);
  // The answer never was yes: still the question must be about both.
  const Lines denied = joined(kernels, {"Q 0 cuStreamQuery s1.1 no 2", "D 2 done -"});
  const Lines denied_early = {kernels[0], kernels[1], "Q 0 cuStreamQuery s1.1 no 1", kernels[2],
                              "D 2 done -"};
  check_only(compare(denied, denied_early), Finding::kLostObservation);
}

TEST_CASE("order that the shim adds is counted and no bug") {
  const Report report = compare(two_streams("-", "-", "-"), two_streams("1", "-", "-"));
  check_only(report, Finding::kAddedOrder);
  CHECK_FALSE(report.has_bugs());
  // Through a node without identity too.
  const Lines through = {"O 1 0 1 1.1 0 - kernel a", "D 1 done -", "O 2 0 1 - - 1 ",
                         "O 3 0 1 1.2 0 2 kernel b", "D 3 done -"};
  check_only(compare(two_streams("-", "-", "-"), through), Finding::kAddedOrder);
}

TEST_CASE("two atomic updates are no race") {
  const Lines updates = two_streams("-", "u1:0", "u1:0");
  check_equal(compare(updates, updates));
  const Lines mixed = two_streams("-", "u1:0", "w1:0");
  check_only(compare(mixed, mixed), Finding::kRace);
}

TEST_CASE("other accesses are counted and no bug") {
  const Report report = compare(two_streams("-", "w1:0", "-"), two_streams("-", "w1:1", "-"));
  check_only(report, Finding::kAccesses);
  CHECK_FALSE(report.has_bugs());
}

TEST_CASE("lines are capped and counts are not") {
  Lines many;
  for (int i = 1; i <= 50; ++i) {
    many.push_back("O " + std::to_string(i) + " 0 1 1." + std::to_string(i) + " 0 - kernel");
    many.push_back("D " + std::to_string(i) + " done -");
  }
  const Report report = compare(many, {});
  CHECK(report.count(Finding::kMissing) == 50);
  CHECK(report.lines_of(Finding::kMissing).size() == softgpu::compare::kMostLines);
}

TEST_CASE("a hundred thousand operations are compared") {
  // Sixteen streams over whole buffers and single granules, joined now and then. One order is lost
  // near the end: the last operation of stream 5 waits for nothing.
  constexpr int kOperations = 100'000, kStreams = 16;
  const auto run = [](bool is_lost) {
    Lines lines;
    std::vector<int> tails(kStreams, 0);
    for (int i = 1; i <= kOperations; ++i) {
      const int stream = i % kStreams;
      std::string after = tails[stream] == 0 ? "-" : std::to_string(tails[stream]);
      if (i % 100 == 0) {  // a legacy join
        after.clear();
        for (const int tail : tails) after += std::to_string(tail) + ',';
        after.pop_back();
      }
      if (is_lost && i == kOperations - 11) after = "-";
      const std::string number = std::to_string(i);
      lines.push_back("O " + number + " 0 1 1." + std::to_string(stream) + ' ' +
                      std::to_string(i / kStreams) + ' ' + after + " kernel");
      lines.push_back("D " + number + " done r1:0-4095;w" + std::to_string(2 + stream) + ":" +
                      std::to_string(i % 7) + "-" + std::to_string(i % 50 + 100));
      tails[stream] = i;
      if (i % 100 == 0) tails.assign(kStreams, i);
    }
    return lines;
  };
  const Lines bare = run(false);
  check_equal(compare(bare, bare));
  const Report report = compare(bare, run(true));
  CHECK(report.count(Finding::kLostOrder) > 0);
}
