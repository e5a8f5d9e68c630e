// SPDX-License-Identifier: Apache-2.0
// Device entries: count, names, memory size, peers, limits of textures.

#include "tools/softgpu/driver/device.h"

#include <cstdio>
#include <cstring>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/options.h"

namespace softgpu {

int device_count() {
  return options().devices;
}

void require_device(CUdevice device) {
  if (device < 0 || device >= device_count()) fail(CUDA_ERROR_INVALID_DEVICE);
}

// Address space only: pages are taken when they are touched.
std::size_t total_memory(CUdevice) {
  return options().memory_bytes;
}

std::string device_name() {
  return "softgpu";
}

namespace {

template <class T>
void set(T* out, T value) {
  if (out == nullptr) fail(CUDA_ERROR_INVALID_VALUE);
  *out = value;
}

int attribute_of(CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  if (!device_attribute(attribute, device, &value)) fail(CUDA_ERROR_INVALID_VALUE);
  return value;
}

CUresult copy_name(char* out, int length) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", device_name().c_str());
  return CUDA_SUCCESS;
}

CUresult get_uuid(CUuuid* uuid, CUdevice device) {
  require_device(device);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, "softgpu--------", 15);
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult get_bus_id(char* out, int length, CUdevice device) {
  require_device(device);
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}

// "[domain:]bus:device[.function]", hexadecimal.
CUresult find_by_bus_id(CUdevice* device, const char* text) {
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = function = 0;
    if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
  }
  if (domain != 0 || slot != 0 || bus == 0 || bus > static_cast<unsigned>(device_count())) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = static_cast<CUdevice>(bus) - 1;
  return CUDA_SUCCESS;
}

CUresult get_properties(CUdevprop* properties, CUdevice device) {
  require_device(device);
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto value = [device](CUdevice_attribute a) { return attribute_of(a, device); };
  *properties = {};
  properties->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] =
        value(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
    properties->maxGridSize[i] =
        value(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
  }
  properties->sharedMemPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult get_p2p_attribute(int* value, CUdevice_P2PAttribute attribute, CUdevice a, CUdevice b) {
  require_device(a);
  require_device(b);
  if (value == nullptr || a == b) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return call(EntryId::cuDeviceGetCount, [&]() -> CUresult {
    softgpu::set(count, softgpu::device_count());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return call(EntryId::cuDeviceGet, [&]() -> CUresult {
    softgpu::require_device(ordinal);
    softgpu::set(device, ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return call(EntryId::cuDeviceGetAttribute, [&]() -> CUresult {
    softgpu::require_device(device);
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = softgpu::attribute_of(attribute, device);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return call(EntryId::cuDeviceGetName, [&]() -> CUresult {
    softgpu::require_device(device);
    return softgpu::copy_name(name, length);
  });
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return call(EntryId::cuDeviceTotalMem_v2, [&]() -> CUresult {
    softgpu::require_device(device);
    softgpu::set(bytes, softgpu::total_memory(device));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return call(EntryId::cuDeviceComputeCapability, [&]() -> CUresult {
    softgpu::require_device(device);
    softgpu::set(major, softgpu::options().compute_capability / 10);
    softgpu::set(minor, softgpu::options().compute_capability % 10);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call(EntryId::cuDeviceGetUuid, [&] { return softgpu::get_uuid(uuid, device); });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return call(EntryId::cuDeviceGetUuid_v2, [&] { return softgpu::get_uuid(uuid, device); });
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return call(EntryId::cuDeviceGetProperties,
              [&] { return softgpu::get_properties(properties, device); });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return call(EntryId::cuDeviceGetPCIBusId,
              [&] { return softgpu::get_bus_id(text, length, device); });
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return call(EntryId::cuDeviceGetByPCIBusId,
              [&] { return softgpu::find_by_bus_id(device, text); });
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  return call(EntryId::cuDeviceCanAccessPeer, [&]() -> CUresult {
    softgpu::require_device(device);
    softgpu::require_device(peer);
    softgpu::set(can_access, device == peer ? 0 : 1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice a,
                                         CUdevice b) {
  return call(EntryId::cuDeviceGetP2PAttribute,
              [&] { return softgpu::get_p2p_attribute(value, attribute, a, b); });
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType type,
                                                CUdevice device) {
  return call(EntryId::cuDeviceGetExecAffinitySupport, [&]() -> CUresult {
    softgpu::require_device(device);
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    softgpu::set(value, 0);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned,
                                                    CUdevice device) {
  return call(EntryId::cuDeviceGetTexture1DLinearMaxWidth, [&]() -> CUresult {
    softgpu::require_device(device);
    softgpu::set(width, std::size_t{1} << 28);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuProfilerStart() {
  return call(EntryId::cuProfilerStart, []() -> CUresult { return CUDA_SUCCESS; });
}

CUresult CUDAAPI cuProfilerStop() {
  return call(EntryId::cuProfilerStop, []() -> CUresult { return CUDA_SUCCESS; });
}

}  // extern "C"
