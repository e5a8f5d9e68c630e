// SPDX-License-Identifier: Apache-2.0
// The rules of the table as a wrapper applies them, with doubles for the driver, the queues and the
// profile.
#include <string>
#include <vector>

#include "shim/thunk.h"
#include "tests/unit/catch.h"

namespace {

using shim::EntryId;

struct Event {
  std::string what;
  const void* handle = nullptr;
  bool per_thread = false;
  EntryId why{};
};
std::vector<Event> g_events;
std::vector<Event> g_told;
CUresult g_driver_result = CUDA_SUCCESS;
std::vector<CUresult> g_failures;  // that deferral was told of
bool g_may_wake = false;
struct Recorded {
  std::size_t stat;
  std::uint64_t ns;
  profiler::CallFacts facts;
};
std::vector<Recorded> g_recorded;

void note(const char* what, const void* handle, bool per_thread, EntryId why) {
  g_events.push_back({what, handle, per_thread, why});
  errno = EIO;  // a flush may do anything to errno
  profiler::t_submissions.count += 1;
  profiler::t_submissions.ns += 7;
}

std::vector<std::string> happened() {
  std::vector<std::string> names;
  for (const Event& event : g_events) names.push_back(event.what);
  return names;
}

using Names = std::vector<std::string>;

CUstream stream_at(std::uintptr_t value) {
  return reinterpret_cast<CUstream>(value);
}

CUresult CUDAAPI copy_async(CUdeviceptr, const void*, size_t, CUstream) {
  g_events.push_back({"driver", nullptr, false, {}});
  return g_driver_result;
}
CUresult CUDAAPI copy_now(CUdeviceptr, const void*, size_t) {
  g_events.push_back({"driver", nullptr, false, {}});
  return g_driver_result;
}
CUresult CUDAAPI name_device(char*, int, CUdevice) {
  g_events.push_back({"driver", nullptr, false, {}});
  return g_driver_result;
}
CUresult CUDAAPI query_event(CUevent) {
  g_events.push_back({"driver", nullptr, false, {}});
  return g_driver_result;
}
CUresult CUDAAPI synchronize(CUcontext) {
  g_events.push_back({"driver", nullptr, false, {}});
  return g_driver_result;
}

// A fresh state per test: active, something queued, profile off.
struct Setting {
  Setting() {
    runtime::real.cuMemcpyHtoDAsync_v2.set(copy_async);
    runtime::real.cuMemcpyHtoDAsync_v2_ptsz.set(copy_async);
    runtime::real.cuMemcpyHtoD_v2.set(copy_now);
    runtime::real.cuDeviceGetName.set(name_device);
    runtime::real.cuEventQuery.set(query_event);
    runtime::real.cuCtxSynchronize_v2.set(synchronize);
    g_events.clear();
    g_recorded.clear();
    g_failures.clear();
    g_told.clear();
    runtime::g_untold.store(0);
    g_driver_result = CUDA_SUCCESS;
    g_may_wake = false;
    shim::g_mode.store(shim::Mode::kActive);
    runtime::g_nonempty_queues.store(1);
  }
};

CUresult copy(std::uintptr_t stream) {
  return shim::Thunk<EntryId::cuMemcpyHtoDAsync_v2>::call(0, nullptr, 0, stream_at(stream));
}

}  // namespace

namespace runtime {
constinit std::atomic<std::uint32_t> g_nonempty_queues{0};
constinit std::atomic<std::uint32_t> g_untold{0};
void flush_stream(CUstream stream, bool per_thread, EntryId why) noexcept {
  note("stream", stream, per_thread, why);
}
void flush_legacy(EntryId why) noexcept {
  note("legacy", nullptr, false, why);
}
void flush_context(CUcontext context, EntryId why) noexcept {
  note("context", context, false, why);
}
void flush_all(EntryId why) noexcept {
  note("all", nullptr, false, why);
}
void flush_for_stream_wait(CUstream stream, bool per_thread, EntryId why) noexcept {
  note("stream wait", stream, per_thread, why);
}
void flush_for_default_streams(EntryId why) noexcept {
  note("default streams", nullptr, false, why);
}
void flush_for_liveness(EntryId why) noexcept {
  note("liveness", nullptr, false, why);
}
CUresult tell_of_stream(CUstream stream, bool per_thread, CUresult called) noexcept {
  g_told.push_back({"told", stream, per_thread, {}});
  return called == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : called;
}
CUresult tell_of_context(CUcontext context, CUresult called) noexcept {
  g_told.push_back({"told", context, false, {}});
  return called == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_FAILED : called;
}
void note_failure(CUresult result) noexcept {
  g_failures.push_back(result);
}
}  // namespace runtime

