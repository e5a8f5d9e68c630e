// SPDX-License-Identifier: Apache-2.0
// Runs the scenario named on the command line; --list prints all names.
#include <cstring>

#include "tests/programs/scenario.h"

// What every driver since CUDA 3.2 has; cuda.h declares only the newest form.
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);

namespace scenario {

const char* error_name(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : "unknown error";
}

void check(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, call, error_name(result));
  std::exit(2);
}

void require(bool claim, const char* text, int line) {
  if (claim) return;
  std::fprintf(stderr, "line %d: not true: %s\n", line, text);
  std::exit(3);
}

Device::Device(const char* image) {
  CHECK(cuInit(0));
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuCtxCreate_v2(&context_, 0, device));
  CHECK(cuModuleLoadData(&module_, image));
}

Device::~Device() {
  CHECK(cuModuleUnload(module_));
  CHECK(cuCtxDestroy(context_));
}

CUfunction Device::function(const char* name) const {
  return function_of(module_, name);
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, name), name, __LINE__);
  return function;
}

Buffer::Buffer(int count) : count_(count) {
  CHECK(cuMemAlloc(&memory_, bytes()));
  std::vector<unsigned> words(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<unsigned>(i);
  CHECK(cuMemcpyHtoD(memory_, words.data(), bytes()));
  // The copy may only be staged yet, and a non-blocking stream does not wait for it.
  CHECK(cuStreamSynchronize(nullptr));
}

std::vector<unsigned> Buffer::read() const {
  std::vector<unsigned> words(static_cast<std::size_t>(count_));
  CHECK(cuMemcpyDtoH(words.data(), memory_, bytes()));
  return words;
}

std::uint64_t hash(const void* data, std::size_t size) {
  std::uint64_t value = 0xcbf29ce484222325ULL;
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) value = (value ^ bytes[i]) * 0x100000001b3ULL;
  return value;
}

void print(const char* label, const Buffer& buffer) {
  const std::vector<unsigned> words = buffer.read();
  std::printf("%s %016llx\n", label,
              static_cast<unsigned long long>(hash(words.data(), buffer.bytes())));
}

}  // namespace scenario

int main(int count, char** arguments) {
  using namespace scenario;
  const char* wanted = count == 2 ? arguments[1] : "";
  const bool list = std::strcmp(wanted, "--list") == 0;
  for (const auto* group :
       {&kStreamScenarios, &kHostScenarios, &kLaunchScenarios, &kSequenceScenarios,
        &kLifetimeScenarios, &kGraphScenarios, &kFaultScenarios, &kAttributeScenarios,
        &kContextScenarios, &kRefusalScenarios, &kCaptureScenarios, &kOwnGraphScenarios,
        &kEndingScenarios, &kGreenScenarios, &kConditionalScenarios}) {
    for (const Scenario& scenario : *group) {
      if (list) std::printf("%s\n", scenario.name);
      if (std::strcmp(wanted, scenario.name) != 0) continue;
      scenario.run();
      std::printf("done\n");
      return 0;
    }
  }
  if (list) return 0;
  std::fprintf(stderr, "usage: scenarios NAME | --list\n");
  return 1;
}
