// SPDX-License-Identifier: Apache-2.0
// What the tests of the public interface share: a device of either backend with the same two
// kernels, and how many kernels softgpu has really run.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "cajeta/xpu.hpp"
#include "tests/unit/catch.h"

namespace xpu = cajeta::xpu;

// How the process was told to defer. Tests that queue are about kAsked and kAll.
enum class Deferral { kAsked, kNever, kAll };
Deferral deferral();

// The lines of softgpu's log: operations that have been executed, kernels alone.
std::size_t executed_kernels();

class Machine {
 public:
  explicit Machine(const char* backend = "cuda");
  bool is_cuda() const { return is_cuda_; }
  // Whether a stream that was asked to defer does.
  bool queues() const { return is_cuda_ && deferral() != Deferral::kNever; }

  void count_up(const xpu::StreamHandle& stream, const xpu::Buffer& counter,
                unsigned amount) const {
    stream.launch(count_up_, {{1, 1, 1}, {1, 1, 1}}, counter, amount);
  }
  void affine(const xpu::StreamHandle& stream, const xpu::Buffer& data, unsigned multiply,
              unsigned add) const {
    stream.launch(affine_, {{1, 1, 1}, {64, 1, 1}}, data, multiply, add, 1);
  }
  xpu::Buffer counter(unsigned value = 0) const;
  unsigned read(const xpu::StreamHandle& stream, const xpu::Buffer& counter) const;

  xpu::Device device;
  xpu::Module module;

 private:
  bool is_cuda_;
  xpu::Kernel count_up_, affine_;
};

// Host functions like the kernels of scenario_kernels.cu.
std::vector<cajeta_xpu_host_kernel> host_kernels();
xpu::Module load(const xpu::Device& device, bool is_cuda);

// A stream that defers, if it may.
inline xpu::KernelStream deferred_stream(const Machine& machine) {
  xpu::KernelStream stream = xpu::KernelStream::create(machine.device);
  stream.setDeferred(true);
  return stream;
}
