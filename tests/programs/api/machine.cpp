// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/api/machine.h"

#include <unistd.h>

#include <cstring>
#include <fstream>

extern "C" const char kScenarioPtx[];

namespace {

std::string log_path() {
  return "/tmp/cajeta-api-test-" + std::to_string(getpid()) + ".log";
}

// Before the first driver call, which reads the environment.
const bool g_is_logging = [] {
  setenv("CAJETA_SOFTGPU_LOG", log_path().c_str(), 1);
  return std::atexit([] { unlink(log_path().c_str()); }) == 0;
}();

template <typename T>
T value_of(void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof value);
  return value;
}

int count_up(const cajeta_xpu_launch_shape*, void* const* arguments, void*) {
  *value_of<unsigned*>(arguments[0]) += value_of<unsigned>(arguments[1]);
  return CAJETA_XPU_SUCCESS;
}

int affine(const cajeta_xpu_launch_shape* shape, void* const* arguments, void*) {
  unsigned* data = value_of<unsigned*>(arguments[0]);
  const int count = value_of<int>(arguments[3]);
  for (int i = 0; i < count && i < static_cast<int>(shape->block[0] * shape->grid[0]); ++i) {
    data[i] = data[i] * value_of<unsigned>(arguments[1]) + value_of<unsigned>(arguments[2]);
  }
  return CAJETA_XPU_SUCCESS;
}

int fails(const cajeta_xpu_launch_shape*, void* const*, void*) {
  return CAJETA_XPU_ERROR_LAUNCH_FAILURE;
}

// Launches the kernel behind `user` on the stream it is given, its own perhaps.
int nested(const cajeta_xpu_launch_shape*, void* const* arguments, void*) {
  const auto* call = value_of<const std::vector<void*>*>(arguments[0]);
  const auto* machine = static_cast<const Machine*>((*call)[0]);
  machine->count_up(*static_cast<const xpu::KernelStream*>((*call)[1]),
                    *static_cast<const xpu::Buffer*>((*call)[2]), 5);
  return CAJETA_XPU_SUCCESS;
}

}  // namespace

Deferral deferral() {
  const char* text = std::getenv("CAJETA_XPU_DEFER");
  if (text == nullptr) return Deferral::kAsked;
  return std::string(text) == "all" ? Deferral::kAll : Deferral::kNever;
}

std::size_t executed_kernels() {
  std::ifstream file(log_path());
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find(" kernel ") != line.npos) ++count;
  }
  return count;
}

std::vector<cajeta_xpu_host_kernel> host_kernels() {
  return {{"count_up", &count_up, nullptr},
          {"affine", &affine, nullptr},
          {"fails", &fails, nullptr},
          {"nested", &nested, nullptr}};
}

xpu::Module load(const xpu::Device& device, bool is_cuda) {
  if (is_cuda) return {device, kScenarioPtx};
  const std::vector<cajeta_xpu_host_kernel> kernels = host_kernels();
  return {device, kernels.data(), kernels.size()};
}

Machine::Machine(const char* backend)
    : device(backend),
      module(load(device, std::string(backend) == "cuda")),
      is_cuda_(std::string(backend) == "cuda"),
      count_up_(module.kernel("count_up")),
      affine_(module.kernel("affine")) {}

xpu::Buffer Machine::counter(unsigned value) const {
  xpu::Buffer made(device, 64 * sizeof value);
  std::vector<unsigned> words(64, value);
  const auto stream = xpu::Stream::default_stream(device);
  stream.write(made, words.data(), words.size() * sizeof value);
  return made;
}

unsigned Machine::read(const xpu::StreamHandle& stream, const xpu::Buffer& counter) const {
  unsigned value = 0;
  stream.read(&value, counter, sizeof value);
  return value;
}
