// SPDX-License-Identifier: Apache-2.0
// Running a kernel as an operation of the device: slices of interpreter work, the device side of
// printf and malloc, and what a fault does to the context. step() runs without the driver lock on
// whichever thread drives the engine.
#include <chrono>
#include <cstdio>
#include <string>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/launch.h"
#include "tools/softgpu/driver/line_log.h"
#include "tools/softgpu/driver/log.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/options.h"

namespace softgpu {
namespace {

// Smaller: overlapping kernels interleave more finely. Larger: less overhead per slice, a few
// hundred nanoseconds.
constexpr std::uint64_t kWarpInstructionsPerStep = 4096;

CUresult error_of(ptx::Fault fault) {
  switch (fault) {
    case ptx::Fault::kNone:
      return CUDA_SUCCESS;
    case ptx::Fault::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::Fault::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::Fault::kIllegalInstruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case ptx::Fault::kInvalidPc:
      return CUDA_ERROR_INVALID_PC;
    case ptx::Fault::kAssert:
      return CUDA_ERROR_ASSERT;
    case ptx::Fault::kTrap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case ptx::Fault::kStackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

// The device that one kernel sees. Its printf output is kept until the kernel is done, as a real
// driver keeps it in a buffer until the host synchronises.
class KernelDevice final : public ptx::Device {
 public:
  explicit KernelDevice(Context& context) : context_(context) {}

  void print(const std::string& text) override { output_ += text; }

  std::uint64_t heap_allocate(std::uint64_t size) override {
    const DriverLock lock;
    if (size == 0 || size > context_.limits[CU_LIMIT_MALLOC_HEAP_SIZE]) return 0;
    try {
      return allocate(context_, static_cast<std::size_t>(size), MemoryKind::kInternal)->base;
    } catch (const DriverError&) {
      return 0;
    }
  }

  bool heap_free(std::uint64_t address) override {
    const DriverLock lock;
    const auto allocation = find_allocation(address);
    if (allocation == nullptr || allocation->kind != MemoryKind::kInternal) return false;
    return release(address);
  }

  std::uint64_t global_timer() override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  }

  bool set_condition(std::uint64_t handle, std::uint32_t value) override {
    const DriverLock lock;
    return softgpu::set_condition(handle, context_, value);
  }

  const std::string& output() const { return output_; }

 private:
  Context& context_;
  std::string output_;
};

std::string describe(const ptx::Dim3& size) {
  return std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z);
}

std::string describe(const KernelWork& work) {
  std::string text = "kernel " + work.function->kernel->name + " grid " + describe(work.grid) +
                     " block " + describe(work.block) + " shared " +
                     std::to_string(work.shared_bytes);
  if (work.cooperative) text += " cooperative";
  if (work.cluster.x != 0) text += " cluster " + describe(work.cluster);
  return text + " args " + describe_bytes(work.parameters.data(), work.parameters.size());
}

class KernelOperation final : public Operation {
 public:
  KernelOperation(const KernelWork& work, Context& where, std::uint64_t stream_ordinal,
                  std::uint64_t sequence)
      : code_(work.function->code),
        stream_ordinal_(stream_ordinal),
        sequence_(sequence),
        device_(owner_of(where)) {
    context = &where;
    if (is_logging()) log_text_ = describe(work);
    if (options().null_executor) return;
    ptx::LaunchConfig config;
    config.module = code_.get();
    config.kernel = work.function->kernel;
    config.grid = work.grid;
    config.block = work.block;
    config.dynamic_shared_bytes = work.shared_bytes;
    config.parameters = work.parameters;
    config.cooperative = work.cooperative;
    config.cluster = work.cluster;
    config.footprint = trace != nullptr ? &trace->footprint : nullptr;
    run_ = std::make_unique<ptx::KernelRun>(std::move(config), global_memory(), device_);
  }

  bool step() override {
    return run_ == nullptr ||
           run_->step(kWarpInstructionsPerStep) != ptx::KernelRun::Status::kRunning;
  }

  std::string_view text() const override { return log_text_; }

  void finish() override {
    if (!device_.output().empty()) {
      std::fwrite(device_.output().data(), 1, device_.output().size(), stdout);
    }
    if (run_ != nullptr && run_->fault() != ptx::Fault::kNone) {
      say("%s", run_->fault_message().c_str());
      note_fault(error_of(run_->fault()));
      set_sticky_error(*context, error_of(run_->fault()));
    }
    run_.reset();
    if (!log_text_.empty() && !was_skipped) log_operation(stream_ordinal_, sequence_, log_text_);
  }

 private:
  std::shared_ptr<const ptx::Module> code_;
  std::uint64_t stream_ordinal_, sequence_;
  KernelDevice device_;
  std::unique_ptr<ptx::KernelRun> run_;  // null: the null executor, or done
  std::string log_text_;
};

}  // namespace

std::shared_ptr<Operation> make_kernel_operation(const KernelWork& work, Context& context,
                                                 std::uint64_t stream_ordinal,
                                                 std::uint64_t sequence) {
  return std::make_shared<KernelOperation>(work, context, stream_ordinal, sequence);
}

}  // namespace softgpu
