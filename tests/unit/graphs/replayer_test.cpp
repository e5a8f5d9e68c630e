// SPDX-License-Identifier: Apache-2.0
// Record, patch and replay over the fake driver: what is submitted, when, and with which values.
#include <atomic>
#include <random>
#include <thread>

#include "runtime/deadline.h"
#include "tests/unit/graphs/program.h"

using runtime::DirectReason;

namespace {

// Three kernels, the second with a changing argument.
void pass(Program& program, CUstream stream, const std::vector<CUfunction>& functions,
          std::uint64_t step) {
  REQUIRE(program.launch(stream, functions[0], 1, std::uint64_t{7}, 1.0f) == CUDA_SUCCESS);
  REQUIRE(program.launch(stream, functions[1], 2, step) == CUDA_SUCCESS);
  REQUIRE(program.launch(stream, functions[0], 1, std::uint64_t{9}, 2.0f) == CUDA_SUCCESS);
  REQUIRE(program.sync(stream) == CUDA_SUCCESS);
}

std::vector<CUfunction> two_functions(Program& program) {
  return {program.driver.add_function({8, 4}), program.driver.add_function({8})};
}

}  // namespace

TEST_CASE("the first pass is direct, the second records, the third replays") {
  Program program;
  CUstream stream = program.stream();
  std::vector<CUfunction> functions = two_functions(program);
  for (std::uint64_t step = 0; step < 10; ++step) {
    pass(program, stream, functions, step);
    CHECK(program.driver.log() == program.asked);
    CHECK(program.driver.calls("cuLaunchKernel") == 3);
    CHECK(program.driver.calls("cuGraphLaunch") == static_cast<int>(step));
    // One argument changes; the pass that records holds it already.
    CHECK(program.counters().patches == (step < 2 ? 0 : step - 1));
  }
  CHECK(program.counters().graphs_built == 1);
  CHECK(program.counters().replayed == 27);
  CHECK(program.driver.calls("cuGraphAddKernelNode_v2") == 3);
}

TEST_CASE("a driver without cuFuncLoad loads by launching, and still replays from the third pass") {
  Program program;
  program.driver.remove("cuFuncLoad");
  CUstream stream = program.stream();
  std::vector<CUfunction> functions = two_functions(program);
  for (std::uint64_t step = 0; step < 4; ++step) pass(program, stream, functions, step);
  CHECK(program.driver.log() == program.asked);
  CHECK(program.direct(DirectReason::kFirstLaunch) == 2);
  CHECK(program.driver.calls("cuGraphLaunch") == 3);
}

TEST_CASE("unchanged arguments patch nothing, changed shapes patch their node") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (unsigned step = 0; step < 6; ++step) {
    program.launch(stream, function, 1, std::uint64_t{1});
    program.launch(stream, function, step < 4 ? 2 : 3, std::uint64_t{2});
    program.sync(stream);
  }
  CHECK(program.driver.log() == program.asked);
  CHECK(program.counters().patches == 1);
}

TEST_CASE("nothing is submitted before an observation, and every kind of flush submits") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  auto launch = [&] { program.launch(stream, function, 1, std::uint64_t{1}); };
  std::size_t submitted = 0;
  auto submits = [&](auto flush) {
    launch();
    flush();
    CHECK(program.driver.log().size() == ++submitted);
    CHECK(program.counters().pending == 0);
  };
  launch();
  CHECK(program.driver.log().empty());
  CHECK(program.counters().pending == 1);
  CHECK(program.sync(stream) == CUDA_SUCCESS);
  CHECK(program.driver.log().size() == ++submitted);
  using runtime::EntryId;
  submits([] { runtime::flush_all(EntryId::cuMemFree_v2); });
  submits([] { runtime::flush_for_liveness(EntryId::cuMemAlloc_v2); });
  submits([] { runtime::flush_for_default_streams(EntryId::cuMemcpyDtoH_v2); });
  submits([] { runtime::flush_context(nullptr, EntryId::cuCtxSynchronize); });
  submits([&] { runtime::flush_context(program.driver.current, EntryId::cuCtxSynchronize_v2); });
  launch();
  runtime::flush_legacy(EntryId::cuMemsetD8_v2);
  CHECK(program.driver.log().size() == submitted);  // a non-blocking stream stands alone
  CHECK(program.sync(stream) == CUDA_SUCCESS);
  ++submitted;
  // A handle nobody knows: everything goes.
  submits([] {
    runtime::flush_stream(reinterpret_cast<CUstream>(0xdead0), false, EntryId::cuEventRecord);
  });
}

