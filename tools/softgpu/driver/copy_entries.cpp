// SPDX-License-Identifier: Apache-2.0
// The cuMemcpy* entries of linear memory and of 2D and 3D copies: each only says what is copied
// where.

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/copy.h"
#include "tools/softgpu/driver/raw_enum.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

constexpr auto kHost = CU_MEMORYTYPE_HOST;
constexpr auto kDevice = CU_MEMORYTYPE_DEVICE;
constexpr auto kUnified = CU_MEMORYTYPE_UNIFIED;

std::uint64_t word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
std::uint64_t word(CUdeviceptr address) {
  return address;
}

// A client's memory types may be any number; ask before they are loaded.
template <class Parameters>
bool has_memory_types(const Parameters& p) {
  const auto is_type = [](int type) { return type >= kHost && type <= kUnified; };
  return is_type(raw(p.srcMemoryType)) && is_type(raw(p.dstMemoryType));
}

// Of either ABI.
template <class Parameters>
CUDA_MEMCPY3D widened(const Parameters& p) {
  CUDA_MEMCPY3D wide{};
  wide.srcXInBytes = p.srcXInBytes;
  wide.srcY = p.srcY;
  wide.srcMemoryType = p.srcMemoryType;
  wide.srcHost = p.srcHost;
  wide.srcDevice = p.srcDevice;
  wide.srcArray = p.srcArray;
  wide.srcPitch = p.srcPitch;
  wide.dstXInBytes = p.dstXInBytes;
  wide.dstY = p.dstY;
  wide.dstMemoryType = p.dstMemoryType;
  wide.dstHost = p.dstHost;
  wide.dstDevice = p.dstDevice;
  wide.dstArray = p.dstArray;
  wide.dstPitch = p.dstPitch;
  wide.WidthInBytes = p.WidthInBytes;
  wide.Height = p.Height;
  wide.Depth = 1;
  return wide;
}

// Also without the contexts of peers.
template <class Parameters>
CUDA_MEMCPY3D widened_3d(const Parameters& p) {
  CUDA_MEMCPY3D wide = widened(p);
  wide.srcZ = p.srcZ;
  wide.srcHeight = p.srcHeight;
  wide.dstZ = p.dstZ;
  wide.dstHeight = p.dstHeight;
  wide.Depth = p.Depth;
  return wide;
}

template <class Parameters>
CUresult copy_2d(CUstream handle, bool per_thread, const Parameters* p, bool is_async) {
  if (p == nullptr || !has_memory_types(*p)) return CUDA_ERROR_INVALID_VALUE;
  Stream& stream = resolve_stream(handle, per_thread);
  const CUDA_MEMCPY3D copy = widened(*p);
  require_arrays_of(*stream.context, copy);
  return submit_copy(stream, copy, is_async);
}

