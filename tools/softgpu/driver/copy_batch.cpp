// SPDX-License-Identifier: Apache-2.0
// Batches of copies, of CUDA 12.8 (which say which copy is wrong) and of 13.0. Nothing is enqueued
// unless every copy is good. Driver lock held.

#include <limits>

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/raw_enum.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

struct PointerBatch {
  const CUdeviceptr* destinations;
  const CUdeviceptr* sources;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* first_copies;  // of each of the attributes
  std::size_t attribute_count;
};

// Documented: a batch must not go to the legacy stream.
Stream& batch_stream(CUstream handle, bool per_thread) {
  Stream& stream = resolve_stream(handle, per_thread);
  if (stream.kind == StreamKind::kLegacy) fail(CUDA_ERROR_INVALID_VALUE);
  check(capture_forbids_uncapturable(stream));
  return stream;
}

bool reads_now(const CUmemcpySrcAccessOrder& order) {
  return raw(order) == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
}

void check_hints(const CUmemcpySrcAccessOrder& order, unsigned flags) {
  if (raw(order) < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
      raw(order) > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
      (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) != 0) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void check_attributes(const PointerBatch& batch) {
  if (batch.destinations == nullptr || batch.sources == nullptr || batch.sizes == nullptr ||
      batch.attributes == nullptr || batch.first_copies == nullptr || batch.count == 0 ||
      batch.attribute_count == 0 || batch.attribute_count > batch.count) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  for (std::size_t i = 0; i < batch.attribute_count; ++i) {
    const std::size_t first = batch.first_copies[i];
    const bool is_next = i == 0 ? first == 0 : first > batch.first_copies[i - 1];
    if (!is_next || first >= batch.count) fail(CUDA_ERROR_INVALID_VALUE);
    check_hints(batch.attributes[i].srcAccessOrder, batch.attributes[i].flags);
  }
}

// `at` is the copy that is looked at, for who reports a failure.
CUresult copy_batch(Stream& stream, const PointerBatch& batch, std::size_t* at) {
  check_attributes(batch);
  std::vector<BatchedCopy> copies;
  std::size_t attribute = 0;
  for (*at = 0; *at < batch.count; ++*at) {
    const std::size_t i = *at;
    const std::size_t next = attribute + 1;
    if (next < batch.attribute_count && batch.first_copies[next] == i) attribute = next;
    const CUDA_MEMCPY3D p = linear_copy(CU_MEMORYTYPE_UNIFIED, batch.destinations[i],
                                        CU_MEMORYTYPE_UNIFIED, batch.sources[i], batch.sizes[i]);
    copies.push_back(
        {checked_copy(p, *stream.context), reads_now(batch.attributes[attribute].srcAccessOrder)});
  }
  *at = std::numeric_limits<std::size_t>::max();
  return submit_copies(stream, std::move(copies));
}

std::size_t times(std::size_t count, std::size_t element_size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, element_size, &bytes)) fail(CUDA_ERROR_INVALID_VALUE);
  return bytes;
}