namespace shim {
constinit std::atomic<Mode> g_mode{Mode::kAsleep};
bool wake(EntryId) noexcept {
  if (g_may_wake) g_mode.store(Mode::kActive);
  return g_may_wake;
}
}  // namespace shim

namespace profiler {
constinit std::atomic<bool> g_profile_enabled{false};
constinit thread_local Submissions t_submissions;
void CallStats::record(std::size_t stat, std::uint64_t ns, const CallFacts& facts) noexcept {
  g_recorded.push_back({stat, ns, facts});
  g_events.push_back({"recorded", nullptr, false, {}});
}
bool times_launches() noexcept {
  return false;
}
}  // namespace profiler

TEST_CASE("A stream-ordered call submits what its stream must run behind", "[shim]") {
  Setting setting;
  CHECK(copy(0x1230) == CUDA_SUCCESS);
  REQUIRE(happened() == Names{"stream", "driver"});
  CHECK(g_events[0].handle == stream_at(0x1230));
  CHECK(g_events[0].why == EntryId::cuMemcpyHtoDAsync_v2);
  CHECK_FALSE(g_events[0].per_thread);
  shim::Thunk<EntryId::cuMemcpyHtoDAsync_v2_ptsz>::call(0, nullptr, 0, nullptr);
  CHECK(g_events[2].per_thread);
}

TEST_CASE("With nothing queued the driver is called and nothing else", "[shim]") {
  Setting setting;
  runtime::g_nonempty_queues.store(0);
  copy(0x1230);
  shim::Thunk<EntryId::cuMemcpyHtoD_v2>::call(0, nullptr, 0);
  CHECK(happened() == Names{"driver", "driver"});
}

TEST_CASE("A synchronous copy submits what it runs behind, and sets the rest on its way",
          "[shim]") {
  Setting setting;
  shim::Thunk<EntryId::cuMemcpyHtoD_v2>::call(0, nullptr, 0);
  CHECK(happened() == Names{"default streams", "driver"});
}

TEST_CASE("A context rule takes the context argument where there is one", "[shim]") {
  Setting setting;
  auto context = reinterpret_cast<CUcontext>(std::uintptr_t{0x77});
  shim::forward_with_rule<EntryId::cuCtxSynchronize_v2>(context);
  REQUIRE(happened() == Names{"context", "driver"});
  CHECK(g_events[0].handle == context);
  CHECK(shim::context_of(1, 2) == nullptr);
  CHECK(shim::context_of() == nullptr);
}

TEST_CASE("A call that takes effect is not told of earlier work", "[shim]") {
  Setting setting;
  runtime::g_untold.store(1);
  CHECK(copy(1) == CUDA_SUCCESS);
  CHECK(shim::Thunk<EntryId::cuMemcpyHtoD_v2>::call(0, nullptr, 0) == CUDA_SUCCESS);
  CHECK(g_told.empty());
}

