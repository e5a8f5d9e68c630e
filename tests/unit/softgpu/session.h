// SPDX-License-Identifier: Apache-2.0
// What the softgpu tests need of the driver API again and again. Linked to our libcuda; no internal
// header.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "tests/unit/catch.h"

#define REQUIRE_OK(call) REQUIRE((call) == CUDA_SUCCESS)

// A context of its own, current while this lives. Faults in it do not touch other tests.
class Session {
 public:
  Session() {
    REQUIRE_OK(cuInit(0));
    REQUIRE_OK(cuDeviceGet(&device_, 0));
    REQUIRE_OK(cuCtxCreate(&context_, nullptr, 0, device_));
  }
  ~Session() { cuCtxDestroy(context_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// Device memory holding a copy of host values.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    REQUIRE_OK(cuMemAlloc(&address_, count_ * sizeof(T)));
    REQUIRE_OK(cuMemcpyHtoD(address_, values.data(), count_ * sizeof(T)));
  }
  explicit DeviceArray(std::size_t count) : DeviceArray(std::vector<T>(count)) {}
  ~DeviceArray() { cuMemFree(address_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  CUdeviceptr address() const { return address_; }
  CUdeviceptr* parameter() { return &address_; }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    REQUIRE_OK(cuMemcpyDtoH(host.data(), address_, count_ * sizeof(T)));
    return host;
  }

 private:
  CUdeviceptr address_ = 0;
  std::size_t count_;
};
