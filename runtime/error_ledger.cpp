// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_ledger.h"

namespace runtime {

constinit std::atomic<std::uint32_t> g_untold{0};

bool is_fault(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

void ErrorLedger::enter(CUresult failure) noexcept {
  const MutexGuard guard(mutex_);
  const bool is_another = size_ == 0 || runs_[size_ - 1].failure != failure;
  if (is_another && size_ < kRuns) runs_[size_++] = {failure, 0};
  ++runs_[size_ - 1].count;
  g_untold.fetch_add(1, std::memory_order_relaxed);
}

CUresult ErrorLedger::tell(CUresult called) noexcept {
  const MutexGuard guard(mutex_);
  // A query tells it in place of "not ready": it is asked again.
  if (called == CUDA_SUCCESS || called == CUDA_ERROR_NOT_READY) {
    return size_ == 0 ? called : take();
  }
  if (is_fault(called)) drop_faults();
  return called;
}

CUresult ErrorLedger::take() noexcept {
  const CUresult failure = runs_[0].failure;
  g_untold.fetch_sub(1, std::memory_order_relaxed);
  if (--runs_[0].count != 0) return failure;
  --size_;
  for (std::size_t i = 0; i < size_; ++i) runs_[i] = runs_[i + 1];
  return failure;
}

void ErrorLedger::drop_faults() noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    if (is_fault(runs_[i].failure)) {
      g_untold.fetch_sub(runs_[i].count, std::memory_order_relaxed);
    } else {
      runs_[kept++] = runs_[i];
    }
  }
  size_ = kept;
}

std::uint32_t ErrorLedger::forget() noexcept {
  const MutexGuard guard(mutex_);
  std::uint32_t untold = 0;
  for (std::size_t i = 0; i < size_; ++i) untold += runs_[i].count;
  size_ = 0;
  g_untold.fetch_sub(untold, std::memory_order_relaxed);
  return untold;
}

}  // namespace runtime
