// SPDX-License-Identifier: Apache-2.0
// One grid being executed: a warp of 32 lanes at a time, preemptible after a bounded number of warp
// instructions. A KernelRun belongs to one thread at a time; several KernelRuns may run at once on
// different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/softgpu/ptx/footprint.h"
#include "tools/softgpu/ptx/memory.h"
#include "tools/softgpu/ptx/module.h"

namespace softgpu::ptx {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// What ended a kernel early. Each maps to one sticky CUDA error.
enum class Fault {
  kNone,
  kIllegalAddress,      // CUDA_ERROR_ILLEGAL_ADDRESS
  kMisalignedAddress,   // CUDA_ERROR_MISALIGNED_ADDRESS
  kIllegalInstruction,  // CUDA_ERROR_ILLEGAL_INSTRUCTION
  kInvalidPc,           // CUDA_ERROR_INVALID_PC: bad indirect call
  kAssert,              // CUDA_ERROR_ASSERT: __assertfail
  kTrap,                // CUDA_ERROR_LAUNCH_FAILED: trap, divergent barrier deadlock
  kStackOverflow,       // CUDA_ERROR_HARDWARE_STACK_ERROR
};

// What kernels share with the device: printf output, the device heap, clocks, conditions of graphs.
class Device {
 public:
  virtual ~Device() = default;
  virtual void print(
      const std::string& text) = 0;  // device printf and assert messages, whole calls
  virtual std::uint64_t heap_allocate(
      std::uint64_t size) = 0;                        // device malloc: device address or 0
  virtual bool heap_free(std::uint64_t address) = 0;  // false: not a live heap address
  virtual std::uint64_t global_timer() = 0;           // ns
  // cudaGraphSetConditional. False: not a handle that this kernel may set.
  virtual bool set_condition(std::uint64_t handle, std::uint32_t value) = 0;
};

struct LaunchConfig {
  const Module* module = nullptr;
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;  // kernel->parameter_bytes, by the kernel's layout
  bool cooperative = false;           // all CTAs alive together; grid-wide barriers may spin
  Dim3 cluster{0, 0, 0};              // CTAs, divides the grid; zeroes: none asked for
  Footprint* footprint = nullptr;     // where to note global accesses; null: nowhere
};

class KernelRun {
 public:
  enum class Status { kRunning, kDone, kFault };

  KernelRun(LaunchConfig config, GlobalMemory& memory, Device& device);
  ~KernelRun();

  // Runs at most about `warp_instructions` more and returns. Resident CTAs are interleaved so that
  // a kernel that spins on another CTA, or on memory written by the host or another kernel, does
  // not block the caller.
  Status step(std::uint64_t warp_instructions);
  Fault fault() const;
  const std::string& fault_message() const;  // one line: kernel, thread, address

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace softgpu::ptx
