// SPDX-License-Identifier: Apache-2.0
// The cuMemcpy entries between a 1D array and other memory, of both ABIs. 2D and 3D copies of
// arrays come by the entries of copy_entries.cpp.

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

// A place in a 1D array.
struct Spot {
  CUarray array;
  std::size_t offset;
};

constexpr auto kHost = CU_MEMORYTYPE_HOST;
constexpr auto kDevice = CU_MEMORYTYPE_DEVICE;
constexpr auto kArray = CU_MEMORYTYPE_ARRAY;

CUarray require_linear(CUarray handle) {
  const auto array = find_array(handle);
  if (array == nullptr || !array->is_linear()) fail(CUDA_ERROR_INVALID_VALUE);
  return handle;
}

void set_source(CUDA_MEMCPY3D* p, Spot from) {
  p->srcMemoryType = kArray;
  p->srcArray = require_linear(from.array);
  p->srcXInBytes = from.offset;
}
void set_source(CUDA_MEMCPY3D* p, const void* from) {
  p->srcMemoryType = kHost;
  p->srcHost = from;
}
void set_source(CUDA_MEMCPY3D* p, CUdeviceptr from) {
  p->srcMemoryType = kDevice;
  p->srcDevice = from;
}

void set_destination(CUDA_MEMCPY3D* p, Spot to) {
  p->dstMemoryType = kArray;
  p->dstArray = require_linear(to.array);
  p->dstXInBytes = to.offset;
}
void set_destination(CUDA_MEMCPY3D* p, void* to) {
  p->dstMemoryType = kHost;
  p->dstHost = to;
}
void set_destination(CUDA_MEMCPY3D* p, CUdeviceptr to) {
  p->dstMemoryType = kDevice;
  p->dstDevice = to;
}

template <class To, class From>
CUresult copy(Stream& stream, bool is_async, To to, From from, std::size_t bytes) {
  CUDA_MEMCPY3D p{};
  set_source(&p, from);
  set_destination(&p, to);
  p.WidthInBytes = bytes;
  p.Height = p.Depth = 1;
  require_arrays_of(*stream.context, p);
  return submit_copy(stream, p, is_async);
}

template <class To, class From>
CUresult copy_now(bool per_thread, To to, From from, std::size_t bytes) {
  return copy(resolve_stream(nullptr, per_thread), false, to, from, bytes);
}

template <class To, class From>
CUresult copy_async(CUstream stream, bool per_thread, To to, From from, std::size_t bytes) {
  return copy(resolve_stream(stream, per_thread), true, to, from, bytes);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

SOFTGPU_TWIN_ENTRY(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds,
                   (void* to, CUarray from, size_t offset, size_t bytes), {
                     return copy_now(kPerThread, to, Spot{from, offset}, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz,
                   (void* to, CUarray from, size_t offset, size_t bytes, CUstream stream), {
                     return copy_async(stream, kPerThread, to, Spot{from, offset}, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds,
                   (CUarray to, size_t offset, const void* from, size_t bytes), {
                     return copy_now(kPerThread, Spot{to, offset}, from, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz,
                   (CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream), {
                     return copy_async(stream, kPerThread, Spot{to, offset}, from, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds,
                   (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), {
                     return copy_now(kPerThread, to, Spot{from, offset}, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds,
                   (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), {
                     return copy_now(kPerThread, Spot{to, offset}, from, bytes);
                   })
SOFTGPU_TWIN_ENTRY(
    cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds,
    (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes), {
      return copy_now(kPerThread, Spot{to, to_offset}, Spot{from, from_offset}, bytes);
    })

// The older ABI; its device addresses have 32 bits, so those with a device side can reach nothing.
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyAtoH, false,
                      (void* to, CUarray from, unsigned offset, unsigned bytes), {
                        return copy_now(kPerThread, to, Spot{from, offset}, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyAtoHAsync, false,
                      (void* to, CUarray from, unsigned offset, unsigned bytes, CUstream stream), {
                        return copy_async(stream, kPerThread, to, Spot{from, offset}, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyHtoA, false,
                      (CUarray to, unsigned offset, const void* from, unsigned bytes), {
                        return copy_now(kPerThread, Spot{to, offset}, from, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyHtoAAsync, false,
                      (CUarray to, unsigned offset, const void* from, unsigned bytes,
                       CUstream stream),
                      {
                        return copy_async(stream, kPerThread, Spot{to, offset}, from, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyAtoD, false,
                      (CUdeviceptr_v1 to, CUarray from, unsigned offset, unsigned bytes), {
                        return copy_now(kPerThread, CUdeviceptr{to}, Spot{from, offset}, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpyDtoA, false,
                      (CUarray to, unsigned offset, CUdeviceptr_v1 from, unsigned bytes), {
                        return copy_now(kPerThread, Spot{to, offset}, CUdeviceptr{from}, bytes);
                      })
SOFTGPU_ENTRY_FLAVOUR(
    cuMemcpyAtoA, false,
    (CUarray to, unsigned to_offset, CUarray from, unsigned from_offset, unsigned bytes), {
      return copy_now(kPerThread, Spot{to, to_offset}, Spot{from, from_offset}, bytes);
    })
