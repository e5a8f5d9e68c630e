// SPDX-License-Identifier: Apache-2.0
// make_operation(): device work as an operation. Kernels come from kernel_operation.cpp, copies and
// memsets from copy.cpp and memset.cpp. step() runs without the driver lock, the rest with it.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/host_function.h"
#include "tools/softgpu/driver/launch.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/simple_operation.h"

namespace softgpu {
namespace {

class EmptyOperation final : public SimpleOperation {
 public:
  EmptyOperation(std::uint64_t stream_ordinal, std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence) {
    if (is_logging()) set_log_text("empty");
  }
  bool step() override { return true; }
};

class RecordOperation final : public SimpleOperation {
 public:
  RecordOperation(std::shared_ptr<Event> event, std::uint64_t stream_ordinal,
                  std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence), event_(std::move(event)) {
    if (is_logging()) set_log_text("record e" + std::to_string(event_->ordinal));
  }
  bool step() override { return true; }
  bool is_skipped_on_error() const override { return false; }
  void finish() override {
    if (event_->latest.get() == this) {
      event_->time_ns =
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                         std::chrono::steady_clock::now().time_since_epoch())
                                         .count());
    }
    event_ = nullptr;  // the event holds this operation
    SimpleOperation::finish();
  }

 private:
  std::shared_ptr<Event> event_;
};

class WaitOperation final : public SimpleOperation {
 public:
  WaitOperation(const Event& event, std::uint64_t stream_ordinal, std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence) {
    if (event.latest != nullptr) dependencies.push_back(event.latest);
    if (is_logging()) set_log_text("wait e" + std::to_string(event.ordinal));
  }
  bool step() override { return true; }
  bool is_skipped_on_error() const override { return false; }
};

class FreeOperation final : public SimpleOperation {
 public:
  FreeOperation(CUdeviceptr address, std::uint64_t stream_ordinal, std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence), address_(address) {
    if (is_logging()) set_log_text("free " + describe_address(address));
  }
  bool step() override { return true; }
  bool is_skipped_on_error() const override { return false; }
  void finish() override {
    // Nobody may use any of it afterwards: as if all were written.
    if (const auto owner = find_allocation(address_); owner != nullptr) {
      touch(ptx::AccessKind::kStore, *owner, 0, owner->size);
    }
    release(address_);
    SimpleOperation::finish();
  }

 private:
  const CUdeviceptr address_;
};

// Held around a write: who has seen the value and then takes it stands behind the write and all
// that came before it.
std::mutex value_writes;

// A word that the device may be writing by any means, memsets and copies included: that it is
// watched meanwhile is what waiting for a value is for, and no race of the program.
template <class Word>
__attribute__((no_sanitize("thread"))) Word watch_word(const volatile Word* place) {
  return *place;
}

// cuStreamWriteValue and cuStreamWaitValue.
class ValueOperation final : public SimpleOperation {
 public:
  ValueOperation(const ValueWork& work, std::uint64_t stream_ordinal, std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence), work_(work) {
    if (!is_logging()) return;
    set_log_text(std::string(work.is_wait ? "wait-value " : "write-value ") +
                 describe_address(work.address) + " " + std::to_string(work.value));
  }

  bool step() override {
    const std::size_t size = work_.is_64_bit ? 8 : 4;
    if (owner_ == nullptr) owner_ = find_allocation(work_.address, size);
    if (owner_ == nullptr) return fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    touch(work_.is_wait ? ptx::AccessKind::kLoad : ptx::AccessKind::kStore, *owner_,
          work_.address - owner_->base, size);
    std::byte* const place = owner_->bytes + (work_.address - owner_->base);
    return work_.is_64_bit ? step_at(reinterpret_cast<std::uint64_t*>(place))
                           : step_at(reinterpret_cast<std::uint32_t*>(place));
  }
  bool is_blocked() const override { return true; }

 private:
  template <class Word>
  bool step_at(Word* place) {
    const auto wanted = static_cast<Word>(work_.value);
    if (!work_.is_wait) {
      const std::lock_guard guard(value_writes);
      std::atomic_ref<Word>(*place).store(wanted, std::memory_order_release);
      return true;
    }
    const Word value = watch_word(place);
    { const std::lock_guard guard(value_writes); }
    switch (work_.flags & 3u) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::make_signed_t<Word>>(static_cast<Word>(value - wanted)) >= 0;
      case CU_STREAM_WAIT_VALUE_EQ:
        return value == wanted;
      case CU_STREAM_WAIT_VALUE_AND:
        return (value & wanted) != 0;
      default:  // CU_STREAM_WAIT_VALUE_NOR
        return static_cast<Word>(~(value | wanted)) != 0;
    }
  }

  const ValueWork work_;
  std::shared_ptr<const Allocation> owner_;
};

struct Maker {
  Context& context;
  std::uint64_t stream_ordinal, sequence;

  std::shared_ptr<Operation> operator()(const EmptyWork&) const {
    return std::make_shared<EmptyOperation>(stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const KernelWork& work) const {
    return make_kernel_operation(work, context, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const CopyWork& work) const {
    return make_copy_operation(work, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const MemsetWork& work) const {
    return make_memset_operation(work, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const HostWork& work) const {
    return make_host_operation([work] { work.function(work.user_data); }, "host", stream_ordinal,
                               sequence, false);
  }
  std::shared_ptr<Operation> operator()(const CallbackWork& work) const {
    // Unlike a host function it runs after an error too, and is told of it.
    const auto call = [work, context = &context] {
      CUresult status = CUDA_SUCCESS;
      {
        DriverLock lock;
        status = sticky_error(*context);
      }
      work.callback(work.stream, status, work.user_data);
    };
    return make_host_operation(call, "callback", stream_ordinal, sequence, true);
  }
  std::shared_ptr<Operation> operator()(const EventRecordWork& work) const {
    auto operation = std::make_shared<RecordOperation>(work.event, stream_ordinal, sequence);
    work.event->latest = operation;
    work.event->capture = {};
    work.event->polls = 0;
    return operation;
  }
  std::shared_ptr<Operation> operator()(const EventWaitWork& work) const {
    return std::make_shared<WaitOperation>(*work.event, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const ChildGraphWork&) const {
    fail(CUDA_ERROR_INVALID_VALUE);  // graph launch expands it
  }
  std::shared_ptr<Operation> operator()(const ConditionalWork& work) const {
    return make_conditional_operation(work, context, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const FreeAsyncWork& work) const {
    return std::make_shared<FreeOperation>(work.address, stream_ordinal, sequence);
  }
  std::shared_ptr<Operation> operator()(const ValueWork& work) const {
    return std::make_shared<ValueOperation>(work, stream_ordinal, sequence);
  }
};

}  // namespace

std::shared_ptr<Operation> make_operation(const Work& work, Context& context,
                                          std::uint64_t stream_ordinal, std::uint64_t sequence) {
  std::shared_ptr<Operation> operation = std::visit(Maker{context, stream_ordinal, sequence}, work);
  operation->context = &context;
  if (operation->trace != nullptr) {
    operation->trace->has_identity = true;
    operation->trace->stream_ordinal = stream_ordinal;
    operation->trace->sequence = sequence;
  }
  return operation;
}

}  // namespace softgpu
