// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: PTX text through parser and analysis, and what they accept through the
// interpreter, for a bounded number of instructions. A crash, a leak or a sanitizer's report is the
// finding; refused text is not.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/softgpu/ptx/kernel_run.h"
#include "tools/softgpu/ptx/memory.h"
#include "tools/softgpu/ptx/module.h"

namespace {

using namespace softgpu;  // NOLINT: a program of its own

constexpr std::uint64_t kBase = 0x2000'0000'0000ull;
// What the driver would refuse before a launch: more shared memory than a block may have, more
// parameters than a kernel may have. The rest keeps a run short.
constexpr std::size_t kMaxShared = 48 * 1024, kMaxLocal = 64 * 1024, kMaxParameters = 32 * 1024;
constexpr std::size_t kMaxVariables = 1 << 20;
constexpr std::uint64_t kInstructions = 3000;

// Allocations one behind the other, none ever freed.
class Memory final : public ptx::GlobalMemory {
 public:
  std::shared_ptr<const ptx::RangeTable> snapshot() override {
    auto table = std::make_shared<ptx::RangeTable>();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      table->ranges.push_back({addresses_[i], blocks_[i]->size(), blocks_[i]->data(), i + 1, true});
    }
    return table;
  }
  std::uint64_t allocate(std::size_t size) {
    if (size == 0 || size > kMaxVariables - used_) return 0;
    used_ += size;
    addresses_.push_back(next_);
    blocks_.push_back(std::make_unique<std::vector<std::byte>>(size));
    next_ += (size + 511) / 256 * 256;
    return addresses_.back();
  }

 private:
  std::vector<std::uint64_t> addresses_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> blocks_;
  std::uint64_t next_ = kBase;
  std::size_t used_ = 0;
};

class QuietDevice final : public ptx::Device {
 public:
  explicit QuietDevice(Memory& memory) : memory_(memory) {}
  void print(const std::string& text) override { printed_ += text.size(); }
  std::uint64_t heap_allocate(std::uint64_t size) override { return memory_.allocate(size); }
  bool heap_free(std::uint64_t) override { return false; }
  std::uint64_t global_timer() override { return ++time_; }
  bool set_condition(std::uint64_t handle, std::uint32_t) override { return handle % 2 == 0; }

 private:
  Memory& memory_;
  std::size_t printed_ = 0;
  std::uint64_t time_ = 0;
};

bool is_launchable(const ptx::Kernel& kernel) {
  return kernel.static_shared_bytes <= kMaxShared && kernel.local_bytes <= kMaxLocal &&
         kernel.parameter_bytes <= kMaxParameters;
}

void run(const ptx::Module& module, const ptx::Kernel& kernel, Memory& memory) {
  ptx::LaunchConfig config;
  config.module = &module;
  config.kernel = &kernel;
  config.grid = {2, 1, 1};
  config.block = {40, 1, 1};
  config.dynamic_shared_bytes = 256;
  // Pointers, as far as they fit: most kernels get somewhere with them.
  config.parameters.resize(kernel.parameter_bytes);
  for (std::size_t at = 0; at + 8 <= config.parameters.size(); at += 8) {
    for (std::size_t byte = 0; byte < 8; ++byte) {
      config.parameters[at + byte] = static_cast<std::byte>(kBase >> (8 * byte));
    }
  }
  QuietDevice device(memory);
  ptx::KernelRun run(std::move(config), memory, device);
  for (std::uint64_t done = 0; done < kInstructions; done += 500) {
    if (run.step(500) != ptx::KernelRun::Status::kRunning) break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ptx::ParseError error;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::unique_ptr<ptx::Module> module = ptx::Module::parse(text, 90, &error);
  if (module == nullptr) {
    if (error.message.empty() || error.message.find('\n') != std::string::npos) __builtin_trap();
    return 0;
  }
  Memory memory;
  memory.allocate(4096);
  const bool is_placed =
      module->place([&](const ptx::Variable& variable) { return memory.allocate(variable.size); },
                    [](const ptx::Variable&, const std::vector<std::byte>&) {});
  if (!is_placed) return 0;
  for (const ptx::Kernel& kernel : module->kernels()) {
    if (is_launchable(kernel)) run(*module, kernel, memory);
  }
  return 0;
}