TEST_CASE("the legacy stream and the blocking streams submit each other") {
  Program program;
  CUstream blocking = program.stream(CU_STREAM_DEFAULT), free = program.stream();
  CUfunction function = program.driver.add_function({8});
  auto launch = [&](CUstream stream) { program.launch(stream, function, 1, std::uint64_t{1}); };
  launch(blocking);
  runtime::flush_stream(free, false, runtime::EntryId::cuEventRecord);
  CHECK(program.counters().pending == 1);
  CHECK(program.sync(nullptr) == CUDA_SUCCESS);
  CHECK(program.counters().pending == 0);
  launch(nullptr);
  runtime::flush_stream(blocking, false, runtime::EntryId::cuEventRecord);
  CHECK(program.counters().pending == 0);
  launch(blocking);
  runtime::flush_legacy(runtime::EntryId::cuMemsetD8_v2);
  CHECK(program.counters().pending == 0);
  launch(blocking);
  launch(nullptr);
  launch(blocking);
  CHECK(program.counters().pending == 1);
  program.sync(blocking);
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("sequences that alternate, diverge, shrink and grow keep their values") {
  Program program;
  CUstream stream = program.stream();
  std::vector<CUfunction> functions;
  for (int i = 0; i < 4; ++i) functions.push_back(program.driver.add_function({8, 4, 1}));
  std::vector<std::vector<int>> scripts = {
      {0, 1, 2, 3}, {0, 1}, {0, 1, 2, 3, 0, 1}, {0, 1, 3, 3}, {3, 2}};
  std::uint64_t value = 0;
  for (int round = 0; round < 12; ++round) {
    for (const std::vector<int>& script : scripts) {
      for (int index : script) {
        program.launch(stream, functions[index], 1, ++value / 3, static_cast<int>(round), 'x');
      }
      program.sync(stream);
      REQUIRE(program.driver.log() == program.asked);
    }
  }
  CHECK(program.counters().graphs_built == scripts.size());
  CHECK(program.driver.calls("cuGraphLaunch") == static_cast<int>(scripts.size()) * 11);
}

TEST_CASE("a graph that cannot be built, patched or launched is replaced by direct launches") {
  auto entry =
      GENERATE(as<std::string>{}, "cuGraphCreate", "cuGraphAddKernelNode_v2",
               "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch");
  auto nth = GENERATE(0, -1);
  Program program;
  program.driver.fail(entry, CUDA_ERROR_OUT_OF_MEMORY, nth);
  CUstream stream = program.stream();
  std::vector<CUfunction> functions = two_functions(program);
  for (std::uint64_t step = 0; step < 12; ++step) {
    pass(program, stream, functions, step);
    REQUIRE(program.driver.log() == program.asked);
  }
  CHECK(program.direct(DirectReason::kPatchFailed) >= 3);
  // A rebuilt graph holds the values of its pass, so of three failing patches each is followed by
  // one replay.
  if (nth < 0) {
    CHECK(program.driver.calls(entry) <= 10);  // bounded retries, then direct for good
    CHECK(program.driver.calls("cuLaunchKernel") >= 27);
  } else {
    CHECK(program.driver.calls("cuGraphLaunch") >= 8);
  }
}

TEST_CASE("each failing queued launch is told once, and nothing runs twice") {
  Program program;
  CUstream stream = program.stream();
  std::vector<CUfunction> functions = two_functions(program);
  pass(program, stream, functions, 0);
  program.launch(stream, functions[0], 1, std::uint64_t{1}, 1.0f);
  program.launch(stream, functions[1], 1, std::uint64_t{2});
  program.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.sync(stream) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.sync(stream) == CUDA_SUCCESS);
  std::vector<fake::Ran> expected = program.asked;
  expected.erase(expected.begin() + 3);
  CHECK(program.driver.log() == expected);
}

