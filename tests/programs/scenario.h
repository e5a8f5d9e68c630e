// SPDX-License-Identifier: Apache-2.0
// What the scenario programs share: a registry by name, checked calls, one device with its kernels,
// launches with typed arguments, and buffers that print a hash of their contents. Scenarios are
// ordinary CUDA programs: nothing here knows how the driver is reached. stdout must not depend on
// timing.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" const char kScenarioPtx[];
extern "C" const char kVariantPtx[];  // the same names, other bodies

namespace scenario {

struct Scenario {
  const char* name;
  void (*run)();
};

// Each file's scenarios.
extern const std::vector<Scenario> kStreamScenarios, kHostScenarios, kLaunchScenarios,
    kSequenceScenarios, kLifetimeScenarios, kGraphScenarios, kFaultScenarios, kAttributeScenarios,
    kContextScenarios, kRefusalScenarios, kCaptureScenarios, kOwnGraphScenarios, kEndingScenarios,
    kGreenScenarios, kConditionalScenarios;

const char* error_name(CUresult result);

// Ends the program with status 2 when the call failed.
void check(CUresult result, const char* call, int line);
#define CHECK(call) ::scenario::check(call, #call, __LINE__)

// Ends the program with status 3 and one line when a claim about the results is false.
void require(bool claim, const char* text, int line);
#define REQUIRE(claim) ::scenario::require(claim, #claim, __LINE__)

struct Shape {
  unsigned grid = 1, block = 64, shared_bytes = 0;
};

template <typename... Args>
CUresult launch(CUfunction function, Shape shape, CUstream stream, Args... args) {
  void* parameters[] = {&args..., nullptr};
  return cuLaunchKernel(function, shape.grid, 1, 1, shape.block, 1, 1, shape.shared_bytes, stream,
                        parameters, nullptr);
}

// A context of its own on device 0, current on the thread that made it, with the kernels loaded.
class Device {
 public:
  explicit Device(const char* image = kScenarioPtx);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  CUcontext context() const { return context_; }
  CUfunction function(const char* name) const;

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

CUfunction function_of(CUmodule module, const char* name);

class Stream {
 public:
  explicit Stream(unsigned flags = CU_STREAM_DEFAULT) { CHECK(cuStreamCreate(&stream_, flags)); }
  ~Stream() { CHECK(cuStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator CUstream() const { return stream_; }  // passes where a CUstream is wanted
  void wait() const { CHECK(cuStreamSynchronize(stream_)); }

 private:
  CUstream stream_ = nullptr;
};

class Event {
 public:
  Event() { CHECK(cuEventCreate(&event_, CU_EVENT_DEFAULT)); }
  ~Event() { CHECK(cuEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// `count` words of device memory, first filled with their index.
class Buffer {
 public:
  explicit Buffer(int count = 64);
  ~Buffer() { CHECK(cuMemFree(memory_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr at() const { return memory_; }
  int count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(unsigned); }
  std::vector<unsigned> read()
      const;  // a synchronous copy: waits for stream 0 and blocking streams only

 private:
  CUdeviceptr memory_ = 0;
  int count_;
};

std::uint64_t hash(const void* data, std::size_t size);
// "label hash" of the buffer's contents.
void print(const char* label, const Buffer& buffer);

}  // namespace scenario
