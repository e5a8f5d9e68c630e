// SPDX-License-Identifier: Apache-2.0
// Versions of functions: what replaces them, how long they live, and which handles of a function a
// change or an unload reaches.
#include "runtime/function_settings.h"
#include "tests/unit/graphs/program.h"

using runtime::CodeScope;
using runtime::DirectReason;
using runtime::FunctionInfo;

namespace {

CUlibrary library(std::uintptr_t value) {
  return reinterpret_cast<CUlibrary>(value << 12);
}
CUmodule module(std::uintptr_t value) {
  return reinterpret_cast<CUmodule>(value << 12);
}
CUfunction as_function(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

// A driver whose kernels run as the function of the same handle.
struct Kernels {
  Kernels() {
    runtime::real.cuKernelGetFunction.set([](CUfunction* function, CUkernel kernel) {
      *function = as_function(kernel);
      return CUDA_SUCCESS;
    });
    runtime::real.cuKernelGetParamInfo.set(
        [](CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
          return runtime::real.cuFuncGetParamInfo(as_function(kernel), index, offset, size);
        });
  }
  ~Kernels() { runtime::forget_code_in(*runtime::current_context()); }
};

bool is_in_force(CUfunction function) {
  return runtime::find_function(function, runtime::current_context()) != nullptr;
}

// Launched until its recording has a graph.
void record(Program& program, CUstream stream, CUfunction function) {
  for (std::uint64_t step = 0; step < 3; ++step) {
    program.launch(stream, function, 1, step);
    program.launch(stream, function, 1, step);
    program.sync(stream);
  }
}

}  // namespace

TEST_CASE("an endless change of attributes keeps no versions") {
  Program program;
  CUstream stream = program.stream(), other = program.stream();
  CUfunction function = program.driver.add_function({8});
  for (std::uint64_t step = 0; step < 200; ++step) {
    for (CUstream each : {stream, other}) program.launch(each, function, 1, step);
    runtime::functions_changed(CodeScope::of_function(function));
    CHECK(runtime::count_retired_functions() <= 2);
  }
  program.sync(other);
  CHECK(program.driver.log().size() == program.asked.size());
}

TEST_CASE("a version that was replaced lives as long as a sequence names it") {
  Program program;
  const runtime::ContextState& context = *runtime::current_context();
  CUfunction function = program.driver.add_function({8});
  const FunctionInfo* version = runtime::learn_function(function, context);
  {
    runtime::Sequence first, second;
    REQUIRE(first.start());
    REQUIRE(first.append(version, {{1, 1, 1}, {32, 1, 1}, 0}) != nullptr);
    REQUIRE(second.copy_prefix(first, 1));
    runtime::functions_changed(CodeScope::of_function(function));
    CHECK_FALSE(is_in_force(function));
    CHECK(runtime::count_retired_functions() == 1);
    CHECK(version->handle == function);
    REQUIRE(first.start());
    runtime::free_old_functions();
    CHECK(runtime::count_retired_functions() == 1);
    first.take(second);
    runtime::free_old_functions();
    CHECK(runtime::count_retired_functions() == 1);
  }
  runtime::free_old_functions();
  CHECK(runtime::count_retired_functions() == 0);
}

TEST_CASE("a version that was replaced lives as long as a launch looks at it, and is not queued") {
  Program program;
  CUstream stream = program.stream();
  CUfunction function = program.driver.add_function({8});
  record(program, stream, function);
  runtime::StreamQueue* queue = runtime::find_stream(stream, false).queue;
  REQUIRE(queue != nullptr);
  {
    const runtime::FunctionReading reading(queue->function_readers);
    const FunctionInfo* version = runtime::find_function(function, runtime::current_context());
    runtime::functions_changed(CodeScope::of_function(function));
    CHECK(runtime::count_retired_functions() == 1);
    std::uint64_t value = 1;
    void* params[] = {&value};
    const runtime::Launch launch{function, {{1, 1, 1}, {32, 1, 1}, 0}, stream, params};
    const runtime::QueueGuard guard(queue->lock());
    CHECK(queue->append(guard, launch, *version) == runtime::StreamQueue::Append::kChanged);
  }
  runtime::free_old_functions();
  CHECK(runtime::count_retired_functions() == 0);
}

TEST_CASE("unloading a library reaches its kernels and what was made of them") {
  Program program;
  Kernels kernels;
  CUstream stream = program.stream();
  const auto* context = runtime::current_context();
  const CUfunction kernel = program.driver.add_function({8}),
                   made = program.driver.add_function({8}, module(11)),
                   sibling = program.driver.add_function({8}, module(11)),
                   stray = program.driver.add_function({8}, module(12)),
                   own = program.driver.add_function({8}, module(13));
  runtime::note_module(module(13), context);
  runtime::note_kernel(reinterpret_cast<CUkernel>(kernel), library(1));
  runtime::note_function(made, reinterpret_cast<CUkernel>(kernel), context);
  for (CUfunction each : {kernel, made, sibling, stray, own}) record(program, stream, each);
  runtime::code_unloads(library(1));
  for (CUfunction each : {kernel, made, sibling, stray}) CHECK_FALSE(is_in_force(each));
  CHECK(is_in_force(own));
  CHECK(program.driver.execs.size() == 1);
  // The handles come back with another layout, as functions.
  program.driver.functions[kernel] = {{0, 4}, {4, 4}, module(13)};
  program.driver.functions[made] = {{0, 4}, {4, 4}, module(13)};
  for (CUfunction each : {kernel, made}) {
    program.launch(stream, each, 1, std::uint32_t{1}, std::uint32_t{2});
    program.launch(stream, each, 1, std::uint32_t{3}, std::uint32_t{4});
  }
  program.sync(stream);
  CHECK(program.driver.log() == program.asked);
  CHECK(program.direct(DirectReason::kUnknownLayout) == 0);
}

TEST_CASE("a change reaches a function under all its handles, and no other function") {
  Program program;
  Kernels kernels;
  CUstream stream = program.stream();
  const auto* context = runtime::current_context();
  const CUfunction kernel = program.driver.add_function({8}),
                   other = program.driver.add_function({8}),
                   made = program.driver.add_function({8}, module(21)),
                   others = program.driver.add_function({8}, module(21)),
                   own = program.driver.add_function({8}, module(22));
  runtime::note_module(module(22), context);
  for (CUfunction each : {kernel, other}) {
    runtime::note_kernel(reinterpret_cast<CUkernel>(each), library(2));
  }
  runtime::note_function(made, reinterpret_cast<CUkernel>(kernel), context);
  runtime::note_function(others, reinterpret_cast<CUkernel>(other), context);
  const auto relearn = [&] {
    for (CUfunction each : {kernel, other, made, others, own}) record(program, stream, each);
    CHECK(program.driver.execs.size() == 5);
  };
  relearn();
  runtime::functions_changed(CodeScope::of_kernel(reinterpret_cast<CUkernel>(kernel)));
  for (CUfunction each : {kernel, made}) CHECK_FALSE(is_in_force(each));
  for (CUfunction each : {other, others, own}) CHECK(is_in_force(each));
  CHECK(program.driver.execs.size() == 3);
  relearn();
  runtime::functions_changed(CodeScope::of_function(others));
  for (CUfunction each : {other, others}) CHECK_FALSE(is_in_force(each));
  for (CUfunction each : {kernel, made, own}) CHECK(is_in_force(each));
  CHECK(program.driver.execs.size() == 3);
  relearn();
  runtime::functions_changed(CodeScope::of_function(own));
  CHECK_FALSE(is_in_force(own));
  CHECK(program.driver.execs.size() == 4);
}

TEST_CASE("of a library's function without a known kernel any kernel of the library may be one") {
  Program program;
  Kernels kernels;
  CUstream stream = program.stream();
  const CUfunction kernel = program.driver.add_function({8}),
                   found = program.driver.add_function({8}, module(31)),
                   foreign = program.driver.add_function({8});
  runtime::note_kernel(reinterpret_cast<CUkernel>(kernel), library(3));
  runtime::note_kernel(reinterpret_cast<CUkernel>(foreign), library(4));
  runtime::note_library_module(module(31), library(3), runtime::current_context());
  for (CUfunction each : {kernel, found, foreign}) record(program, stream, each);
  runtime::functions_changed(CodeScope::of_kernel(reinterpret_cast<CUkernel>(kernel)));
  CHECK_FALSE(is_in_force(found));
  for (CUfunction each : {kernel, found}) record(program, stream, each);
  runtime::functions_changed(CodeScope::of_function(found));
  CHECK_FALSE(is_in_force(kernel));
  CHECK(is_in_force(foreign));
}

TEST_CASE("only queues that hold the function are submitted ahead of a change") {
  Program program;
  CUstream holding = program.stream(), idle = program.stream();
  CUfunction function = program.driver.add_function({8}), other = program.driver.add_function({8});
  program.launch(idle, other, 1, std::uint64_t{1});
  program.sync(idle);
  program.launch(holding, function, 1, std::uint64_t{2});
  program.launch(idle, other, 1, std::uint64_t{3});
  runtime::submit_holders(CodeScope::of_function(function), runtime::EntryId::cuFuncSetAttribute);
  CHECK(program.counters().pending == 1);
  runtime::functions_changed(CodeScope::of_function(function));
  CHECK(program.counters().pending == 1);
  program.sync(idle);
  CHECK(program.driver.log() == program.asked);
}

namespace {

// Changes the function while a version of it is being made, the given number of times.
PFN_cuFuncGetAttribute_v2020 g_attribute_of_driver;
int g_changes_left;
CUresult CUDAAPI attribute_with_a_change(int* value, CUfunction_attribute attribute,
                                         CUfunction function) {
  if (g_changes_left > 0) {
    --g_changes_left;
    runtime::functions_changed(CodeScope::of_function(function));
  }
  return g_attribute_of_driver(value, attribute, function);
}

}  // namespace

TEST_CASE("what changes while it is asked for is asked for again, or not queued") {
  Program program;
  CUstream stream = program.stream();
  g_attribute_of_driver = runtime::real.cuFuncGetAttribute.get();
  runtime::real.cuFuncGetAttribute.set(&attribute_with_a_change);
  CUfunction function = program.driver.add_function({8}), other = program.driver.add_function({8});
  g_changes_left = 1;
  program.launch(stream, function, 1, std::uint64_t{1});
  CHECK(program.counters().pending == 1);
  g_changes_left = 1'000'000;
  program.launch(stream, other, 1, std::uint64_t{2});
  CHECK(program.direct(DirectReason::kAttributes) == 1);
  CHECK_FALSE(is_in_force(other));
  g_changes_left = 0;
  program.launch(stream, other, 1, std::uint64_t{3});
  CHECK(program.counters().pending == 1);
  runtime::real.cuFuncGetAttribute.set(g_attribute_of_driver);
  program.sync(stream);
  runtime::free_old_functions();
  CHECK(runtime::count_retired_functions() == 0);
  CHECK(program.driver.log() == program.asked);
}

TEST_CASE("a value counts as set until something may have changed it") {
  const int places[3] = {};
  const runtime::FunctionSetting setting{&places[0], 8, 0, 4096};
  runtime::forget_settings();
  CHECK_FALSE(runtime::is_set(setting));
  runtime::note_setting(setting, runtime::begin_setting(setting, false));
  CHECK(runtime::is_set(setting));
  for (const runtime::FunctionSetting& other : {runtime::FunctionSetting{&places[1], 8, 0, 4096},
                                                {&places[0], 9, 0, 4096},
                                                {&places[0], 8, 1, 4096},
                                                {&places[0], 8, 0, 4095}}) {
    CHECK_FALSE(runtime::is_set(other));
  }
  // Of two threads that set it at once nobody knows which came last.
  const std::uint64_t mine = runtime::begin_setting(setting, false);
  const runtime::FunctionSetting theirs{&places[0], 8, 0, 1};
  const std::uint64_t second = runtime::begin_setting(theirs, false);
  runtime::note_setting(setting, mine);
  CHECK_FALSE(runtime::is_set(setting));
  runtime::note_setting(theirs, second);
  CHECK(runtime::is_set(theirs));
  // A function that may be the same under another handle.
  runtime::begin_setting({&places[2], 8, 0, 1}, true);
  CHECK_FALSE(runtime::is_set(theirs));
  runtime::note_setting(theirs, runtime::begin_setting(theirs, false));
  runtime::forget_settings();
  CHECK_FALSE(runtime::is_set(theirs));
}