TEST_CASE("the budget evicts the least recently used and never stops submission") {
  Program program(400 << 10);
  CUstream stream = program.stream();
  std::vector<CUfunction> functions;
  for (int i = 0; i < 12; ++i) functions.push_back(program.driver.add_function({8}));
  for (int round = 0; round < 40; ++round) {
    for (int script = 0; script < 10; ++script) {
      for (int i = 0; i < 3; ++i) {
        program.launch(stream, functions[static_cast<std::size_t>(script + i)], 1,
                       std::uint64_t(round));
      }
      program.sync(stream);
    }
    CHECK(program.counters().graph_bytes <= 400u << 10);
  }
  CHECK(program.driver.log() == program.asked);
  CHECK(program.counters().graphs_evicted > 0);
  CHECK(program.driver.execs.size() <= 6);
}

TEST_CASE("a sequence larger than the budget goes directly") {
  Program program(100 << 10);
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) program.launch(stream, function, 1, std::uint64_t(i));
    program.sync(stream);
  }
  CHECK(program.driver.log() == program.asked);
  CHECK(program.driver.calls("cuGraphLaunch") == 0);
  CHECK(program.direct(DirectReason::kNoMemory) > 0);
}

TEST_CASE("a full queue submits itself and long sequences still replay") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20000; ++i) program.launch(stream, function, 1, std::uint64_t(i));
    program.sync(stream);
  }
  CHECK(program.driver.log() == program.asked);
  CHECK(program.driver.calls("cuGraphLaunch") == 4);  // 16,384 and the rest, twice
}

TEST_CASE("recordings die with their code, also when the handle comes back") {
  Program program;
  CUstream stream = program.stream();
  auto module = reinterpret_cast<CUmodule>(0x99);
  CUfunction dying = program.driver.add_function({8}, module);
  CUfunction staying = program.driver.add_function({8});
  auto run = [&](auto... args) {
    program.launch(stream, dying, 1, args...);
    program.launch(stream, staying, 1, std::uint64_t{1});
    program.sync(stream);
  };
  for (int i = 0; i < 4; ++i) run(std::uint64_t{5});
  CHECK(program.driver.execs.size() == 1);
  runtime::code_unloads(module);
  CHECK(program.driver.execs.empty());
  {
    // The same handle, another kernel: two parameters of other sizes.
    std::lock_guard guard(program.driver.mutex);
    program.driver.functions[dying] = {{0, 4}, {4, 1}, module};
  }
  for (int i = 0; i < 4; ++i) run(i, 'c');
  CHECK(program.driver.log() == program.asked);
  CHECK(program.driver.execs.size() == 1);
}

TEST_CASE("what the driver might refuse goes to the driver, behind what is queued") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  std::uint64_t value = 3;
  void* params[] = {&value};
  auto refused = [&](runtime::LaunchShape shape, CUfunction what, void** with) {
    program.launch(stream, function, 1, std::uint64_t{1});
    std::size_t before = program.driver.log().size();
    runtime::LaunchOutcome outcome =
        runtime::queue_launch({what, shape, stream, with}, nullptr, false);
    CHECK_FALSE(outcome.is_queued);
    runtime::flush_for_launch(stream, false, outcome.reason);
    ++program.launches;
    CHECK(program.driver.log().size() == before + 1);
    CHECK(program.counters().pending == 0);
  };
  refused({{0, 1, 1}, {1, 1, 1}, 0}, function, params);
  refused({{1, 1, 1}, {1025, 1, 1}, 0}, function, params);
  refused({{1, 1, 1}, {64, 32, 1}, 0}, function, params);
  refused({{1, 70000, 1}, {1, 1, 1}, 0}, function, params);
  refused({{1, 1, 1}, {1, 1, 1}, 64 * 1024}, function, params);
  refused({{1, 1, 1}, {1, 1, 1}, 0}, nullptr, params);
  refused({{1, 1, 1}, {1, 1, 1}, 0}, function, nullptr);
}

