// SPDX-License-Identifier: Apache-2.0
// Streams, events, host functions and memory operations: which work waits for which. A gate (a wait
// for a value that only the host writes) holds a stream back, so that order is seen without
// sleeping. Run under every order policy.
#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

extern "C" CUresult cuStreamSynchronize_ptsz(CUstream);
extern "C" CUresult cuStreamGetId_ptsz(CUstream, unsigned long long*);
extern "C" CUresult cuMemsetD32Async_ptsz(CUdeviceptr, unsigned, std::size_t, CUstream);

namespace {

// Pinned words that host and device share.
class Words {
 public:
  explicit Words(std::size_t count) {
    void* memory = nullptr;
    REQUIRE_OK(cuMemAllocHost(&memory, count * 4));
    words_ = static_cast<std::uint32_t*>(memory);
    for (std::size_t i = 0; i < count; ++i) words_[i] = 0;
  }
  ~Words() { cuMemFreeHost(words_); }
  CUdeviceptr address(std::size_t i) const { return reinterpret_cast<CUdeviceptr>(words_ + i); }
  std::uint32_t read(std::size_t i) const {
    return std::atomic_ref<std::uint32_t>(words_[i]).load(std::memory_order_acquire);
  }
  void write(std::size_t i, std::uint32_t value) const {
    std::atomic_ref<std::uint32_t>(words_[i]).store(value, std::memory_order_release);
  }

 private:
  std::uint32_t* words_ = nullptr;
};

class OwnStream {
 public:
  explicit OwnStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    REQUIRE_OK(cuStreamCreate(&stream_, flags));
  }
  ~OwnStream() {
    if (stream_ != nullptr) cuStreamDestroy(stream_);
  }
  operator CUstream() const { return stream_; }  // NOLINT(google-explicit-constructor)
  CUstream release() { return std::exchange(stream_, nullptr); }

 private:
  CUstream stream_ = nullptr;
};

class OwnEvent {
 public:
  explicit OwnEvent(unsigned flags = 0) { REQUIRE_OK(cuEventCreate(&event_, flags)); }
  ~OwnEvent() { cuEventDestroy(event_); }
  operator CUevent() const { return event_; }  // NOLINT(google-explicit-constructor)

 private:
  CUevent event_ = nullptr;
};

void hold(CUstream stream, const Words& words, std::size_t gate) {
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(gate), 1, CU_STREAM_WAIT_VALUE_EQ));
}

void set(CUstream stream, const Words& words, std::size_t i, std::uint32_t value) {
  REQUIRE_OK(cuStreamWriteValue32(stream, words.address(i), value, 0));
}

}  // namespace

TEST_CASE("a stream keeps its order and a query tells when it is done") {
  Session session;
  const Words words{2};
  const OwnStream stream;
  hold(stream, words, 0);
  set(stream, words, 1, 5);
  for (int i = 0; i < 50; ++i) CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(words.read(1) == 0);
  words.write(0, 1);
  int polls = 0;
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) ++polls;
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(words.read(1) == 5);
  CHECK(polls < 10000000);
}

TEST_CASE("synchronising one non-blocking stream does not wait for another") {
  Session session;
  const Words words{3};
  const OwnStream held, running;
  hold(held, words, 0);
  set(held, words, 1, 1);
  set(running, words, 2, 1);
  REQUIRE_OK(cuStreamSynchronize(running));
  CHECK(words.read(2) == 1);
  CHECK(words.read(1) == 0);
  words.write(0, 1);
  REQUIRE_OK(cuCtxSynchronize());
  CHECK(words.read(1) == 1);
}

TEST_CASE("the legacy stream joins with blocking streams and only with those") {
  Session session;
  const Words words{4};
  const OwnStream blocking{CU_STREAM_DEFAULT}, free_running;
  hold(blocking, words, 0);
  set(CU_STREAM_LEGACY, words, 1, 1);  // waits for the blocking stream
  set(free_running, words, 2, 1);      // waits for nobody
  REQUIRE_OK(cuStreamSynchronize(free_running));
  CHECK(words.read(2) == 1);
  CHECK(words.read(1) == 0);
  const OwnStream other{CU_STREAM_DEFAULT};
  set(other, words, 3, 1);  // waits for the legacy stream
  CHECK(cuStreamQuery(other) == CUDA_ERROR_NOT_READY);
  CHECK(words.read(3) == 0);
  words.write(0, 1);
  REQUIRE_OK(cuStreamSynchronize(other));
  CHECK(words.read(1) == 1);
  CHECK(words.read(3) == 1);
}

