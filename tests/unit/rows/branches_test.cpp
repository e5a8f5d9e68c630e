// SPDX-License-Identifier: Apache-2.0
// The rows whose rule has more than one branch, or does more than submit: each branch, and what
// holds after the call.
#include <bit>
#include <cstring>

#include "runtime/deferral.h"
#include "runtime/flush.h"
#include "runtime/thread_state.h"
#include "shim/exports.h"
#include "tests/unit/catch.h"
#include "tests/unit/rows/world.h"

namespace rows {
namespace {

// Writes through an out pointer among the arguments.
template <typename T>
void write_to(const Arguments& arguments, std::size_t word, T value) {
  std::memcpy(reinterpret_cast<void*>(arguments.words[word]), &value, sizeof value);
}

template <typename T>
std::uint64_t word_of(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

// True when a launch on the queue's stream waits, rather than going to the driver at once.
bool queues(World& world, unsigned queue, CUfunction function = nullptr) {
  const std::size_t runs = world.runs();
  if (function == nullptr) function = world.function_of(queue);
  CHECK(world.launch(queue, function) == CUDA_SUCCESS);
  return world.runs() == runs;
}

Row row_named(const char* symbol) {
  for (const Row& row : all_rows()) {
    if (std::strcmp(row.symbol(), symbol) == 0) return row;
  }
  FAIL("no row " << symbol);
  return {};
}

}  // namespace

TEST_CASE("rows/lazy-load: a function that was never launched") {
  for (const Row& row : rows_naming("rows/lazy-load")) {
    INFO(row.symbol());
    World world(kBlockingScene);
    Choice choice = world.usual();
    choice.function = world.never_launched;
    const Seen seen = world.call(row, choice);
    CHECK(seen.entered == 1);
    CHECK(seen.before == kBlockingScene);
  }
}

TEST_CASE("rows/lazy-load: a function is asked for its code once") {
  for (const Row& row : rows_naming("rows/lazy-load")) {
    INFO(row.symbol());
    World world(0);
    Choice choice = world.usual();
    choice.function = world.never_launched;
    world.call(row, choice);
    REQUIRE(queues(world, kN1));
    CHECK(world.call(row, choice).before == 0u);
    CHECK(world.runs() == world.runs_at_mark());
  }
}

TEST_CASE("rows/lookups: what was looked up before submits nothing") {
  for (const Row& row : rows_naming("rows/lookups")) {
    for (CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_IMAGE}) {
      INFO(row.symbol() << " answers " << answer);
      World world(0);
      world.call(row, world.usual(), answer);
      REQUIRE(queues(world, kN1));
      const Seen again = world.call(row, world.usual());
      CHECK(again.entered == 1);
      // What could not be told is asked for as if for the first time. A library whose variable is
      // missing need not have been loaded.
      const bool is_final = answer == CUDA_SUCCESS || (answer == CUDA_ERROR_NOT_FOUND &&
                                                       row.id != EntryId::cuLibraryGetGlobal);
      CHECK(again.after == (is_final ? 0u : kN1));
    }
    note_tested(row.id, "rows/lookups");
  }
}

TEST_CASE("rows/lookups: a name is that of one module and one context") {
  World world(0);
  const Row names = row_named("cuModuleGetFunction"), kernels = row_named("cuKernelGetFunction"),
            globals = row_named("cuLibraryGetGlobal");
  for (const Row& row : {names, kernels, globals}) world.call(row, world.usual());
  Choice other = world.usual();
  other.code = world.code_of_a;
  other.function = world.never_launched;
  for (const Row& row : {names, kernels, globals}) {
    INFO(row.symbol() << " of another module");
    REQUIRE(queues(world, kN1));
    CHECK(world.call(row, other).before == kN1);
  }
  REQUIRE(queues(world, kN1));
  Arguments another = world.arguments_for(names, world.usual());
  std::strcpy(static_cast<char*>(world.scratch(2)), "another_name");
  CHECK(world.call(names, another).before == kN1);
  REQUIRE(queues(world, kN1));
  world.make_current(world.b);
  for (const Row& row : {globals, kernels}) {
    INFO(row.symbol() << " in another context");
    CHECK(world.call(row, world.usual()).entered == 1);
    world.make_current(world.a);
    CHECK(queues(world, kN1));
    world.make_current(world.b);
  }
  world.make_current(world.a);
}

TEST_CASE("rows/lookups: an unloaded module's names are new again") {
  struct Pair {
    const char* lookup;
    const char* unload;
  };
  for (const Pair& pair : {Pair{"cuModuleGetFunction", "cuModuleUnload"},
                           Pair{"cuLibraryGetGlobal", "cuLibraryUnload"},
                           Pair{"cuKernelGetFunction", "cuLibraryUnload"}}) {
    INFO(pair.lookup);
    World world(0);
    world.call(row_named(pair.lookup), world.usual());
    world.call(row_named(pair.unload), world.usual());
    REQUIRE(queues(world, kN1));
    CHECK(world.call(row_named(pair.lookup), world.usual()).before == kN1);
  }
}

TEST_CASE("rows/attribute: a function that was never launched is set to its value once") {
  for (const char* symbol : {"cuFuncSetAttribute", "cuFuncSetCacheConfig", "cuKernelSetAttribute",
                             "cuKernelSetCacheConfig", "cuFuncSetSharedMemConfig"}) {
    INFO(symbol);
    World world(0);
    const Row row = row_named(symbol);
    Choice choice = world.usual();
    choice.function = world.never_launched;
    world.call(row, choice);
    for (int again = 0; again < 2; ++again) {
      REQUIRE(queues(world, kN1));
      const Seen seen = world.call(row, choice);
      CHECK(seen.entered == 1);
      CHECK(seen.after == 0u);
      world.call(row_named("cuCtxSynchronize"), world.usual());
      world.mark();
    }
    // The code goes, and the handle comes back.
    Choice code = world.usual();
    code.code = world.code_of_a;
    world.call(row_named("cuModuleUnload"), code);
    REQUIRE(queues(world, kBN));
    CHECK(world.call(row, choice).before == kBN);
  }
}

TEST_CASE("rows/attribute: a value that is set again submits nothing") {
  for (const Row& row : rows_naming("rows/attribute")) {
    INFO(row.symbol());
    World world(kBlockingScene);
    const Arguments arguments = world.arguments_for(row, world.usual());
    const bool is_kernel = row.id == EntryId::cuKernelSetAttribute;
    const std::uint64_t value = arguments.words[is_kernel ? 1 : 2];
    const auto answer = [value](const Arguments& asked) {
      write_to(asked, 0, static_cast<int>(value));
      return CUDA_SUCCESS;
    };
    world.answers[EntryId::cuFuncGetAttribute] = answer;
    world.answers[EntryId::cuKernelGetAttribute] = answer;
    const Seen seen = world.call(row, arguments);
    CHECK(seen.entered == 1);
    CHECK(seen.before == 0u);
    CHECK(seen.after == 0u);
    note_tested(row.id, "rows/attribute");
  }
}

TEST_CASE("rows/attribute: a changed function is asked again at its next launch") {
  for (const char* symbol : {"cuFuncSetAttribute", "cuFuncSetCacheConfig", "cuKernelSetAttribute",
                             "cuKernelSetCacheConfig", "cuFuncSetSharedMemConfig"}) {
    INFO(symbol);
    World world(kN1);
    world.call(row_named(symbol), world.usual());
    const int asked = world.driver.calls("cuFuncGetParamInfo");
    CHECK(queues(world, kN1));
    CHECK(world.driver.calls("cuFuncGetParamInfo") > asked);
  }
}

TEST_CASE("rows/attribute: a kernel is changed for every context whose queues hold it") {
  for (const char* symbol : {"cuKernelSetAttribute", "cuKernelSetCacheConfig"}) {
    INFO(symbol);
    World world(kN1 | kBN);
    const Seen seen = world.call(row_named(symbol), world.usual());
    CHECK(seen.before == (kN1 | kBN));
  }
}

TEST_CASE("rows/capture: nothing is queued in a context that captures") {
  for (const Row& row : rows_naming("rows/capture")) {
    if (row.demand != Demand::kBeginCapture) continue;
    INFO(row.symbol());
    {
      World world(0);
      CHECK(world.call(row, world.usual(), CUDA_ERROR_ILLEGAL_STATE).result ==
            CUDA_ERROR_ILLEGAL_STATE);
      CHECK(queues(world, kN1));
    }
    World world(0);
    CHECK(world.call(row, world.usual()).result == CUDA_SUCCESS);
    CHECK_FALSE(queues(world, kN1));
    CHECK_FALSE(queues(world, kN2));
    CHECK_FALSE(queues(world, kL));
    CHECK(queues(world, kBN));
  }
}

TEST_CASE("rows/capture: the end of a capture is what the driver says it is") {
  for (const Row& row : rows_naming("rows/capture")) {
    if (row.demand == Demand::kBeginCapture) continue;
    INFO(row.symbol());
    World world(0);
    const Row begin =
        row_named(row.is_own ? "cuStreamBeginCapture_v2_ptsz" : "cuStreamBeginCapture_v2");
    world.call(begin, world.usual());
    // The thread may be the wrong one: the capture goes on.
    const auto capturing = [](const Arguments& asked) {
      write_to(asked, 1, CU_STREAM_CAPTURE_STATUS_ACTIVE);
      return CUDA_SUCCESS;
    };
    world.answers[EntryId::cuStreamIsCapturing] = capturing;
    world.answers[EntryId::cuStreamIsCapturing_ptsz] = capturing;
    const CUresult wrong = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CHECK(world.call(row, world.usual(), wrong).result == wrong);
    CHECK_FALSE(queues(world, kN1));
    // Active when asked first, ended when asked again.
    int asked_times = 0;
    const auto ending = [&asked_times](const Arguments& asked) {
      write_to(
          asked, 1,
          asked_times++ == 0 ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE);
      return CUDA_SUCCESS;
    };
    world.answers[EntryId::cuStreamIsCapturing] = ending;
    world.answers[EntryId::cuStreamIsCapturing_ptsz] = ending;
    const Seen seen = world.call(row, world.usual());
    CHECK(seen.result == CUDA_SUCCESS);
    CHECK(seen.entered == 1);
    CHECK(queues(world, kN1));
    CHECK(queues(world, kN2));
    note_tested(row.id, "rows/capture");
  }
}

TEST_CASE("rows/taint: functions of a module with references are not queued") {
  for (const Row& row : rows_naming("rows/taint")) {
    INFO(row.symbol());
    for (CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_NOT_FOUND}) {
      World world(0);
      Choice choice = world.usual();
      choice.code = world.code_of_a;
      CHECK(world.call(row, choice, answer).result == answer);
      CHECK(queues(world, kN1) == (answer != CUDA_SUCCESS));
      CHECK(queues(world, kBN));
    }
    note_tested(row.id, "rows/taint");
  }
}