TEST_CASE("extra buffers are copied like parameters") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8, 4});
  struct {
    std::uint64_t first;
    float second;
  } buffer{};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  runtime::Launch launch{function, {{1, 1, 1}, {32, 1, 1}, 0}, stream, nullptr};
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (int i = 0; i < 2; ++i) {
      buffer = {step, static_cast<float>(i)};
      program.asked.push_back(
          {stream, function, 1, program.driver.pack(function, nullptr, extra), false});
      REQUIRE(runtime::queue_launch(launch, extra, false).is_queued);
      ++program.launches;
    }
    program.sync(stream);
  }
  CHECK(program.driver.log() == program.asked);
  CHECK(program.driver.calls("cuGraphLaunch") == 3);
}

TEST_CASE("captures, attributes and an end of queueing gate the queues") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{1});
  runtime::ContextState* context = runtime::capture_begins(stream, false);
  CHECK(program.driver.log().size() == 1);
  program.launch(stream, function, 1, std::uint64_t{2});
  program.launch(program.stream(), function, 1, std::uint64_t{3});
  CHECK(program.driver.log().size() == 3);
  CHECK(program.direct(DirectReason::kCapture) == 2);
  runtime::capture_ended(context);
  program.launch(stream, function, 1, std::uint64_t{4});
  CHECK(program.counters().pending == 1);
  runtime::stream_attributes_changed(stream, false);
  program.launch(stream, function, 1, std::uint64_t{5});
  CHECK(program.direct(DirectReason::kStreamAttributes) == 1);
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("a failure met where no call can tell it waits for one that can") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{1});
  program.sync(stream);
  program.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED);
  program.launch(stream, function, 1, std::uint64_t{2});
  SECTION("a capture begins") {
    runtime::capture_ended(runtime::capture_begins(stream, false));
  }
  SECTION("code is tainted") {
    runtime::code_is_tainted(fake::Driver::default_module());
    runtime::code_unloads(fake::Driver::default_module());  // no other test is tainted
  }
  SECTION("memory is allocated") {
    runtime::flush_for_liveness(runtime::EntryId::cuMemAlloc_v2);
  }
  CHECK(program.sync(stream) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.sync(stream) == CUDA_SUCCESS);
}

TEST_CASE("failures are told in their order, each once, by calls with room for them") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{0});
  program.sync(stream);
  const CUresult first = CUDA_ERROR_INVALID_IMAGE, second = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  for (const CUresult failure : {first, first, second}) {
    program.launch(stream, function, 1, std::uint64_t{1});
    program.driver.fail("cuLaunchKernel", failure);
    runtime::flush_stream(stream, false, runtime::EntryId::cuEventRecord);
  }
  const auto told = [&](CUresult called) { return runtime::tell_of_stream(stream, false, called); };
  CHECK(told(CUDA_ERROR_INVALID_VALUE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(told(CUDA_ERROR_NOT_READY) == first);
  CHECK(told(CUDA_SUCCESS) == first);
  CHECK(told(CUDA_SUCCESS) == second);
  CHECK(told(CUDA_ERROR_NOT_READY) == CUDA_ERROR_NOT_READY);
  CHECK_FALSE(runtime::anything_untold());
}

TEST_CASE("a fault that the driver tells is told for all launches that met it") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{0});
  program.launch(stream, function, 1, std::uint64_t{0});
  program.driver.fail("cuLaunchKernel", CUDA_ERROR_ILLEGAL_ADDRESS, -1);
  runtime::flush_stream(stream, false, runtime::EntryId::cuEventRecord);
  CHECK(runtime::tell_of_context(nullptr, CUDA_ERROR_ILLEGAL_ADDRESS) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_FALSE(runtime::anything_untold());
}