TEST_CASE("the launch of a graph without nodes takes its place in the stream") {
  Session session;
  const Words words{1};
  const OwnStream before{CU_STREAM_DEFAULT}, after{CU_STREAM_DEFAULT};
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphCreate(&graph, 0));
  REQUIRE_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  hold(before, words, 0);
  REQUIRE_OK(cuGraphLaunch(exec, CU_STREAM_LEGACY));  // joins both blocking streams
  const OwnEvent event{CU_EVENT_DISABLE_TIMING};
  REQUIRE_OK(cuEventRecord(event, after));
  for (int i = 0; i < 30; ++i) CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
  words.write(0, 1);
  REQUIRE_OK(cuEventSynchronize(event));
  CHECK(cuStreamQuery(before) == CUDA_SUCCESS);
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE_OK(cuGraphDestroy(graph));
}

TEST_CASE("per-thread default streams are one per thread and join with the legacy stream") {
  Session session;
  const Words words{3};
  unsigned long long mine = 0, by_handle = 0, legacy = 0, theirs = 0;
  REQUIRE_OK(cuStreamGetId_ptsz(nullptr, &mine));
  REQUIRE_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &by_handle));
  REQUIRE_OK(cuStreamGetId(nullptr, &legacy));
  CHECK(mine == by_handle);
  CHECK(mine != legacy);
  CUcontext context = session.context();
  std::thread([&] {
    CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(cuStreamGetId_ptsz(nullptr, &theirs) == CUDA_SUCCESS);
  }).join();
  CHECK(theirs != mine);
  hold(CU_STREAM_PER_THREAD, words, 0);
  set(CU_STREAM_LEGACY, words, 1, 1);
  CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
  CHECK(words.read(1) == 0);
  words.write(0, 1);
  REQUIRE_OK(cuMemsetD32Async_ptsz(words.address(2), 9, 1, nullptr));
  REQUIRE_OK(cuStreamSynchronize_ptsz(nullptr));
  CHECK(words.read(2) == 9);
  CHECK(words.read(1) == 1);
}

TEST_CASE("a wait binds to the record that was latest when it was called") {
  Session session;
  const Words words{4};
  const OwnStream first, second, third;
  const OwnEvent event{CU_EVENT_DISABLE_TIMING};
  REQUIRE_OK(cuStreamWaitEvent(third, event, 0));  // never recorded: nothing to wait for
  REQUIRE_OK(cuStreamSynchronize(third));
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);

  REQUIRE_OK(cuEventRecord(event, first));
  REQUIRE_OK(cuStreamWaitEvent(third, event, 0));
  hold(second, words, 0);
  REQUIRE_OK(cuEventRecord(event, second));  // the wait above is not affected
  set(third, words, 1, 1);
  REQUIRE_OK(cuStreamSynchronize(third));
  CHECK(words.read(1) == 1);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);

  REQUIRE_OK(cuStreamWaitEvent(third, event, 0));
  set(third, words, 2, 1);
  CHECK(cuStreamQuery(third) == CUDA_ERROR_NOT_READY);
  words.write(0, 1);
  REQUIRE_OK(cuEventSynchronize(event));
  REQUIRE_OK(cuStreamSynchronize(third));
  CHECK(words.read(2) == 1);
}