TEST_CASE("A call that changes nothing is told of earlier work, unless it fails itself", "[shim]") {
  Setting setting;
  CHECK(shim::Thunk<EntryId::cuEventQuery>::call(nullptr) == CUDA_SUCCESS);
  runtime::g_untold.store(1);
  CHECK(shim::Thunk<EntryId::cuEventQuery>::call(nullptr) == CUDA_ERROR_LAUNCH_FAILED);
  auto context = reinterpret_cast<CUcontext>(std::uintptr_t{0x77});
  CHECK(shim::Thunk<EntryId::cuCtxSynchronize_v2>::call(context) == CUDA_ERROR_LAUNCH_FAILED);
  REQUIRE(g_told.size() == 2);
  CHECK(g_told[0].handle == nullptr);
  CHECK(g_told[1].handle == context);
  g_driver_result = CUDA_ERROR_INVALID_VALUE;
  CHECK(shim::Thunk<EntryId::cuEventQuery>::call(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("What the driver fails is told to deferral, whatever was queued and whatever the rule",
          "[shim]") {
  Setting setting;
  g_driver_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  copy(0x1230);
  runtime::g_nonempty_queues.store(0);
  copy(0x1230);
  shim::Thunk<EntryId::cuDeviceGetName>::call(nullptr, 0, 0);
  shim::g_mode.store(shim::Mode::kProfiled);
  copy(0x1230);
  CHECK(g_failures == std::vector<CUresult>(4, CUDA_ERROR_ILLEGAL_ADDRESS));
  g_driver_result = CUDA_SUCCESS;
  copy(0x1230);
  CHECK(g_failures.size() == 4);
}

TEST_CASE("A flush leaves errno as it was", "[shim]") {
  Setting setting;
  errno = EDOM;
  copy(1);
  CHECK(errno == EDOM);
}

TEST_CASE("A passive shim forwards", "[shim]") {
  Setting setting;
  for (shim::Mode mode : {shim::Mode::kAsleep, shim::Mode::kStarting, shim::Mode::kPassive}) {
    shim::g_mode.store(mode);
    copy(1);
  }
  shim::g_mode.store(shim::Mode::kActive);
  {
    runtime::ReentryGuard inside;
    copy(1);
  }
  CHECK(happened() == Names{"driver", "driver", "driver", "driver"});
  copy(1);
  CHECK(happened().size() == 6);
}

TEST_CASE("The first call wakes the shim and is handled by it", "[shim]") {
  Setting setting;
  shim::g_mode.store(shim::Mode::kAsleep);
  g_may_wake = true;
  copy(1);
  CHECK(happened() == Names{"stream", "driver"});
}

TEST_CASE("The profile records calls that observe, and says which flushed", "[shim]") {
  Setting setting;
  shim::g_mode.store(shim::Mode::kProfiled);
  copy(1);
  CHECK(happened() == Names{"stream", "driver", "recorded"});
  CHECK(g_recorded[0].stat == profiler::stat_of(EntryId::cuMemcpyHtoDAsync_v2));
  CHECK(g_recorded[0].facts.flushed);
  CHECK(g_recorded[0].facts.submit_ns == 7);
  runtime::g_nonempty_queues.store(0);
  g_events.clear();
  copy(1);
  CHECK(happened() == Names{"driver", "recorded"});
  CHECK_FALSE(g_recorded[1].facts.flushed);
  CHECK(g_recorded[1].facts.submit_ns == 0);
  g_events.clear();
  shim::Thunk<EntryId::cuDeviceGetName>::call(nullptr, 0, 0);
  CHECK(happened() == Names{"driver"});
  g_events.clear();
  runtime::ReentryGuard inside;
  copy(1);
  CHECK(happened() == Names{"driver"});
}

TEST_CASE("A failure is told from work in progress", "[shim]") {
  Setting setting;
  shim::g_mode.store(shim::Mode::kProfiled);
  g_driver_result = CUDA_ERROR_NOT_READY;
  shim::Thunk<EntryId::cuEventQuery>::call(nullptr);
  CHECK(g_recorded[0].facts.not_ready);
  CHECK_FALSE(g_recorded[0].facts.failed);
  g_driver_result = CUDA_ERROR_INVALID_VALUE;
  shim::Thunk<EntryId::cuEventQuery>::call(nullptr);
  CHECK_FALSE(g_recorded[1].facts.not_ready);
  CHECK(g_recorded[1].facts.failed);
}

TEST_CASE("The bytes of copies and memsets come from their arguments", "[shim]") {
  using shim::facts_of;
  void* host = nullptr;
  const void* source = nullptr;
  const CUdeviceptr device = 0x1000;
  CUstream stream = nullptr;
  const size_t bytes = 12;
  CHECK(facts_of<EntryId::cuMemcpyDtoH_v2>(host, device, bytes).bytes == 12);
  CHECK(facts_of<EntryId::cuMemcpyHtoDAsync_v2_ptsz>(device, source, bytes, stream).bytes == 12);
  CHECK(facts_of<EntryId::cuMemcpyDtoD_v2>(device, device, bytes).bytes == 12);
  CHECK(facts_of<EntryId::cuMemcpyDtoD_v2>(device, device, bytes).host == shim::HostSide::kNone);
  CHECK(facts_of<EntryId::cuMemcpy>(device, device, bytes).host == shim::HostSide::kUnknown);
  CHECK(facts_of<EntryId::cuMemsetD16_v2>(device, static_cast<unsigned short>(1), bytes).bytes ==
        24);
  CHECK(facts_of<EntryId::cuMemsetD2D32_v2>(device, size_t{512}, 1u, size_t{3}, size_t{5}).bytes ==
        60);
  size_t sizes[] = {1, 2, 3};
  CUdeviceptr* list = nullptr;
  CUmemcpyAttributes* attributes = nullptr;
  size_t* indices = nullptr;
  CHECK(facts_of<EntryId::cuMemcpyBatchAsync_v2>(list, list, static_cast<size_t*>(sizes), size_t{3},
                                                 attributes, indices, size_t{0}, stream)
            .bytes == 6);
  CHECK(facts_of<EntryId::cuCtxSynchronize>().bytes == 0);
}

TEST_CASE("Structures of copies are read, null pointers included", "[shim]") {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = 4, copy.Height = 3, copy.Depth = 2;
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  const CUDA_MEMCPY3D* pointer = &copy;
  CHECK(shim::facts_of<EntryId::cuMemcpy3D_v2>(pointer).bytes == 24);
  CHECK(shim::facts_of<EntryId::cuMemcpy3D_v2>(pointer).host == shim::HostSide::kPageable);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  CHECK(shim::facts_of<EntryId::cuMemcpy3D_v2>(pointer).host == shim::HostSide::kNone);
  pointer = nullptr;
  CHECK(shim::facts_of<EntryId::cuMemcpy3D_v2>(pointer).bytes == 0);
}

TEST_CASE("Page-locked memory is known from the calls that make and free it", "[shim]") {
  using profiler::host_side_of;
  using profiler::HostSide;
  void* memory = reinterpret_cast<void*>(std::uintptr_t{0x10000});
  shim::follow_host_memory<EntryId::cuMemHostRegister_v2>(memory, size_t{256}, 0u);
  CHECK(host_side_of(0x10000) == HostSide::kLocked);
  CHECK(host_side_of(0x100ff) == HostSide::kLocked);
  CHECK(host_side_of(0x10100) == HostSide::kPageable);
  void* made = reinterpret_cast<void*>(std::uintptr_t{0x8000});
  shim::follow_host_memory<EntryId::cuMemHostAlloc>(&made, size_t{16}, 0u);
  CUdeviceptr managed = 0x20000;
  shim::follow_host_memory<EntryId::cuMemAllocManaged>(&managed, size_t{16}, 0u);
  CHECK(host_side_of(0x800f) == HostSide::kLocked);
  CHECK(host_side_of(0x7fff) == HostSide::kPageable);
  CHECK(host_side_of(0x20000) == HostSide::kLocked);
  shim::follow_host_memory<EntryId::cuMemHostUnregister>(memory);
  shim::follow_host_memory<EntryId::cuMemFree_v2>(managed);
  shim::follow_host_memory<EntryId::cuMemFree_v2>(CUdeviceptr{0x8008});  // not the start of a range
  CHECK(host_side_of(0x10000) == HostSide::kPageable);
  CHECK(host_side_of(0x20000) == HostSide::kPageable);
  CHECK(host_side_of(0x8000) == HostSide::kLocked);
  shim::follow_host_memory<EntryId::cuMemFreeHost>(made);
  CHECK(host_side_of(0x8000) == HostSide::kPageable);
}

TEST_CASE("The stream argument is found in every form, null pointers included", "[shim]") {
  CUlaunchConfig config{};
  config.hStream = stream_at(0x55);
  const CUlaunchConfig* pointer = &config;
  CUfunction function = nullptr;
  void** none = nullptr;
  CHECK(shim::stream_of<EntryId::cuLaunchKernelEx>(pointer, function, none, none) ==
        stream_at(0x55));
  pointer = nullptr;
  CHECK(shim::stream_of<EntryId::cuLaunchKernelEx>(pointer, function, none, none) == nullptr);
  CUDA_LAUNCH_PARAMS list[2]{};
  list[0].hStream = stream_at(0x66);
  CUDA_LAUNCH_PARAMS* launches = list;
  constexpr EntryId kMulti = EntryId::cuLaunchCooperativeKernelMultiDevice;
  CHECK(shim::stream_of<kMulti>(launches, 2u, 0u) == stream_at(0x66));
  CHECK(shim::stream_of<kMulti>(launches, 0u, 0u) == nullptr);
  launches = nullptr;
  CHECK(shim::stream_of<kMulti>(launches, 2u, 0u) == nullptr);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.hUploadStream = stream_at(0x88);
  CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate = &params;
  CUgraphExec* exec = nullptr;
  CUgraph graph = nullptr;
  constexpr EntryId kInstantiate = EntryId::cuGraphInstantiateWithParams;
  CHECK(shim::stream_of<kInstantiate>(exec, graph, instantiate) == stream_at(0x88));
  instantiate = nullptr;
  CHECK(shim::stream_of<kInstantiate>(exec, graph, instantiate) == nullptr);
}
