// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: handles to memory that only copies reach, rows kept one behind the other. There are
// no textures and surfaces here, so nothing else reads them. Driver lock held for everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/softgpu/driver/context.h"

namespace softgpu {

// Not changed once it has its handle. Copies keep the object, so that a handle that is used again
// does not deceive them; its memory goes with cuArrayDestroy.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};  // as given
  CUarray handle = nullptr;
  Context* context = nullptr;
  std::size_t element_size = 0;
  std::size_t row_bytes = 0, rows = 0, slices = 0;  // what copies may touch; layers are slices
  std::size_t pitch = 0;                            // from row to row
  std::uint64_t base = 0;                           // of the allocation

  bool is_linear() const { return descriptor.Height == 0 && descriptor.Depth == 0; }
};

// Null: not a live array.
std::shared_ptr<const Array> find_array(CUarray handle);

// Fails with INVALID_VALUE if a copy names an array of another context.
void require_arrays_of(const Context& context, const CUDA_MEMCPY3D& copy);

// Those of a destroyed or reset context; their memory goes with all other.
void forget_arrays(const Context& context);

}  // namespace softgpu
