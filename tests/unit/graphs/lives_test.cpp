// SPDX-License-Identifier: Apache-2.0
// What outlives what: threads that remember a queue, handles that come back, functions that change
// or may not be queued any more, and what our own calls must leave as it was.
#include <thread>

#include "tests/unit/graphs/program.h"

using runtime::DirectReason;

TEST_CASE("a remembered queue does not outlive its stream") {
  Program program;
  CUstream stream = program.stream();
  CUfunction first = program.driver.add_function({8}), second = program.driver.add_function({8});
  program.launch(stream, first, 1, std::uint64_t{1});
  program.sync(stream);
  runtime::stream_destroyed(stream);
  CUstream other = nullptr;
  // Another thread's stream takes over the queue object, and its recording expects `second` next.
  std::thread([&] {
    other = program.stream();
    for (std::uint64_t step = 0; step < 3; ++step) {
      program.launch(other, first, 1, step);
      program.launch(other, second, 1, step);
      program.sync(other);
    }
    program.launch(other, first, 1, std::uint64_t{9});
  }).join();
  // The driver hands out the handle again.
  runtime::stream_created(stream, runtime::current_context(), CU_STREAM_NON_BLOCKING);
  program.launch(stream, second, 1, std::uint64_t{7});
  program.sync(other);
  program.sync(stream);
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("functions of a module with texture references are never queued again") {
  Program program;
  CUstream stream = program.stream();
  auto module = reinterpret_cast<CUmodule>(0x55);
  CUfunction function = program.driver.add_function({8}, module);
  program.launch(stream, function, 1, std::uint64_t{1});
  CHECK(program.counters().pending == 1);
  runtime::code_is_tainted(module);
  CHECK(program.counters().pending == 0);
  CUfunction later = program.driver.add_function({8}, module);
  program.launch(stream, function, 1, std::uint64_t{2});
  program.launch(stream, later, 1, std::uint64_t{3});
  CHECK(program.counters().pending == 0);
  CHECK(program.direct(DirectReason::kTextureReference) == 2);
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("a changed function attribute counts from the next launch, and its graphs are rebuilt") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (std::uint64_t step = 0; step < 3; ++step) {
    program.launch(stream, function, 1, step);
    program.launch(stream, function, 1, step);
    program.sync(stream);
  }
  CHECK(program.driver.execs.size() == 1);
  program.driver.max_dynamic_shared = 100;
  runtime::functions_changed(runtime::CodeScope::of_function(function));
  CHECK(program.driver.execs.empty());
  std::uint64_t value = 1;
  void* params[] = {&value};
  runtime::LaunchOutcome outcome = runtime::queue_launch(
      {function, {{1, 1, 1}, {32, 1, 1}, 101}, stream, params}, nullptr, false);
  CHECK_FALSE(outcome.is_queued);
  CHECK(outcome.reason == DirectReason::kLimits);
}

TEST_CASE("a first launch submits what its loading could wait for") {
  Program program;
  CUstream stream = program.stream(), other = program.stream();
  CUfunction known = program.driver.add_function({8}), unknown = program.driver.add_function({8});
  program.launch(stream, known, 1, std::uint64_t{1});
  CHECK(program.driver.log().empty());
  program.launch(other, unknown, 1, std::uint64_t{2});
  CHECK(program.driver.log().size() == 1);
  CHECK(program.counters().pending == 1);
}

TEST_CASE("our own calls leave the capture mode of the thread, and build in the relaxed one") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (std::uint64_t step = 0; step < 3; ++step) {
    program.launch(stream, function, 1, step);
    program.launch(stream, function, 1, step);
    program.sync(stream);
  }
  CHECK(program.driver.calls("cuGraphInstantiateWithFlags") == 1);
  CHECK(program.driver.calls("unsafe call") == 0);
  CHECK(program.driver.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}
