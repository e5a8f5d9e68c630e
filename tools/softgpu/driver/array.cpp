// SPDX-License-Identifier: Apache-2.0
// Creation, description and destruction of CUDA arrays. Copies are in copy.cpp and
// array_copy_entries.cpp.

#include "tools/softgpu/driver/array.h"

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/raw_enum.h"

namespace softgpu {
namespace {

using Descriptor = CUDA_ARRAY3D_DESCRIPTOR;
using ArrayTable = ObjectTable<const Array, CUarray, HandleKind::kArray>;

// Rows start a granule of the trace: those side by side never seem to conflict.
constexpr std::size_t kRowAlign = 64;

ArrayTable& arrays() {
  static ArrayTable* const table = new ArrayTable();
  return *table;
}

const Array& array_of(CUarray handle) {
  return arrays().get(handle);
}

struct Format {
  unsigned channel_bytes;
  unsigned channels;  // 0: the client says
};

// Fails with INVALID_VALUE for what is no format, NOT_SUPPORTED for compressed and planar ones. Ask
// it before a client's value is loaded.
Format format_of(const CUarray_format& value) {
  switch (const int format = raw(value)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return {1, 0};
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return {2, 0};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return {4, 0};
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
      return {1, 1};
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
      return {1, 2};
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
      return {1, 4};
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
      return {2, 1};
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
      return {2, 2};
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
      return {2, 4};
    default:
      // cuda.h numbers the compressed and planar formats in this range.
      fail(format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_ERROR_INVALID_VALUE);
  }
}

std::size_t element_size_of(const Descriptor& d) {
  const Format format = format_of(d.Format);
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  if (format.channels != 0 && d.NumChannels != format.channels) fail(CUDA_ERROR_INVALID_VALUE);
  return std::size_t{format.channel_bytes} * d.NumChannels;
}

// The largest extents of one shape of array. kUnlimited where another rule bounds the extent.
constexpr auto kUnlimited = CU_DEVICE_ATTRIBUTE_MAX;
struct Limits {
  CUdevice_attribute width, height, depth;
};
#define SOFTGPU_LIMIT(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
constexpr Limits kTexture1d{SOFTGPU_LIMIT(TEXTURE1D_WIDTH), kUnlimited, kUnlimited};
constexpr Limits kTexture2d{SOFTGPU_LIMIT(TEXTURE2D_WIDTH), SOFTGPU_LIMIT(TEXTURE2D_HEIGHT),
                            kUnlimited};
constexpr Limits kGather{SOFTGPU_LIMIT(TEXTURE2D_GATHER_WIDTH),
                         SOFTGPU_LIMIT(TEXTURE2D_GATHER_HEIGHT), kUnlimited};
constexpr Limits kTexture3d{SOFTGPU_LIMIT(TEXTURE3D_WIDTH), SOFTGPU_LIMIT(TEXTURE3D_HEIGHT),
                            SOFTGPU_LIMIT(TEXTURE3D_DEPTH)};
constexpr Limits kTexture3dAlternate{SOFTGPU_LIMIT(TEXTURE3D_WIDTH_ALTERNATE),
                                     SOFTGPU_LIMIT(TEXTURE3D_HEIGHT_ALTERNATE),
                                     SOFTGPU_LIMIT(TEXTURE3D_DEPTH_ALTERNATE)};
constexpr Limits kTexture1dLayered{SOFTGPU_LIMIT(TEXTURE1D_LAYERED_WIDTH), kUnlimited,
                                   SOFTGPU_LIMIT(TEXTURE1D_LAYERED_LAYERS)};
constexpr Limits kTexture2dLayered{SOFTGPU_LIMIT(TEXTURE2D_LAYERED_WIDTH),
                                   SOFTGPU_LIMIT(TEXTURE2D_LAYERED_HEIGHT),
                                   SOFTGPU_LIMIT(TEXTURE2D_LAYERED_LAYERS)};
constexpr Limits kTextureCube{SOFTGPU_LIMIT(TEXTURECUBEMAP_WIDTH), kUnlimited, kUnlimited};
constexpr Limits kTextureCubeLayered{SOFTGPU_LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH), kUnlimited,
                                     SOFTGPU_LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS)};
constexpr Limits kSurface1d{SOFTGPU_LIMIT(SURFACE1D_WIDTH), kUnlimited, kUnlimited};
constexpr Limits kSurface2d{SOFTGPU_LIMIT(SURFACE2D_WIDTH), SOFTGPU_LIMIT(SURFACE2D_HEIGHT),
                            kUnlimited};
constexpr Limits kSurface3d{SOFTGPU_LIMIT(SURFACE3D_WIDTH), SOFTGPU_LIMIT(SURFACE3D_HEIGHT),
                            SOFTGPU_LIMIT(SURFACE3D_DEPTH)};
