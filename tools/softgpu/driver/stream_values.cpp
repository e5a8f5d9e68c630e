// SPDX-License-Identifier: Apache-2.0
// cuStreamWaitValue, cuStreamWriteValue and cuStreamBatchMemOp.

#include <vector>

#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

CUresult check_value(const ValueWork& work) {
  constexpr unsigned kWaitFlags = CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;
  constexpr unsigned kWriteFlags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  const std::size_t size = work.is_64_bit ? 8 : 4;
  if ((work.flags & ~(work.is_wait ? kWaitFlags : kWriteFlags)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (work.is_wait && (work.flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;  // CAN_FLUSH_REMOTE_WRITES is 0
  }
  if (work.address % size != 0 || find_allocation(work.address, size) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult submit_value(Stream& stream, const ValueWork& work) {
  check(capture_forbids_uncapturable(stream));
  check(check_value(work));
  return submit(stream, work);
}

ValueWork value_of(const CUstreamBatchMemOpParams& p) {
  switch (p.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return {p.waitValue.address, p.waitValue.value, false, true, p.waitValue.flags};
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return {p.waitValue.address, p.waitValue.value64, true, true, p.waitValue.flags};
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return {p.writeValue.address, p.writeValue.value, false, false, p.writeValue.flags};
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return {p.writeValue.address, p.writeValue.value64, true, false, p.writeValue.flags};
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

// All are checked before any is enqueued.
CUresult submit_batch(Stream& stream, unsigned count, const CUstreamBatchMemOpParams* list,
                      unsigned flags) {
  if (list == nullptr || count == 0 || count > 256 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  check(capture_forbids_uncapturable(stream));
  std::vector<ValueWork> values;
  for (unsigned i = 0; i < count; ++i) {
    if (list[i].operation == CU_STREAM_MEM_OP_BARRIER) continue;  // order is total here
    values.push_back(value_of(list[i]));
    check(check_value(values.back()));
  }
  const auto kept = shared_stream(stream);  // submit may drop the lock
  for (const ValueWork& value : values) check(submit(stream, value));
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::resolve_stream;
using softgpu::submit_batch;
using softgpu::submit_value;

// clang-format off
#define SOFTGPU_VALUE(name, suffix, type, is_64_bit, is_wait)                                      \
  SOFTGPU_TWIN_ENTRY(name##suffix, name##suffix##_ptsz,                                            \
                     (CUstream stream, CUdeviceptr address, type value, unsigned flags), {         \
    return submit_value(resolve_stream(stream, kPerThread),                                        \
                        {address, value, is_64_bit, is_wait, flags});                              \
  })
// clang-format on

SOFTGPU_VALUE(cuStreamWaitValue32, , cuuint32_t, false, true)
SOFTGPU_VALUE(cuStreamWaitValue32, _v2, cuuint32_t, false, true)
SOFTGPU_VALUE(cuStreamWaitValue64, , cuuint64_t, true, true)
SOFTGPU_VALUE(cuStreamWaitValue64, _v2, cuuint64_t, true, true)
SOFTGPU_VALUE(cuStreamWriteValue32, , cuuint32_t, false, false)
SOFTGPU_VALUE(cuStreamWriteValue32, _v2, cuuint32_t, false, false)
SOFTGPU_VALUE(cuStreamWriteValue64, , cuuint64_t, true, false)
SOFTGPU_VALUE(cuStreamWriteValue64, _v2, cuuint64_t, true, false)

SOFTGPU_TWIN_ENTRY(cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz,
                   (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list,
                    unsigned flags),
                   { return submit_batch(resolve_stream(stream, kPerThread), count, list, flags); })
SOFTGPU_TWIN_ENTRY(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
                   (CUstream stream, unsigned count, CUstreamBatchMemOpParams* list,
                    unsigned flags),
                   { return submit_batch(resolve_stream(stream, kPerThread), count, list, flags); })