TEST_CASE("elapsed time needs two finished records with timing") {
  Session session;
  const Words words{1};
  const OwnStream stream;
  const OwnEvent start, end, untimed{CU_EVENT_DISABLE_TIMING};
  float ms = -1;
  CHECK(cuEventElapsedTime(&ms, start, end) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_OK(cuEventRecord(start, stream));
  hold(stream, words, 0);
  REQUIRE_OK(cuEventRecord(end, stream));
  REQUIRE_OK(cuEventRecord(untimed, stream));
  CHECK(cuEventElapsedTime(&ms, start, end) == CUDA_ERROR_NOT_READY);
  words.write(0, 1);
  REQUIRE_OK(cuEventSynchronize(end));
  REQUIRE_OK(cuEventElapsedTime(&ms, start, end));
  CHECK(ms >= 0);
  CHECK(cuEventElapsedTime(&ms, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("handles that are dead or foreign are refused") {
  Session session;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, 0));
  REQUIRE_OK(cuEventCreate(&event, 0));
  CHECK(cuStreamCreate(&stream, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuEventCreate(&event, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuStreamDestroy(stream));
  REQUIRE_OK(cuEventDestroy(event));
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventRecord(event, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuStreamDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);
  int foreign = 0;
  CHECK(cuStreamQuery(reinterpret_cast<CUstream>(&foreign)) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventQuery(reinterpret_cast<CUevent>(&foreign)) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a stream can be destroyed while its work is pending") {
  Session session;
  const Words words{2};
  OwnStream stream;
  hold(stream, words, 0);
  set(stream, words, 1, 1);
  REQUIRE_OK(cuStreamDestroy(stream.release()));
  CHECK(words.read(1) == 0);
  words.write(0, 1);
  REQUIRE_OK(cuCtxSynchronize());
  CHECK(words.read(1) == 1);
}

TEST_CASE("host functions run in order, on another thread, and may not call CUDA") {
  Session session;
  struct State {
    std::thread::id host = std::this_thread::get_id();
    std::atomic<int> calls{0};
    CUresult inside = CUDA_SUCCESS;
    bool is_same_thread = true;
  } state;
  const OwnStream stream;
  const CUhostFn function = [](void* data) {
    auto* const seen = static_cast<State*>(data);
    CUdeviceptr memory = 0;
    seen->inside = cuMemAlloc(&memory, 4);
    seen->is_same_thread = std::this_thread::get_id() == seen->host;
    ++seen->calls;
  };
  REQUIRE_OK(cuLaunchHostFunc(stream, function, &state));
  REQUIRE_OK(cuLaunchHostFunc(stream, function, &state));
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(state.calls == 2);
  CHECK(state.inside == CUDA_ERROR_NOT_PERMITTED);
  CHECK_FALSE(state.is_same_thread);
  CHECK(cuLaunchHostFunc(stream, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a stream callback is told its stream and status") {
  Session session;
  struct Seen {
    CUstream stream = nullptr;
    CUresult status = CUDA_ERROR_UNKNOWN;
  } seen;
  const OwnStream stream;
  const CUstreamCallback callback = [](CUstream from, CUresult status, void* data) {
    *static_cast<Seen*>(data) = {from, status};
  };
  REQUIRE_OK(cuStreamAddCallback(stream, callback, &seen, 0));
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(seen.stream == stream);
  CHECK(seen.status == CUDA_SUCCESS);
  CHECK(cuStreamAddCallback(stream, callback, &seen, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("waits compare as documented") {
  Session session;
  const Words words{1};
  const OwnStream stream;
  words.write(0, 6);
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(0), 5, CU_STREAM_WAIT_VALUE_GEQ));
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(0), 2, CU_STREAM_WAIT_VALUE_AND));
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(0), 6, CU_STREAM_WAIT_VALUE_EQ));
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(0), 6, CU_STREAM_WAIT_VALUE_NOR));
  REQUIRE_OK(cuStreamSynchronize(stream));
  REQUIRE_OK(cuStreamWaitValue32(stream, words.address(0), 7, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  words.write(0, 0x80000000u);  // 2^31 - 7 ahead of 7, counted round the clock: not behind it
  CHECK(cuStreamQuery(stream) != CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(cuStreamWaitValue32(stream, words.address(0) + 2, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuStreamWriteValue32(stream, 4, 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("stream attributes are kept and copied") {
  Session session;
  CUstream urgent = nullptr;
  REQUIRE_OK(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -99));
  int priority = 0, greatest = 0;
  unsigned flags = 0;
  CUcontext context = nullptr;
  REQUIRE_OK(cuCtxGetStreamPriorityRange(nullptr, &greatest));
  REQUIRE_OK(cuStreamGetPriority(urgent, &priority));
  CHECK(priority == greatest);
  REQUIRE_OK(cuStreamGetFlags(urgent, &flags));
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  REQUIRE_OK(cuStreamGetCtx(urgent, &context));
  CHECK(context == session.context());
  CUstreamAttrValue value{}, back{};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  REQUIRE_OK(cuStreamSetAttribute(urgent, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  const OwnStream other;
  REQUIRE_OK(cuStreamCopyAttributes(other, urgent));
  REQUIRE_OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &back));
  CHECK(back.syncPolicy == CU_SYNC_POLICY_YIELD);
  CHECK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &back) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuStreamDestroy(urgent));
}

TEST_CASE("a host that only polls memory sees its work done") {
  Session session;
  const Words words{1};
  const OwnStream stream;
  set(stream, words, 0, 1);
  while (words.read(0) == 0) std::this_thread::yield();
  CHECK(words.read(0) == 1);
}

TEST_CASE("threads share streams") {
  Session session;
  constexpr int kThreads = 4, kRounds = 50;
  const Words words{kThreads};
  const OwnStream shared;
  CUcontext context = session.context();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      if (cuCtxSetCurrent(context) != CUDA_SUCCESS) ++failures;
      CUevent event = nullptr;
      if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) ++failures;
      for (std::uint32_t i = 1; i <= kRounds; ++i) {
        if (cuMemsetD32Async(words.address(t), i, 1, shared) != CUDA_SUCCESS) ++failures;
        if (cuEventRecord(event, shared) != CUDA_SUCCESS) ++failures;
        if (cuEventSynchronize(event) != CUDA_SUCCESS) ++failures;
        if (words.read(t) != i) ++failures;
      }
      cuEventDestroy(event);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}