TEST_CASE("what lies behind an argument is not read") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8, 4});
  unsigned char first[16] = {}, second[8] = {};
  void* parameters[] = {first, second};
  for (unsigned char pass = 0; pass < 6; ++pass) {
    first[8] = second[4] = pass;
    for (int i = 0; i < 2; ++i) {
      REQUIRE(program.submit({function, {{1, 1, 1}, {32, 1, 1}, 0}, stream, parameters, {}}) ==
              CUDA_SUCCESS);
    }
    REQUIRE(program.sync(stream) == CUDA_SUCCESS);
  }
  CHECK(program.counters().replayed != 0);
  CHECK(program.counters().patches == 0);
}

TEST_CASE("the deadline submits what nobody observes") {
  Program program(256u << 20, 1000);
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  program.launch(stream, function, 1, std::uint64_t{1});
  while (program.driver.log().empty()) std::this_thread::yield();
  program.launch(stream, function, 1, std::uint64_t{2});
  while (program.driver.log().size() < 2) std::this_thread::yield();
  program.sync(stream);
  CHECK(program.driver.log() == program.asked);
  SECTION("its failures are told") {
    program.driver.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED);
    program.launch(stream, function, 1, std::uint64_t{3});
    while (!runtime::anything_untold()) std::this_thread::yield();
    CHECK(program.sync(stream) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(program.sync(stream) == CUDA_SUCCESS);
  }
}

namespace {

// What the driver says of this process, and how often it was asked.
std::atomic<CUprocessState> g_process_state{CU_PROCESS_STATE_RUNNING};
std::atomic<int> g_process_asked{0};
CUresult CUDAAPI process_state(int, CUprocessState* state) {
  *state = g_process_state;
  ++g_process_asked;
  return CUDA_SUCCESS;
}

}  // namespace

TEST_CASE("the deadline waits while the process is locked for a checkpoint") {
  Program program(256u << 20, 1000);
  runtime::real.cuCheckpointProcessGetState.set(&process_state);
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  runtime::Deadline::process_is_being_locked();
  SECTION("until somebody unlocks it") {
    g_process_state = CU_PROCESS_STATE_LOCKED;
    runtime::Deadline::process_was_locked(true);
    program.launch(stream, function, 1, std::uint64_t{1});
    for (const CUprocessState state : {CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED}) {
      g_process_state = state;
      for (const int asked = g_process_asked; g_process_asked < asked + 4;)
        std::this_thread::yield();
    }
    CHECK(program.driver.log().empty());
    g_process_state = CU_PROCESS_STATE_RUNNING;
  }
  SECTION("which the driver may refuse") {
    program.launch(stream, function, 1, std::uint64_t{1});
    runtime::Deadline::process_was_locked(false);
  }
  while (program.driver.log().empty()) std::this_thread::yield();
  program.sync(stream);
  CHECK(program.driver.log() == program.asked);
}

namespace {

// The order CUDA promises: per stream as asked, and legacy launches against everything of the
// blocking streams.
void check_order(const Program& program, const std::vector<CUstream>& blocking) {
  std::vector<fake::Ran> log = program.driver.log();
  REQUIRE(log.size() == program.asked.size());
  std::map<CUstream, std::vector<fake::Ran>> ran, asked;
  for (const fake::Ran& entry : log) ran[entry.stream].push_back(entry);
  for (const fake::Ran& entry : program.asked) asked[entry.stream].push_back(entry);
  CHECK(ran == asked);
  // Each launch carries its number as its first argument.
  auto number = [](const fake::Ran& entry) {
    std::uint64_t value;
    std::memcpy(&value, entry.arguments.data(), sizeof value);
    return value;
  };
  std::uint64_t newest = 0, newest_legacy = 0;
  for (const fake::Ran& entry : log) {
    bool is_legacy = entry.stream == nullptr;
    bool is_blocking = std::find(blocking.begin(), blocking.end(), entry.stream) != blocking.end();
    if (!is_legacy && !is_blocking) continue;
    REQUIRE(number(entry) > (is_legacy ? newest : newest_legacy));
    newest = std::max(newest, number(entry));
    if (is_legacy) newest_legacy = newest;
  }
}

}  // namespace

