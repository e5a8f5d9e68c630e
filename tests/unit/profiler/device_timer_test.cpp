// SPDX-License-Identifier: Apache-2.0
// Device times against a scripted driver whose clock the test moves: what is timed and what is
// counted instead, the anchor, full rings, failing events, captures and ending contexts.
#include "profiler/trace/device_timer.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/clock.h"
#include "profiler/trace/kernel_names.h"
#include "runtime/thread_state.h"
#include "tests/unit/catch.h"

using namespace profiler;
using runtime::EntryId;
using runtime::real;

namespace {

constexpr std::uint32_t kRing = 32;

template <typename Handle>
Handle handle(std::uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

// Events complete when the test says so, at device times of the host's clock plus `skew_ns`.
struct Script {
  struct Event {
    bool is_done = false;
    std::int64_t time_ns = 0;
    CUstream stream = nullptr;
  };
  std::map<CUevent, Event> events;
  std::vector<CUevent> records;  // in order, without those of our own stream
  CUcontext current = handle<CUcontext>(0x100);
  CUstream own_stream = nullptr;
  bool completes_at_once = true;
  std::int64_t skew_ns = 0;
  int creations_left = -1;  // -1: all succeed
  CUresult query_result = CUDA_SUCCESS;
  CUresult record_result = CUDA_SUCCESS;
  int destroyed_events = 0, destroyed_streams = 0, strict_calls = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<CUfunction, std::string> names;
};
Script* g_script = nullptr;
std::uintptr_t g_next_handle = 0x1000;
int g_next_context = 1;

struct Slots {
  static CUresult CUDAAPI get_current(CUcontext* context) {
    return *context = g_script->current, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI get_device(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
  static CUresult CUDAAPI push(CUcontext) { return CUDA_SUCCESS; }
  static CUresult CUDAAPI pop(CUcontext*) { return CUDA_SUCCESS; }
  static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode* mode) {
    std::swap(*mode, g_script->mode);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI create_stream(CUstream* stream, unsigned flags) {
    note_strictness();
    CHECK(flags == CU_STREAM_NON_BLOCKING);
    return *stream = g_script->own_stream = handle<CUstream>(g_next_handle += 16), CUDA_SUCCESS;
  }
  static CUresult CUDAAPI destroy_stream(CUstream) {
    return ++g_script->destroyed_streams, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI create_event(CUevent* event, unsigned) {
    note_strictness();
    if (g_script->creations_left == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    --g_script->creations_left;
    *event = handle<CUevent>(g_next_handle += 16);
    g_script->events[*event] = {};
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI destroy_event(CUevent event) {
    CHECK(g_script->events.erase(event) == 1);
    return ++g_script->destroyed_events, CUDA_SUCCESS;
  }
  static CUresult CUDAAPI record(CUevent event, CUstream stream) {
    const bool is_own = stream != nullptr && stream == g_script->own_stream;
    if (!is_own && g_script->record_result != CUDA_SUCCESS) return g_script->record_result;
    Script::Event& state = g_script->events.at(event);
    state.is_done = is_own || g_script->completes_at_once;
    state.time_ns = static_cast<std::int64_t>(monotonic_ns()) + g_script->skew_ns;
    state.stream = stream;
    if (!is_own) g_script->records.push_back(event);
    return CUDA_SUCCESS;
  }
  static CUresult CUDAAPI query(CUevent event) {
    if (g_script->query_result != CUDA_SUCCESS) return g_script->query_result;
    return g_script->events.at(event).is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult CUDAAPI elapsed(float* milliseconds, CUevent start, CUevent end) {
    const std::int64_t ns = g_script->events.at(end).time_ns - g_script->events.at(start).time_ns;
    return *milliseconds = static_cast<float>(static_cast<double>(ns) * 1e-6), CUDA_SUCCESS;
  }
  static CUresult CUDAAPI function_name(const char** name, CUfunction function) {
    const auto found = g_script->names.find(function);
    if (found == g_script->names.end()) return CUDA_ERROR_INVALID_HANDLE;
    return *name = found->second.c_str(), CUDA_SUCCESS;
  }
  static CUresult CUDAAPI kernel_name(const char** name, CUkernel kernel) {
    if (kernel != handle<CUkernel>(0xC0)) return CUDA_ERROR_INVALID_HANDLE;
    return *name = "of_a_library", CUDA_SUCCESS;
  }
  static void note_strictness() {
    if (g_script->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ++g_script->strict_calls;
  }
};

// A context of its own for each test: rings stay with their context.
struct Fixture {
  Fixture() {
    g_script = &script;
    script.current = handle<CUcontext>(static_cast<std::uintptr_t>(++g_next_context) << 12);
    script.names[function(0)] = "_Z5firstv";
    script.names[function(1)] = "second";
    real.cuCtxGetCurrent.set(&Slots::get_current);
    real.cuCtxGetDevice.set(&Slots::get_device);
    real.cuCtxPushCurrent_v2.set(&Slots::push);
    real.cuCtxPopCurrent_v2.set(&Slots::pop);
    real.cuThreadExchangeStreamCaptureMode.set(&Slots::exchange_mode);
    real.cuStreamCreate.set(&Slots::create_stream);
    real.cuStreamDestroy_v2.set(&Slots::destroy_stream);
    real.cuEventCreate.set(&Slots::create_event);
    real.cuEventDestroy_v2.set(&Slots::destroy_event);
    real.cuEventRecord.set(&Slots::record);
    real.cuEventRecord_ptsz.set(&Slots::record);
    real.cuEventQuery.set(&Slots::query);
    real.cuEventElapsedTime.set(&Slots::elapsed);
    real.cuFuncGetName.set(&Slots::function_name);
    real.cuKernelGetName.set(&Slots::kernel_name);
    runtime::forget_thread_context();
    context = runtime::current_context();
    start_device_times(kRing);
    before = device_counts();
  }
  ~Fixture() {
    context->captures = 0;
    end_device_times(*context);
    drain();
    start_device_times(0);
    runtime::forget_thread_context();
  }

  static CUfunction function(std::uintptr_t number) { return handle<CUfunction>(0xA0 + number); }

  bool launch(CUstream stream = nullptr, CUfunction function = Fixture::function(0),
              CUresult result = CUDA_SUCCESS, bool is_per_thread = false) {
    const LaunchFacts facts{
        EntryId::cuLaunchKernel, function, {{2, 1, 1}, {64, 1, 1}, 16}, stream, is_per_thread};
    TimedSlot* slot = begin_device_time(facts);
    if (slot == nullptr) return false;
    end_device_time(slot, facts, result);
    return true;
  }
  void complete_all() {
    for (auto& [event, state] : script.events) state.is_done = true;
  }
  std::vector<TimedLaunch> drain() {
    std::vector<TimedLaunch> taken;
    drain_device_times(
        [](void* list, const TimedLaunch& launch) {
          static_cast<std::vector<TimedLaunch>*>(list)->push_back(launch);
        },
        &taken);
    return taken;
  }
  std::uint64_t dropped() const { return device_counts().dropped - before.dropped; }
  std::uint64_t untimed() const { return device_counts().untimed - before.untimed; }

  Script script;
  runtime::ContextState* context = nullptr;
  DeviceCounts before;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "launches come out with their facts, on the host's clock") {
  script.skew_ns = -5'000'000'000;  // the device counts from another moment
  const std::uint64_t start = monotonic_ns();
  REQUIRE(launch(handle<CUstream>(0x30)));
  REQUIRE(launch(nullptr, function(1)));
  const std::uint64_t end = monotonic_ns();
  CHECK(outstanding_launches() == 2);
  const std::vector<TimedLaunch> taken = drain();
  CHECK(outstanding_launches() == 0);
  REQUIRE(taken.size() == 2);
  CHECK(std::string(taken[0].kernel) == "_Z5firstv");
  CHECK(std::string(taken[1].kernel) == "second");
  CHECK(taken[0].stream.handle == 0x30);
  CHECK(taken[1].stream.handle == 0);
  CHECK(taken[0].stream.number != taken[1].stream.number);
  CHECK(taken[0].stream.context == taken[1].stream.context);
  CHECK(taken[0].number < taken[1].number);
  CHECK(taken[0].block[0] == 64);
  CHECK(taken[0].shared_bytes == 16);
  CHECK(taken[0].stack.depth > 0);
  for (const TimedLaunch& one : taken) {
    CHECK(one.host_start_ns >= start);
    CHECK(one.host_end_ns <= end);
    CHECK(one.device_start_ns >= one.host_start_ns);
    CHECK(one.device_end_ns >= one.device_start_ns);
    // The anchor is as tight as its recording, which was watched.
    CHECK(one.device_end_ns < end + 50'000'000);
  }
  CHECK(drain().empty());
  CHECK(script.strict_calls == 0);
}

TEST_CASE_METHOD(Fixture, "a stream that is not done holds back its own launches only") {
  script.completes_at_once = false;
  REQUIRE(launch(handle<CUstream>(0x30), function(0)));
  script.completes_at_once = true;
  REQUIRE(launch(handle<CUstream>(0x40), function(1)));
  REQUIRE(launch(handle<CUstream>(0x30), function(1)));
  std::vector<TimedLaunch> taken = drain();
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].stream.handle == 0x40);
  complete_all();
  taken = drain();
  REQUIRE(taken.size() == 2);
  CHECK(std::string(taken[0].kernel) == "_Z5firstv");
}

TEST_CASE_METHOD(Fixture, "each of thousands of streams has a row of its own") {
  // One that is not done, among the last, holds back nobody else's.
  constexpr std::uintptr_t kStreams = 4000;
  std::map<std::uint32_t, std::uint64_t> handles;
  for (std::uintptr_t i = 1; i <= kStreams; ++i) {
    script.completes_at_once = i != kStreams - 10;
    REQUIRE(launch(handle<CUstream>(i << 8)));
    for (const TimedLaunch& one : drain()) handles[one.stream.number] = one.stream.handle;
  }
  CHECK(handles.size() == kStreams - 1);
  std::set<std::uint64_t> distinct;
  for (const auto& [number, value] : handles) distinct.insert(value);
  CHECK(distinct.size() == kStreams - 1);
  CHECK(dropped() == 0);
  CHECK(untimed() == 0);
  complete_all();
  CHECK(drain().size() == 1);
}

TEST_CASE_METHOD(Fixture, "default streams: the legacy one, and one of each thread") {
  const auto legacy = handle<CUstream>(0x1), per_thread = handle<CUstream>(0x2);
  REQUIRE(launch(nullptr));
  REQUIRE(launch(legacy));
  REQUIRE(launch(per_thread));
  REQUIRE(launch(nullptr, function(0), CUDA_SUCCESS, true));
  const std::vector<TimedLaunch> taken = drain();
  REQUIRE(taken.size() == 4);
  CHECK(taken[0].stream.number == taken[1].stream.number);
  CHECK_FALSE(taken[0].stream.is_per_thread);
  CHECK(taken[2].stream.number == taken[3].stream.number);
  CHECK(taken[2].stream.is_per_thread);
  CHECK(taken[0].stream.number != taken[2].stream.number);
}

TEST_CASE_METHOD(Fixture, "a full ring drops, counts, and makes room again") {
  script.completes_at_once = false;
  for (std::uint32_t i = 0; i < kRing; ++i) REQUIRE(launch());
  CHECK_FALSE(launch());
  CHECK_FALSE(launch());
  CHECK(dropped() == 2);
  complete_all();
  CHECK(drain().size() == kRing);
  CHECK(launch());
  const std::size_t events = script.events.size();
  complete_all();
  drain();
  for (int i = 0; i < 100; ++i) {
    REQUIRE(launch());
    complete_all();
    REQUIRE(drain().size() == 1);
  }
  CHECK(script.events.size() == events);  // made once
}

TEST_CASE_METHOD(Fixture, "what cannot be timed is launched all the same, and counted") {
  SECTION("a capture is active") {
    context->captures = 1;
    CHECK_FALSE(launch());
    CHECK(script.records.empty());
  }
  SECTION("after a fault") {
    context->is_suspect = true;
    CHECK_FALSE(launch());
    context->is_suspect = false;
  }
  SECTION("no memory for events") {
    script.creations_left = 1;
    CHECK_FALSE(launch());
    script.creations_left = -1;
    CHECK(launch());
  }
  SECTION("the stream is of another context") {
    script.record_result = CUDA_ERROR_INVALID_HANDLE;
    CHECK_FALSE(launch());
  }
  CHECK(untimed() == 1);
  CHECK(dropped() == 0);
}

TEST_CASE_METHOD(Fixture, "a launch that failed is none") {
  CHECK(launch(nullptr, function(0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
  CHECK(drain().empty());
  CHECK(untimed() == 0);
  CHECK(outstanding_launches() == 0);
}

TEST_CASE_METHOD(Fixture, "after a fault on the device the times are given up") {
  REQUIRE(launch());
  script.query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(drain().empty());
  script.query_result = CUDA_SUCCESS;
  CHECK(drain().empty());
  CHECK(untimed() == 1);
  CHECK(outstanding_launches() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "a context that ends takes our objects along and loses no finished times") {
  REQUIRE(launch());
  script.completes_at_once = false;
  REQUIRE(launch());
  end_device_times(*context);
  CHECK(script.events.empty());
  CHECK(script.destroyed_events == 6);  // of two slots and two anchors
  CHECK(script.destroyed_streams == 1);
  CHECK(untimed() == 1);
  CHECK(drain().size() == 1);
  // The same handle may come back, as a primary context does.
  script.completes_at_once = true;
  REQUIRE(launch());
  CHECK(drain().size() == 1);
}

TEST_CASE_METHOD(Fixture, "names follow their function through an unload") {
  const CUfunction kernel = function(7);
  script.names[kernel] = "old";
  const char* old_name = kernel_name(kernel);
  CHECK(std::string(old_name) == "old");
  script.names[kernel] = "new";
  CHECK(kernel_name(kernel) == old_name);
  forget_kernel_names();
  CHECK(std::string(kernel_name(kernel)) == "new");
  CHECK(std::string(old_name) == "old");
  CHECK(std::string(kernel_name(handle<CUfunction>(0xC0))) == "of_a_library");
  CHECK(std::string(kernel_name(handle<CUfunction>(0xD0))) == "kernel");
}
