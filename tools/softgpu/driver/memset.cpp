// SPDX-License-Identifier: Apache-2.0
// Memsets: checks, the operation, and the cuMemset* entries.

#include <algorithm>
#include <cstring>
#include <string>

#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/simple_operation.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

using Parameters = CUDA_MEMSET_NODE_PARAMS;

bool is_empty(const Parameters& p) {
  return p.width == 0 || p.height == 0;
}

std::size_t span_of(const Parameters& p) {
  return (p.height - 1) * p.pitch + p.width * p.elementSize;
}

class MemsetOperation final : public SimpleOperation {
 public:
  MemsetOperation(const Parameters& parameters, std::uint64_t stream_ordinal,
                  std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence), parameters_(parameters) {
    if (!is_logging()) return;
    set_log_text("memset " + std::to_string(parameters.width) + "x" +
                 std::to_string(parameters.height) + " of " +
                 std::to_string(parameters.elementSize) + " " + describe_address(parameters.dst) +
                 " = " + std::to_string(parameters.value));
  }

  bool step() override {
    if (is_empty(parameters_)) return true;
    if (owner_ == nullptr) owner_ = find_allocation(parameters_.dst, span_of(parameters_));
    if (owner_ == nullptr) return fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    const std::size_t offset = parameters_.dst - owner_->base + row_ * parameters_.pitch;
    touch(ptx::AccessKind::kStore, *owner_, offset, parameters_.width * parameters_.elementSize);
    fill_row(owner_->bytes + offset);
    return ++row_ == parameters_.height;
  }

 private:
  void fill_row(std::byte* row) const {
    const unsigned size = parameters_.elementSize;
    if (size == 1) {
      std::memset(row, static_cast<int>(parameters_.value & 0xff), parameters_.width);
      return;
    }
    for (std::size_t i = 0; i < parameters_.width; ++i) {
      std::memcpy(row + i * size, &parameters_.value, size);
    }
  }

  const Parameters parameters_;
  std::shared_ptr<const Allocation> owner_;
  std::size_t row_ = 0;
};

}  // namespace

CUresult check_memset(const CUDA_MEMSET_NODE_PARAMS& p) {
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (is_empty(p)) return CUDA_SUCCESS;
  if (p.dst % p.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  if (p.height > 1 && (p.pitch < p.width * p.elementSize || p.pitch % p.elementSize != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto allocation = find_allocation(p.dst, span_of(p));
  return allocation == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult submit_memset(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& parameters, bool is_async) {
  check(check_memset(parameters));
  Context& context = *stream.context;
  MemsetWork work{parameters, &context};
  if (is_async && is_capturing(stream)) return capture_work(stream, std::move(work));
  if (!is_async) check(capture_forbids_sync(stream));
  if (stream.kind == StreamKind::kLegacy) check(capture_forbids_legacy(context));
  if (is_empty(parameters)) return CUDA_SUCCESS;
  const auto allocation = find_allocation(parameters.dst);
  const bool is_host_visible =
      allocation != nullptr && (allocation->is_host() || allocation->kind == MemoryKind::kManaged);
  const std::shared_ptr<Operation> operation = enqueue(stream, work);
  // Documented: asynchronous to the host except on pinned and unified memory.
  if (is_async || !is_host_visible) return CUDA_SUCCESS;
  wait_for(operation);
  return sticky_error(context);
}

std::shared_ptr<Operation> make_memset_operation(const MemsetWork& work,
                                                 std::uint64_t stream_ordinal,
                                                 std::uint64_t sequence) {
  return std::make_shared<MemsetOperation>(work.parameters, stream_ordinal, sequence);
}

namespace {

CUresult memset_1d(CUstream stream, bool per_thread, bool is_async, CUdeviceptr address,
                   unsigned value, unsigned element_size, std::size_t count) {
  return submit_memset(resolve_stream(stream, per_thread),
                       {address, 0, value, element_size, count, 1}, is_async);
}

CUresult memset_2d(CUstream stream, bool per_thread, bool is_async, CUdeviceptr address,
                   std::size_t pitch, unsigned value, unsigned element_size, std::size_t width,
                   std::size_t height) {
  return submit_memset(resolve_stream(stream, per_thread),
                       {address, pitch, value, element_size, width, height}, is_async);
}

}  // namespace
}  // namespace softgpu

using softgpu::memset_1d;
using softgpu::memset_2d;

// clang-format off
#define SOFTGPU_MEMSET(bits, type)                                                                    \
  SOFTGPU_TWIN_ENTRY(cuMemsetD##bits##_v2, cuMemsetD##bits##_v2_ptds,                                  \
                     (CUdeviceptr address, type value, size_t count), {                                \
    return memset_1d(nullptr, kPerThread, false, address, value, bits / 8, count);                     \
  })                                                                                                   \
  SOFTGPU_TWIN_ENTRY(cuMemsetD##bits##Async, cuMemsetD##bits##Async_ptsz,                              \
                     (CUdeviceptr address, type value, size_t count, CUstream stream), {               \
    return memset_1d(stream, kPerThread, true, address, value, bits / 8, count);                       \
  })                                                                                                   \
  SOFTGPU_TWIN_ENTRY(cuMemsetD2D##bits##_v2, cuMemsetD2D##bits##_v2_ptds,                              \
                     (CUdeviceptr address, size_t pitch, type value, size_t width, size_t height), {   \
    return memset_2d(nullptr, kPerThread, false, address, pitch, value, bits / 8, width, height);      \
  })                                                                                                   \
  SOFTGPU_TWIN_ENTRY(cuMemsetD2D##bits##Async, cuMemsetD2D##bits##Async_ptsz,                          \
                     (CUdeviceptr address, size_t pitch, type value, size_t width, size_t height,      \
                      CUstream stream), {                                                              \
    return memset_2d(stream, kPerThread, true, address, pitch, value, bits / 8, width, height);        \
  })
// clang-format on

SOFTGPU_MEMSET(8, unsigned char)
SOFTGPU_MEMSET(16, unsigned short)
SOFTGPU_MEMSET(32, unsigned int)
