// SPDX-License-Identifier: Apache-2.0
// Random programs that are ordered just enough to have one result: streams of all kinds, buffers
// that pass between them, and for each dependency either an event or, where the legacy rules
// already order it, nothing. The host runs the same program in sequence; every order policy must
// give its bytes.
#include <cuda.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

namespace {

constexpr std::size_t kWords = 40000;  // 160 kB: several pieces of a copy under random order
constexpr std::size_t kBuffers = 6, kStreams = 6;
constexpr int kSteps = 60;

enum class Kind { kLegacy, kBlocking, kNonBlocking };

struct TestStream {
  CUstream handle = nullptr;
  Kind kind = Kind::kLegacy;
};

// The last uses of a buffer that a later use must come after.
struct Use {
  std::size_t stream = 0;
  CUevent event = nullptr;
};
struct Buffer {
  CUdeviceptr address = 0;
  std::vector<std::uint32_t> model = std::vector<std::uint32_t>(kWords);
  std::vector<Use> writes, reads;  // at most one write
};

class Program : public Session {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (std::size_t i = 0; i < kStreams; ++i) {
      TestStream stream;
      stream.kind = i == 0 ? Kind::kLegacy : i < 3 ? Kind::kBlocking : Kind::kNonBlocking;
      if (i > 0) {
        REQUIRE_OK(cuStreamCreate(&stream.handle, stream.kind == Kind::kBlocking
                                                      ? CU_STREAM_DEFAULT
                                                      : CU_STREAM_NON_BLOCKING));
      }
      streams_.push_back(stream);
    }
    for (Buffer& buffer : buffers_) {
      REQUIRE_OK(cuMemAlloc(&buffer.address, kWords * 4));
      REQUIRE_OK(cuMemsetD32(buffer.address, 0, kWords));
    }
    REQUIRE_OK(cuCtxSynchronize());
  }

  ~Program() {
    for (CUevent event : events_) cuEventDestroy(event);
  }

  void step() {
    switch (pick(8)) {
      case 0:
        return query();
      case 1:
        return read_back();
      case 2:
        return fill();
      default:
        return copy();
    }
  }

  void check_all() {
    REQUIRE_OK(cuCtxSynchronize());
    for (const Buffer& buffer : buffers_) CHECK(contents(buffer) == buffer.model);
  }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  Buffer& any_buffer() { return buffers_[pick(kBuffers)]; }

  bool is_ordered_already(std::size_t from, std::size_t to) const {
    const Kind a = streams_[from].kind, b = streams_[to].kind;
    if (from == to) return true;
    return (a == Kind::kLegacy && b == Kind::kBlocking) ||
           (a == Kind::kBlocking && b == Kind::kLegacy);
  }

  void come_after(std::size_t stream, const std::vector<Use>& uses) {
    for (const Use& use : uses) {
      if (is_ordered_already(use.stream, stream)) continue;
      REQUIRE_OK(cuStreamWaitEvent(streams_[stream].handle, use.event, 0));
    }
  }

  Use used_now(std::size_t stream) {
    CUevent event = nullptr;
    REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REQUIRE_OK(cuEventRecord(event, streams_[stream].handle));
    events_.push_back(event);
    return {stream, event};
  }

  void before_write(std::size_t stream, const Buffer& buffer) {
    come_after(stream, buffer.writes);
    come_after(stream, buffer.reads);
  }

  void fill() {
    const std::size_t stream = pick(kStreams);
    Buffer& buffer = any_buffer();
    const auto value = static_cast<std::uint32_t>(random_());
    const std::size_t begin = pick(kWords), count = 1 + pick(kWords - begin);
    before_write(stream, buffer);
    REQUIRE_OK(cuMemsetD32Async(buffer.address + 4 * begin, value, count, streams_[stream].handle));
    buffer.writes = {used_now(stream)};
    buffer.reads.clear();
    for (std::size_t i = 0; i < count; ++i) buffer.model[begin + i] = value;
  }

  void copy() {
    const std::size_t stream = pick(kStreams);
    Buffer& from = any_buffer();
    Buffer& to = any_buffer();
    if (&from == &to) return fill();
    const std::size_t count = 1 + pick(kWords), begin = pick(kWords - count + 1),
                      end = pick(kWords - count + 1);
    come_after(stream, from.writes);
    before_write(stream, to);
    REQUIRE_OK(cuMemcpyDtoDAsync(to.address + 4 * end, from.address + 4 * begin, 4 * count,
                                 streams_[stream].handle));
    const Use use = used_now(stream);
    from.reads.push_back(use);
    to.writes = {use};
    to.reads.clear();
    for (std::size_t i = 0; i < count; ++i) to.model[end + i] = from.model[begin + i];
  }

  void query() {
    const CUresult code = cuStreamQuery(streams_[pick(kStreams)].handle);
    CHECK((code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY));
  }

  // The host waits for one buffer only.
  void read_back() {
    const Buffer& buffer = any_buffer();
    for (const Use& use : buffer.writes) REQUIRE_OK(cuEventSynchronize(use.event));
    CHECK(contents(buffer) == buffer.model);
  }

  std::vector<std::uint32_t> contents(const Buffer& buffer) const {
    std::vector<std::uint32_t> words(kWords);
    CUstream stream = nullptr;
    REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE_OK(cuMemcpyDtoHAsync(words.data(), buffer.address, kWords * 4, stream));
    REQUIRE_OK(cuStreamDestroy(stream));
    return words;
  }

  std::mt19937 random_;
  std::vector<TestStream> streams_;
  Buffer buffers_[kBuffers];
  std::vector<CUevent> events_;
};

}  // namespace

TEST_CASE("ordered programs have one result whatever the device's order") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Program program(seed);
    for (int i = 0; i < kSteps; ++i) program.step();
    program.check_all();
  }
}
