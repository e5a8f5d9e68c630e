// SPDX-License-Identifier: Apache-2.0
// Copies and memsets: the checks of the API call, the host-side rules (what is staged, what the
// call waits for), and the operations. Driver lock held.
#pragma once

#include <memory>
#include <vector>

#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/work.h"

namespace softgpu {

// Also for graph nodes. Fails with INVALID_VALUE for extents, pitches, device ranges or arrays that
// cannot be.
CopyWork checked_copy(const CUDA_MEMCPY3D& parameters, Context& context);
CUresult check_memset(const CUDA_MEMSET_NODE_PARAMS& parameters);

// A 1D copy. Memory types as in CUmemorytype; addresses of host memory are pointers.
CUDA_MEMCPY3D linear_copy(CUmemorytype to, std::uint64_t destination, CUmemorytype from,
                          std::uint64_t source, std::size_t bytes);

// What the copy and memset entries do after normalising: checks, staging, order, waiting.
// `is_async` is the kind of entry, not of the result.
CUresult submit_copy(Stream& stream, const CUDA_MEMCPY3D& parameters, bool is_async);
// Copies that may run in any order among each other, as one step of a stream that does not capture.
// A copy that is to read its source during the call has read it when this returns.
struct BatchedCopy {
  CopyWork work;
  bool reads_now = false;
};
CUresult submit_copies(Stream& stream, std::vector<BatchedCopy> copies);
CUresult submit_memset(Stream& stream, const CUDA_MEMSET_NODE_PARAMS& parameters, bool is_async);

std::shared_ptr<Operation> make_copy_operation(const CopyWork& work, std::uint64_t stream_ordinal,
                                               std::uint64_t sequence);
std::shared_ptr<Operation> make_memset_operation(const MemsetWork& work,
                                                 std::uint64_t stream_ordinal,
                                                 std::uint64_t sequence);

}  // namespace softgpu