template <class Parameters>
CUresult copy_3d(CUstream handle, bool per_thread, const Parameters* p, bool is_async) {
  if (p == nullptr || !has_memory_types(*p)) return CUDA_ERROR_INVALID_VALUE;
  if (p->srcLOD != 0 || p->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream& stream = resolve_stream(handle, per_thread);
  const CUDA_MEMCPY3D copy = widened_3d(*p);
  require_arrays_of(*stream.context, copy);
  return submit_copy(stream, copy, is_async);
}

CUresult copy_peer(CUstream stream, bool per_thread, const CUDA_MEMCPY3D_PEER* p, bool is_async) {
  if (p == nullptr || !has_memory_types(*p)) return CUDA_ERROR_INVALID_VALUE;
  // An array knows its own.
  if (p->srcMemoryType != CU_MEMORYTYPE_ARRAY) context_of(p->srcContext);
  if (p->dstMemoryType != CU_MEMORYTYPE_ARRAY) context_of(p->dstContext);
  return submit_copy(resolve_stream(stream, per_thread), widened_3d(*p), is_async);
}

// A linear copy between two kinds of memory.
template <class To, class From>
CUresult copy(CUstream stream, bool per_thread, bool is_async, CUmemorytype to_type, To to,
              CUmemorytype from_type, From from, std::size_t bytes) {
  return submit_copy(resolve_stream(stream, per_thread),
                     linear_copy(to_type, word(to), from_type, word(from), bytes), is_async);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

SOFTGPU_TWIN_ENTRY(cuMemcpy, cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), {
  return copy(nullptr, kPerThread, false, kUnified, to, kUnified, from, bytes);
})
SOFTGPU_TWIN_ENTRY(cuMemcpyAsync, cuMemcpyAsync_ptsz,
                   (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
                   { return copy(stream, kPerThread, true, kUnified, to, kUnified, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds,
                   (CUdeviceptr to, const void* from, size_t bytes),
                   { return copy(nullptr, kPerThread, false, kDevice, to, kHost, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
                   (CUdeviceptr to, const void* from, size_t bytes, CUstream stream),
                   { return copy(stream, kPerThread, true, kDevice, to, kHost, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds,
                   (void* to, CUdeviceptr from, size_t bytes),
                   { return copy(nullptr, kPerThread, false, kHost, to, kDevice, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
                   (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
                   { return copy(stream, kPerThread, true, kHost, to, kDevice, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds,
                   (CUdeviceptr to, CUdeviceptr from, size_t bytes),
                   { return copy(nullptr, kPerThread, false, kDevice, to, kDevice, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
                   (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
                   { return copy(stream, kPerThread, true, kDevice, to, kDevice, from, bytes); })
SOFTGPU_TWIN_ENTRY(cuMemcpyPeer, cuMemcpyPeer_ptds,
                   (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes),
                   {
                     context_of(to_context);
                     context_of(from_context);
                     return copy(nullptr, kPerThread, false, kDevice, to, kDevice, from, bytes);
                   })
SOFTGPU_TWIN_ENTRY(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
                   (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes, CUstream stream),
                   {
                     context_of(to_context);
                     context_of(from_context);
                     return copy(stream, kPerThread, true, kDevice, to, kDevice, from, bytes);
                   })

SOFTGPU_TWIN_ENTRY(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D* p),
                   { return copy_2d(nullptr, kPerThread, p, false); })
SOFTGPU_TWIN_ENTRY(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D* p),
                   { return copy_2d(nullptr, kPerThread, p, false); })
SOFTGPU_TWIN_ENTRY(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz,
                   (const CUDA_MEMCPY2D* p, CUstream stream),
                   { return copy_2d(stream, kPerThread, p, true); })
SOFTGPU_TWIN_ENTRY(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D* p),
                   { return copy_3d(nullptr, kPerThread, p, false); })
SOFTGPU_TWIN_ENTRY(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz,
                   (const CUDA_MEMCPY3D* p, CUstream stream),
                   { return copy_3d(stream, kPerThread, p, true); })
SOFTGPU_TWIN_ENTRY(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D_PEER* p),
                   { return copy_peer(nullptr, kPerThread, p, false); })
SOFTGPU_TWIN_ENTRY(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz,
                   (const CUDA_MEMCPY3D_PEER* p, CUstream stream),
                   { return copy_peer(stream, kPerThread, p, true); })

// The older ABI: device addresses of 32 bits reach nothing, but host memory and arrays do not need
// them.
SOFTGPU_ENTRY_FLAVOUR(cuMemcpy2D, false, (const CUDA_MEMCPY2D_v1* p),
                      { return copy_2d(nullptr, kPerThread, p, false); })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpy2DUnaligned, false, (const CUDA_MEMCPY2D_v1* p),
                      { return copy_2d(nullptr, kPerThread, p, false); })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpy2DAsync, false, (const CUDA_MEMCPY2D_v1* p, CUstream stream),
                      { return copy_2d(stream, kPerThread, p, true); })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpy3D, false, (const CUDA_MEMCPY3D_v1* p),
                      { return copy_3d(nullptr, kPerThread, p, false); })
SOFTGPU_ENTRY_FLAVOUR(cuMemcpy3DAsync, false, (const CUDA_MEMCPY3D_v1* p, CUstream stream),
                      { return copy_3d(stream, kPerThread, p, true); })
