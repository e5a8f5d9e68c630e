// SPDX-License-Identifier: Apache-2.0
// A small device for executor tests: allocations with distinct device addresses, a heap, captured
// output, and one call that parses PTX, places its variables and runs a kernel to its end. Test
// thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/softgpu/ptx/kernel_run.h"

namespace softgpu::ptx::test {

class Machine : public GlobalMemory, public Device {
 public:
  std::shared_ptr<const RangeTable> snapshot() override {
    if (table_ == nullptr) {
      auto table = std::make_shared<RangeTable>();
      for (auto& [base, bytes] : blocks_)
        table->ranges.push_back({base, bytes->size(), bytes->data(), base, writable(base)});
      table_ = table;
    }
    return table_;
  }
  void print(const std::string& text) override { printed += text; }
  std::uint64_t heap_allocate(std::uint64_t size) override {
    if (heap_used + size > heap_limit) return 0;
    heap_used += size;
    const std::uint64_t address = allocate(size);
    heap_[address] = size;
    return address;
  }
  bool heap_free(std::uint64_t address) override {
    const auto at = heap_.find(address);
    if (at == heap_.end()) return false;
    heap_used -= at->second;
    heap_.erase(at);
    blocks_.erase(address);
    table_ = nullptr;
    return true;
  }
  std::uint64_t global_timer() override { return ++timer_; }
  // Handles above kConditions are dead.
  bool set_condition(std::uint64_t handle, std::uint32_t value) override {
    if (handle >= kConditions) return false;
    conditions[handle] = value;
    return true;
  }
  static constexpr std::uint64_t kConditions = 4;
  std::uint32_t conditions[kConditions] = {};

  std::uint64_t allocate(std::uint64_t size) {
    const std::uint64_t address = next_;
    // A gap after each allocation makes small overruns land nowhere.
    next_ += (size + 255) / 256 * 256 + 4096;
    blocks_[address] = std::make_unique<std::vector<std::byte>>(size);
    table_ = nullptr;
    return address;
  }
  void set_read_only(std::uint64_t address) {
    read_only_.push_back(address);
    table_ = nullptr;
  }
  std::byte* bytes(std::uint64_t address) { return blocks_.at(address)->data(); }

  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(std::max<std::size_t>(1, values.size() * sizeof(T)));
    std::memcpy(bytes(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes(address), count * sizeof(T));
    return values;
  }

  std::string printed;
  std::uint64_t heap_used = 0;
  std::uint64_t heap_limit = 1 << 20;

 private:
  bool writable(std::uint64_t base) const {
    return std::find(read_only_.begin(), read_only_.end(), base) == read_only_.end();
  }

  std::map<std::uint64_t, std::unique_ptr<std::vector<std::byte>>> blocks_;
  std::map<std::uint64_t, std::uint64_t> heap_;
  std::vector<std::uint64_t> read_only_;
  std::shared_ptr<const RangeTable> table_;
  std::uint64_t next_ = 0x10'0000'0000;
  std::uint64_t timer_ = 1000;
};

// Arguments in declaration order; each must have the size the kernel declares.
class Arguments {
 public:
  template <class... T>
  explicit Arguments(const T&... values) {
    (add(values), ...);
  }
  std::vector<std::byte> layout(const Kernel& kernel) const {
    if (values_.size() != kernel.parameters.size())
      throw std::runtime_error("wrong number of arguments for " + kernel.name);
    std::vector<std::byte> buffer(kernel.parameter_bytes);
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (values_[k].size() != kernel.parameters[k].size)
        throw std::runtime_error("wrong size of an argument of " + kernel.name);
      std::copy(values_[k].begin(), values_[k].end(),
                buffer.begin() + static_cast<std::ptrdiff_t>(kernel.parameters[k].offset));
    }
    return buffer;
  }

 private:
  template <class T>
  void add(const T& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    values_.push_back(bytes);
  }
  std::vector<std::vector<std::byte>> values_;
};

struct Outcome {
  KernelRun::Status status = KernelRun::Status::kRunning;
  Fault fault = Fault::kNone;
  std::string message;
  std::uint64_t steps = 0;
};

// A module on a machine.
class Program {
 public:
  Program(Machine& machine, const std::string& text, int compute_capability = 90)
      : machine_(machine) {
    ParseError error;
    module_ = Module::parse(text, compute_capability, &error);
    if (module_ == nullptr) throw std::runtime_error(error.message);
    const bool placed = module_->place(
        [&](const Variable& v) { return machine.allocate(std::max<std::size_t>(1, v.size)); },
        [&](const Variable& v, const std::vector<std::byte>& initial) {
          std::copy(initial.begin(), initial.end(), machine.bytes(v.address));
          if (v.space == VariableSpace::kConst) machine.set_read_only(v.address);
        });
    if (!placed) throw std::runtime_error("placing variables failed");
  }

  const Module& module() const { return *module_; }
  std::uint64_t variable(const std::string& name) const {
    const Variable* found = module_->find_variable(name);
    if (found == nullptr) throw std::runtime_error("no variable " + name);
    return found->address;
  }

  LaunchConfig config(const std::string& kernel, Dim3 grid, Dim3 block,
                      const Arguments& arguments) const {
    LaunchConfig config;
    config.module = module_.get();
    config.kernel = module_->find_kernel(kernel);
    if (config.kernel == nullptr) throw std::runtime_error("no kernel " + kernel);
    config.grid = grid;
    config.block = block;
    config.parameters = arguments.layout(*config.kernel);
    return config;
  }

  // Gives up after `limit` warp instructions, so that a kernel that hangs fails its test.
  Outcome run(LaunchConfig config, std::uint64_t slice = 1u << 20,
              std::uint64_t limit = 200'000'000) const {
    KernelRun run(std::move(config), machine_, machine_);
    Outcome outcome;
    for (std::uint64_t used = 0; used < limit; used += slice) {
      outcome.status = run.step(slice);
      ++outcome.steps;
      if (outcome.status != KernelRun::Status::kRunning) break;
    }
    outcome.fault = run.fault();
    outcome.message = run.fault_message();
    return outcome;
  }
  Outcome run(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments,
              std::uint64_t slice = 1u << 20) const {
    return run(config(kernel, grid, block, arguments), slice);
  }

 private:
  Machine& machine_;
  std::unique_ptr<Module> module_;
};

}  // namespace softgpu::ptx::test