constexpr Limits kSurface1dLayered{SOFTGPU_LIMIT(SURFACE1D_LAYERED_WIDTH), kUnlimited,
                                   SOFTGPU_LIMIT(SURFACE1D_LAYERED_LAYERS)};
constexpr Limits kSurface2dLayered{SOFTGPU_LIMIT(SURFACE2D_LAYERED_WIDTH),
                                   SOFTGPU_LIMIT(SURFACE2D_LAYERED_HEIGHT),
                                   SOFTGPU_LIMIT(SURFACE2D_LAYERED_LAYERS)};
constexpr Limits kSurfaceCube{SOFTGPU_LIMIT(SURFACECUBEMAP_WIDTH), kUnlimited, kUnlimited};
constexpr Limits kSurfaceCubeLayered{SOFTGPU_LIMIT(SURFACECUBEMAP_LAYERED_WIDTH), kUnlimited,
                                     SOFTGPU_LIMIT(SURFACECUBEMAP_LAYERED_LAYERS)};
#undef SOFTGPU_LIMIT

bool fits(std::size_t extent, CUdevice_attribute limit, CUdevice device) {
  int most = 0;
  return !device_attribute(limit, device, &most) || extent <= static_cast<std::size_t>(most);
}

bool fits(const Descriptor& d, const Limits& limits, CUdevice device) {
  return fits(d.Width, limits.width, device) && fits(d.Height, limits.height, device) &&
         fits(d.Depth, limits.depth, device);
}

bool has(const Descriptor& d, unsigned flag) {
  return (d.Flags & flag) != 0;
}

// The extents are those of one of the shapes that cuArray3DCreate documents.
bool is_shape(const Descriptor& d) {
  const bool is_layered = has(d, CUDA_ARRAY3D_LAYERED);
  if (d.Width == 0 || (is_layered && d.Depth == 0)) return false;
  if (d.Height == 0 && d.Depth > 0 && !is_layered) return false;
  if (has(d, CUDA_ARRAY3D_TEXTURE_GATHER) && (d.Height == 0 || d.Depth > 0)) return false;
  if (!has(d, CUDA_ARRAY3D_CUBEMAP)) return true;
  return d.Width == d.Height && (is_layered ? d.Depth % 6 == 0 : d.Depth == 6);
}

bool is_within_limits(const Descriptor& d, CUdevice device) {
  const bool is_surface = has(d, CUDA_ARRAY3D_SURFACE_LDST);
  const auto fit = [&](const Limits& texture, const Limits& surface) {
    return fits(d, is_surface ? surface : texture, device);
  };
  if (has(d, CUDA_ARRAY3D_CUBEMAP)) {
    return has(d, CUDA_ARRAY3D_LAYERED) ? fit(kTextureCubeLayered, kSurfaceCubeLayered)
                                        : fit(kTextureCube, kSurfaceCube);
  }
  if (has(d, CUDA_ARRAY3D_LAYERED)) {
    return d.Height == 0 ? fit(kTexture1dLayered, kSurface1dLayered)
                         : fit(kTexture2dLayered, kSurface2dLayered);
  }
  if (d.Height == 0) return fit(kTexture1d, kSurface1d);
  if (has(d, CUDA_ARRAY3D_TEXTURE_GATHER) && !fits(d, kGather, device)) return false;
  if (d.Depth == 0) return fit(kTexture2d, kSurface2d);
  return fit(kTexture3d, kSurface3d) || (!is_surface && fits(d, kTexture3dAlternate, device));
}