// Null: a pointer. Fails for what is no operand.
std::shared_ptr<const Array> array_of(const CUmemcpy3DOperand& operand) {
  if (raw(operand.type) == CU_MEMCPY_OPERAND_TYPE_POINTER) return nullptr;
  if (raw(operand.type) != CU_MEMCPY_OPERAND_TYPE_ARRAY) fail(CUDA_ERROR_INVALID_VALUE);
  auto array = find_array(operand.op.array.array);
  if (array == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  return array;
}

void require_room(const CUmemcpy3DOperand& pointer, const CUextent3D& extent) {
  const auto& p = pointer.op.ptr;
  if ((p.rowLength != 0 && p.rowLength < extent.width) ||
      (p.layerHeight != 0 && p.layerHeight < extent.height)) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void set_source(CUDA_MEMCPY3D* p, const CUDA_MEMCPY3D_BATCH_OP& copy, bool is_array,
                std::size_t element_size) {
  if (is_array) {
    const auto& array = copy.src.op.array;
    p->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    p->srcArray = array.array;
    p->srcXInBytes = times(array.offset.x, element_size);
    p->srcY = array.offset.y;
    p->srcZ = array.offset.z;
    return;
  }
  require_room(copy.src, copy.extent);
  const auto& pointer = copy.src.op.ptr;
  p->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  p->srcDevice = pointer.ptr;
  p->srcPitch = pointer.rowLength == 0 ? p->WidthInBytes : times(pointer.rowLength, element_size);
  p->srcHeight = pointer.layerHeight == 0 ? p->Height : pointer.layerHeight;
}

void set_destination(CUDA_MEMCPY3D* p, const CUDA_MEMCPY3D_BATCH_OP& copy, bool is_array,
                     std::size_t element_size) {
  if (is_array) {
    const auto& array = copy.dst.op.array;
    p->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    p->dstArray = array.array;
    p->dstXInBytes = times(array.offset.x, element_size);
    p->dstY = array.offset.y;
    p->dstZ = array.offset.z;
    return;
  }
  require_room(copy.dst, copy.extent);
  const auto& pointer = copy.dst.op.ptr;
  p->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  p->dstDevice = pointer.ptr;
  p->dstPitch = pointer.rowLength == 0 ? p->WidthInBytes : times(pointer.rowLength, element_size);
  p->dstHeight = pointer.layerHeight == 0 ? p->Height : pointer.layerHeight;
}

// In bytes what the client gives in elements; those of an array, or bytes.
CUDA_MEMCPY3D in_bytes(const CUDA_MEMCPY3D_BATCH_OP& copy) {
  const auto source = array_of(copy.src), destination = array_of(copy.dst);
  const Array* const array = source != nullptr ? source.get() : destination.get();
  const std::size_t element_size = array == nullptr ? 1 : array->element_size;
  if (copy.extent.width == 0 || copy.extent.height == 0 || copy.extent.depth == 0) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  CUDA_MEMCPY3D p{};
  p.WidthInBytes = times(copy.extent.width, element_size);
  p.Height = copy.extent.height;
  p.Depth = copy.extent.depth;
  set_source(&p, copy, source != nullptr, element_size);
  set_destination(&p, copy, destination != nullptr, element_size);
  return p;
}

CUresult copy_batch_3d(Stream& stream, std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* list,
                       unsigned long long flags, std::size_t* at) {
  if (count == 0 || list == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<BatchedCopy> copies;
  for (*at = 0; *at < count; ++*at) {
    const CUDA_MEMCPY3D_BATCH_OP& copy = list[*at];
    check_hints(copy.srcAccessOrder, copy.flags);
    const CUDA_MEMCPY3D p = in_bytes(copy);
    require_arrays_of(*stream.context, p);
    copies.push_back({checked_copy(p, *stream.context), reads_now(copy.srcAccessOrder)});
  }
  *at = std::numeric_limits<std::size_t>::max();
  return submit_copies(stream, std::move(copies));
}

// Tells the older entries' client which copy failed; SIZE_MAX: none in particular.
template <class Body>
CUresult with_index(std::size_t* fail_index, Body&& body) {
  std::size_t at = std::numeric_limits<std::size_t>::max();
  CUresult code = CUDA_SUCCESS;
  try {
    code = body(&at);
  } catch (const DriverError& error) {
    code = error.code;
  }
  if (code != CUDA_SUCCESS && fail_index != nullptr) *fail_index = at;
  return code;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

SOFTGPU_TWIN_ENTRY(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz,
                   (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t count,
                    CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                    CUstream stream),
                   {
                     return with_index(nullptr, [&](size_t* at) {
                       return copy_batch(
                           batch_stream(stream, kPerThread),
                           {to, from, sizes, count, attributes, first_copies, attribute_count}, at);
                     });
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz,
                   (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t count,
                    CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                    size_t* fail_index, CUstream stream),
                   {
                     return with_index(fail_index, [&](size_t* at) {
                       return copy_batch(
                           batch_stream(stream, kPerThread),
                           {to, from, sizes, count, attributes, first_copies, attribute_count}, at);
                     });
                   })
SOFTGPU_TWIN_ENTRY(
    cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz,
    (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags, CUstream stream), {
      return with_index(nullptr, [&](size_t* at) {
        return copy_batch_3d(batch_stream(stream, kPerThread), count, list, flags, at);
      });
    })
SOFTGPU_TWIN_ENTRY(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz,
                   (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* fail_index,
                    unsigned long long flags, CUstream stream),
                   {
                     return with_index(fail_index, [&](size_t* at) {
                       return copy_batch_3d(batch_stream(stream, kPerThread), count, list, flags,
                                            at);
                     });
                   })