TEST_CASE("rows/stream-state: a stream with attributes is not queued") {
  for (const Row& row : rows_naming("rows/stream-state")) {
    INFO(row.symbol());
    for (CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE}) {
      World world(0);
      CHECK(world.call(row, world.usual(), answer).result == answer);
      CHECK(queues(world, kN1) == (answer != CUDA_SUCCESS));
      CHECK(queues(world, kN2));
    }
    note_tested(row.id, "rows/stream-state");
  }
}

TEST_CASE("rows/new-stream: a new stream is what its flags say") {
  for (const Row& row : rows_naming("rows/new-stream")) {
    for (unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
      INFO(row.symbol() << " with flags " << flags);
      World world(0);
      Arguments arguments = world.arguments_for(row, world.usual());
      arguments.words[1] = flags;
      CHECK(world.call(row, arguments).result == CUDA_SUCCESS);
      CUstream made = nullptr;
      std::memcpy(&made, world.scratch(0), sizeof made);
      REQUIRE(queues(world, kL));
      const std::size_t runs = world.runs();
      CHECK(world.launch_on(made, world.f, 1) == CUDA_SUCCESS);
      // A blocking stream runs behind the legacy stream, whose queue goes first.
      CHECK(world.runs() - runs == (flags == CU_STREAM_DEFAULT ? 1u : 0u));
      note_tested(row.id, "rows/new-stream");
    }
  }
}