void check_flags(const Descriptor& d) {
  constexpr unsigned kSupported = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                  CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
  constexpr unsigned kKnown = kSupported | CUDA_ARRAY3D_DEPTH_TEXTURE |
                              CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE |
                              CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
  if ((d.Flags & ~kKnown) != 0) fail(CUDA_ERROR_INVALID_VALUE);
  if ((d.Flags & ~kSupported) != 0) fail(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult create(CUarray* out, const Descriptor& d) {
  Context& context = usable_context();
  check(capture_forbids_unsafe());
  check_flags(d);
  auto array = std::make_shared<Array>();
  array->descriptor = d;
  array->context = &context;
  array->element_size = element_size_of(d);
  if (!is_shape(d) || !is_within_limits(d, context.device)) return CUDA_ERROR_INVALID_VALUE;
  array->row_bytes = d.Width * array->element_size;
  array->rows = d.Height == 0 ? 1 : d.Height;
  array->slices = d.Depth == 0 ? 1 : d.Depth;
  array->pitch = (array->row_bytes + kRowAlign - 1) / kRowAlign * kRowAlign;
  const std::size_t size = array->pitch * array->rows * array->slices;
  array->base = allocate(context, size, MemoryKind::kArray)->base;
  *out = array->handle = arrays().add(array);
  return CUDA_SUCCESS;
}

// 1D and 2D, of either ABI.
template <class Given>
CUresult create_2d(CUarray* out, const Given* given) {
  if (out == nullptr || given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  format_of(given->Format);
  Descriptor d{};
  d.Width = given->Width;
  d.Height = given->Height;
  d.Format = given->Format;
  d.NumChannels = given->NumChannels;
  return create(out, d);
}

template <class Given>
CUresult create_3d(CUarray* out, const Given* given) {
  if (out == nullptr || given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  format_of(given->Format);
  return create(out, {given->Width, given->Height, given->Depth, given->Format, given->NumChannels,
                      given->Flags});
}

// An extent for a field of either ABI; arrays are never too large for the older one.
template <class Field>
void put(Field* field, std::size_t extent) {
  *field = static_cast<Field>(extent);
}

template <class Wanted>
CUresult describe_2d(Wanted* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  current_context();
  const Descriptor& d = array_of(handle).descriptor;
  put(&out->Width, d.Width);
  put(&out->Height, d.Height);
  out->Format = d.Format;
  out->NumChannels = d.NumChannels;
  return CUDA_SUCCESS;
}

template <class Wanted>
CUresult describe_3d(Wanted* out, CUarray handle) {
  check(describe_2d(out, handle));
  const Descriptor& d = array_of(handle).descriptor;
  put(&out->Depth, d.Depth);
  out->Flags = d.Flags;
  return CUDA_SUCCESS;
}

// As for cuMemFree, what is pending may use it.
CUresult destroy(CUarray handle) {
  Context& current = usable_context();
  const std::shared_ptr<const Array> array = arrays().find_shared(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  check(capture_forbids_unsafe());
  Context& context = *array->context;
  note_pending_work(context);
  wait_for_context(context);
  // Another thread may have destroyed it meanwhile.
  if (arrays().find(handle) != array.get()) return CUDA_ERROR_INVALID_HANDLE;
  arrays().remove(handle);
  release(array->base);
  return current.sticky_error;
}

// No array here has planes, is sparse or is mapped later, which is what the questions are about.
CUresult refuse_for(CUarray handle, const void* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  current_context();
  array_of(handle);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

std::shared_ptr<const Array> find_array(CUarray handle) {
  return arrays().find_shared(handle);
}

void require_arrays_of(const Context& context, const CUDA_MEMCPY3D& copy) {
  const auto require = [&](CUmemorytype type, CUarray handle) {
    if (type != CU_MEMORYTYPE_ARRAY) return;
    const auto array = find_array(handle);
    if (array != nullptr && array->context != &owner_of(context)) fail(CUDA_ERROR_INVALID_VALUE);
  };
  require(copy.srcMemoryType, copy.srcArray);
  require(copy.dstMemoryType, copy.dstArray);
}

void forget_arrays(const Context& context) {
  for (const auto& array : arrays().all()) {
    if (array->context == &context) arrays().remove(array->handle);
  }
}

}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* given) {
  return call(EntryId::cuArrayCreate_v2, [&] { return softgpu::create_2d(out, given); });
}

CUresult CUDAAPI cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* given) {
  return call(EntryId::cuArrayCreate, [&] { return softgpu::create_2d(out, given); });
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* given) {
  return call(EntryId::cuArray3DCreate_v2, [&] { return softgpu::create_3d(out, given); });
}

CUresult CUDAAPI cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* given) {
  return call(EntryId::cuArray3DCreate, [&] { return softgpu::create_3d(out, given); });
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray array) {
  return call(EntryId::cuArrayGetDescriptor_v2, [&] { return softgpu::describe_2d(out, array); });
}

CUresult CUDAAPI cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* out, CUarray array) {
  return call(EntryId::cuArrayGetDescriptor, [&] { return softgpu::describe_2d(out, array); });
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
  return call(EntryId::cuArray3DGetDescriptor_v2, [&] { return softgpu::describe_3d(out, array); });
}

CUresult CUDAAPI cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* out, CUarray array) {
  return call(EntryId::cuArray3DGetDescriptor, [&] { return softgpu::describe_3d(out, array); });
}

CUresult CUDAAPI cuArrayDestroy(CUarray array) {
  return call(EntryId::cuArrayDestroy, [&] { return softgpu::destroy(array); });
}

CUresult CUDAAPI cuArrayGetPlane(CUarray* out, CUarray array, unsigned) {
  return call(EntryId::cuArrayGetPlane, [&] { return softgpu::refuse_for(array, out); });
}

CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* out, CUarray array) {
  return call(EntryId::cuArrayGetSparseProperties, [&] { return softgpu::refuse_for(array, out); });
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array,
                                              CUdevice device) {
  return call(EntryId::cuArrayGetMemoryRequirements, [&] {
    softgpu::require_device(device);
    return softgpu::refuse_for(array, out);
  });
}

}  // extern "C"
