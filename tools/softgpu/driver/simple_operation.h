// SPDX-License-Identifier: Apache-2.0
// What the operations that are not kernels have in common: a log line made when the operation is,
// and a fault.
#pragma once

#include <string>
#include <utility>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/log.h"
#include "tools/softgpu/driver/memory.h"

namespace softgpu {

class SimpleOperation : public Operation {
 public:
  SimpleOperation(std::uint64_t stream_ordinal, std::uint64_t sequence)
      : stream_ordinal_(stream_ordinal), sequence_(sequence) {}

  void finish() override {
    if (fault_ != CUDA_SUCCESS && context != nullptr) set_sticky_error(*context, fault_);
    if (!was_skipped && !text_.empty()) log_operation(stream_ordinal_, sequence_, text_);
  }
  std::string_view text() const override { return text_; }

 protected:
  // Call it only if is_logging().
  void set_log_text(std::string text) { text_ = std::move(text); }
  // For the trace, if there is one.
  void touch(ptx::AccessKind kind, const Allocation& allocation, std::uint64_t offset,
             std::uint64_t bytes) {
    if (trace != nullptr && bytes > 0) {
      trace->footprint.add(kind, allocation.ordinal, offset, bytes);
    }
  }
  // As the result of step(): ends the operation with `error`.
  bool fault(CUresult error) {
    fault_ = error;
    return true;
  }

 private:
  const std::uint64_t stream_ordinal_, sequence_;
  std::string text_;
  CUresult fault_ = CUDA_SUCCESS;
};

}  // namespace softgpu