TEST_CASE("rows/switch: the current context is asked for after a switch") {
  for (const Row& row : rows_naming("rows/switch")) {
    INFO(row.symbol());
    World world(0);
    REQUIRE(queues(world, kL));
    REQUIRE(runtime::current_context()->handle.load() == world.a);
    world.driver.current = world.b;
    CHECK(world.call(row, world.usual()).result == CUDA_SUCCESS);
    CHECK(runtime::current_context()->handle.load() == world.b);
    note_tested(row.id, "rows/switch");
  }
}

TEST_CASE("rows/ends: graphs of ours go with what they belong to") {
  for (const Row& row : rows_naming("rows/ends")) {
    INFO(row.symbol());
    World world(0);
    for (int sight = 0; sight < 3; ++sight) {
      for (int i = 0; i < 2; ++i) REQUIRE(queues(world, kN1));
      runtime::flush_all(EntryId::cuCtxSynchronize);
    }
    REQUIRE(world.driver.execs.size() == 1);
    Choice choice = world.usual();
    choice.code = world.code_of_a;
    const CUcontext a = world.a;
    world.answers[EntryId::cuDevicePrimaryCtxGetState] = [](const Arguments& asked) {
      write_to(asked, 2, 1);
      return CUDA_SUCCESS;
    };
    world.answers[EntryId::cuDevicePrimaryCtxRetain] = [a](const Arguments& asked) {
      write_to(asked, 0, a);
      return CUDA_SUCCESS;
    };
    world.answers[EntryId::cuCtxFromGreenCtx] = world.answers[EntryId::cuDevicePrimaryCtxRetain];
    const Seen seen = world.call(row, choice);
    // The hook retains and releases a primary context to learn which one it is.
    CHECK(seen.entered == (row.id == EntryId::cuDevicePrimaryCtxRelease_v2 ? 2 : 1));
    CHECK(seen.result == CUDA_SUCCESS);
    // Nothing is recorded in a green context.
    if (row.id != EntryId::cuGreenCtxDestroy) CHECK(seen.graphs == 0u);
    CHECK(world.driver.execs.empty());
    note_tested(row.id, "rows/ends");
  }
}

TEST_CASE("rows/lookup: every row is handed out under its name, version and flavour") {
  // Addresses outside this program, which would pass for the shim's own.
  const std::vector<char> driver_code(runtime::kEntryCount);
  for (const Row& row : rows_naming("rows/lookup")) {
    World world(0);
    for (const Row& wanted : all_rows()) {
      const runtime::EntryRow& entry = runtime::row(wanted.id);
      INFO(row.symbol() << " asked for " << wanted.symbol());
      Arguments arguments = world.arguments_for(row, world.usual());
      arguments.words[0] = word_of(entry.api);
      arguments.words[2] = static_cast<std::uint64_t>(entry.since);
      arguments.words[3] = entry.per_thread_default()
                               ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                               : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
      const void* driver_function = &driver_code[static_cast<std::size_t>(wanted.id)];
      std::memcpy(world.scratch(1), &driver_function, sizeof driver_function);
      CHECK(world.call(row, arguments).result == CUDA_SUCCESS);
      put_fake(wanted.id);  // the slot has learned the address
      void* found = nullptr;
      std::memcpy(&found, world.scratch(1), sizeof found);
      CHECK(found == shim::wrapper_of(wanted.id));
    }
    note_tested(row.id, "rows/lookup");
  }
}

}  // namespace rows