TEST_CASE("random programs on all kinds of streams keep their order and values") {
  auto seed = GENERATE(range(0, 60));
  std::mt19937 random(static_cast<unsigned>(seed));
  auto pick = [&](std::size_t below) { return random() % below; };
  Program program(seed % 3 == 0 ? 300 << 10 : 256u << 20);
  std::vector<CUstream> blocking = {program.stream(0), program.stream(0)};
  std::vector<CUstream> streams = {nullptr, blocking[0], blocking[1], program.stream(),
                                   program.stream()};
  std::vector<CUfunction> functions;
  for (int i = 0; i < 4; ++i) functions.push_back(program.driver.add_function({8, 4, 2}));
  const char* faulty[] = {"cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2",
                          "cuGraphLaunch"};
  std::uint64_t number = 0;
  for (int step = 0; step < 400; ++step) {
    if (seed % 4 == 1 && pick(40) == 0)
      program.driver.fail(faulty[pick(3)], CUDA_ERROR_OUT_OF_MEMORY);
    CUstream stream = streams[pick(streams.size())];
    // A few fixed scripts, so that sequences repeat.
    for (std::size_t i = 0, length = 1 + pick(4), first = pick(2); i < length; ++i) {
      program.launch(stream, functions[(first + i) % 4], static_cast<unsigned>(1 + pick(2)),
                     ++number, static_cast<int>(pick(2)), static_cast<short>(i));
    }
    switch (pick(6)) {
      case 0:
        program.sync(streams[pick(streams.size())]);
        break;
      case 1:
        runtime::flush_all(runtime::EntryId::cuMemFree_v2);
        break;
      case 2:
        runtime::flush_legacy(runtime::EntryId::cuMemsetD8_v2);
        break;
      case 3:
        program.counters();
        break;
      default:
        break;
    }
  }
  runtime::flush_all(runtime::EntryId::cuCtxSynchronize);
  check_order(program, blocking);
  CHECK(program.counters().replayed > 0);
}

TEST_CASE("threads share a stream, a deadline and the legacy stream without losing a launch") {
  Program program(256u << 20, 50);
  CUstream stream = program.stream(0);
  CUfunction function = program.driver.add_function({8, 4, 2});
  constexpr int kThreads = 4, kLaunches = 2000;
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};  // Catch2 2 counts assertions of one thread only
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLaunches; ++i) {
        std::uint64_t value = static_cast<std::uint64_t>(t) << 32 | static_cast<unsigned>(i);
        int more = i;
        short last = 0;
        void* params[] = {&value, &more, &last};
        CUstream where = t == 3 ? nullptr : stream;
        runtime::Launch launch{function, {{1, 1, 1}, {32, 1, 1}, 0}, where, params};
        if (!runtime::queue_expected(runtime::launch_key(function), launch.shape, where, params)) {
          const runtime::LaunchOutcome outcome = runtime::queue_launch(launch, nullptr, false);
          // While another thread of the program starts the deadline's nothing may wait yet.
          const bool may_wait = outcome.reason != DirectReason::kNoThread;
          if (!outcome.is_queued && may_wait) ++refused;
          if (!outcome.is_queued) {
            runtime::flush_for_launch(where, false, outcome.reason);
            runtime::launch_now(function, launch.shape, {}, where, params, nullptr);
          }
        }
        if (i % 50 == t) program.sync(where);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
  runtime::flush_all(runtime::EntryId::cuCtxSynchronize);
  std::map<std::uint64_t, std::uint64_t> next;  // per thread, in its own order
  for (const fake::Ran& entry : program.driver.log()) {
    std::uint64_t value;
    std::memcpy(&value, entry.arguments.data(), sizeof value);
    REQUIRE((value & 0xFFFFFFFF) == next[value >> 32]++);
  }
  for (auto [thread, count] : next) CHECK(count == kLaunches);
  CHECK(next.size() == kThreads);
}
