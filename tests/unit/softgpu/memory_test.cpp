// SPDX-License-Identifier: Apache-2.0
// Device, pinned, registered, managed and pooled memory: addresses, attributes, and every misuse a
// driver reports.
#include <cuda.h>
#include <setjmp.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

namespace {

sigjmp_buf g_after_fault;
void leave_fault(int) {
  siglongjmp(g_after_fault, 1);
}

// Whether reading the byte at `address` from the host is a fault.
bool faults(CUdeviceptr address) {
  struct sigaction catching = {}, before = {};
  catching.sa_handler = leave_fault;
  sigaction(SIGSEGV, &catching, &before);
  volatile bool is_fault = true;
  if (sigsetjmp(g_after_fault, 1) == 0) {
    [[maybe_unused]] const char value = *reinterpret_cast<volatile const char*>(address);
    is_fault = false;
  }
  sigaction(SIGSEGV, &before, nullptr);
  return is_fault;
}

std::size_t free_bytes() {
  std::size_t available = 0, total = 0;
  REQUIRE_OK(cuMemGetInfo(&available, &total));
  CHECK(available <= total);
  return available;
}

}  // namespace

// taichi counts on it for pages of 4 KiB.
TEST_CASE("large device allocations start a page of the GPU") {
  Session session;
  constexpr std::size_t kPage = std::size_t{2} << 20;
  CUdeviceptr small = 0, large = 0, pooled = 0;
  REQUIRE_OK(cuMemAlloc(&small, 1000));
  REQUIRE_OK(cuMemAlloc(&large, std::size_t{1} << 20));
  CHECK(large % kPage == 0);
  REQUIRE_OK(cuMemAllocAsync(&pooled, (std::size_t{3} << 20) + 5, nullptr));
  CHECK(pooled % kPage == 0);
  REQUIRE_OK(cuMemFree(small));
  REQUIRE_OK(cuMemFree(large));
  REQUIRE_OK(cuMemFree(pooled));
}

TEST_CASE("device memory is aligned, counted and out of the host's reach") {
  Session session;
  const std::size_t before = free_bytes();
  CUdeviceptr a = 0, b = 0;
  REQUIRE_OK(cuMemAlloc(&a, 1000));
  REQUIRE_OK(cuMemAlloc(&b, 5000));
  CHECK(a % 256 == 0);
  CHECK(b % 256 == 0);
  CHECK(b >= a + 1000);
  CHECK(free_bytes() == before - 6000);
  CHECK(faults(a));
  CUdeviceptr base = 0;
  std::size_t size = 0;
  REQUIRE_OK(cuMemGetAddressRange(&base, &size, b + 4999));
  CHECK(base == b);
  CHECK(size == 5000);
  CHECK(cuMemGetAddressRange(&base, &size, b + 5000) == CUDA_ERROR_NOT_FOUND);
  REQUIRE_OK(cuMemFree(a));
  REQUIRE_OK(cuMemFree(b));
  CHECK(free_bytes() == before);
}

TEST_CASE("what is not the start of an allocation cannot be freed") {
  Session session;
  CUdeviceptr a = 0;
  REQUIRE_OK(cuMemAlloc(&a, 1000));
  CHECK(cuMemFree(a + 256) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(12345) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(a));
  CHECK(cuMemFree(a) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  int host = 0;
  CHECK(cuMemFreeHost(&host) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sizes that cannot be are refused") {
  Session session;
  CUdeviceptr a = 0;
  CHECK(cuMemAlloc(&a, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(nullptr, 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&a, ~std::size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&a, std::size_t{1} << 45) == CUDA_ERROR_OUT_OF_MEMORY);
  std::size_t pitch = 0;
  CHECK(cuMemAllocPitch(&a, &pitch, 100, 10, 3) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemAllocPitch(&a, &pitch, 100, 10, 4));
  CHECK(pitch >= 100);
  CHECK(pitch % 256 == 0);
  REQUIRE_OK(cuMemFree(a));
}

TEST_CASE("a freed address is not handed out again and takes no copies") {
  Session session;
  CUdeviceptr a = 0, b = 0;
  REQUIRE_OK(cuMemAlloc(&a, 4096));
  REQUIRE_OK(cuMemFree(a));
  REQUIRE_OK(cuMemAlloc(&b, 4096));
  CHECK(a != b);
  char byte = 0;
  CHECK(cuMemcpyDtoH(&byte, a, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8(a, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(b));
}

TEST_CASE("pinned memory has one address on both sides") {
  Session session;
  void* memory = nullptr;
  REQUIRE_OK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_PORTABLE));
  CUdeviceptr device = 0;
  REQUIRE_OK(cuMemHostGetDevicePointer(&device, memory, 0));
  CHECK(device == reinterpret_cast<CUdeviceptr>(memory));
  unsigned flags = 0;
  REQUIRE_OK(cuMemHostGetFlags(&flags, memory));
  CHECK((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
  CHECK(cuMemHostAlloc(&memory, 4096, 0x80) == CUDA_ERROR_INVALID_VALUE);
  int plain = 0;
  CHECK(cuMemHostGetDevicePointer(&device, &plain, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(device) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFreeHost(memory));
  CHECK(cuMemFreeHost(memory) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("host memory can be registered once") {
  Session session;
  std::vector<char> memory(8192);
  REQUIRE_OK(cuMemHostRegister(memory.data(), memory.size(), 0));
  CHECK(cuMemHostRegister(memory.data() + 100, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  REQUIRE_OK(cuMemHostGetDevicePointer(&device, memory.data() + 5, 0));
  CHECK(device == reinterpret_cast<CUdeviceptr>(memory.data() + 5));
  REQUIRE_OK(cuMemHostUnregister(memory.data()));
  CHECK(cuMemHostUnregister(memory.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_CASE("pointer attributes tell the kinds of memory apart") {
  Session session;
  CUdeviceptr device = 0, managed = 0;
  void* pinned = nullptr;
  REQUIRE_OK(cuMemAlloc(&device, 4096));
  REQUIRE_OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  REQUIRE_OK(cuMemHostAlloc(&pinned, 4096, 0));
  const auto type_of = [](CUdeviceptr address) {
    unsigned type = 0;
    REQUIRE_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    return type;
  };
  CHECK(type_of(device + 100) == CU_MEMORYTYPE_DEVICE);
  CHECK(type_of(managed) == CU_MEMORYTYPE_DEVICE);
  CHECK(type_of(reinterpret_cast<CUdeviceptr>(pinned)) == CU_MEMORYTYPE_HOST);
  CUcontext owner = nullptr;
  REQUIRE_OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device));
  CHECK(owner == session.context());
  bool is_managed = false;
  REQUIRE_OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  CHECK(is_managed);
  unsigned type = 77;
  int ordinal = 77;
  const auto stack = reinterpret_cast<CUdeviceptr>(&type);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, stack) ==
        CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* out[] = {&type, &ordinal};
  REQUIRE_OK(cuPointerGetAttributes(2, wanted, out, stack));
  CHECK(type == 0);
  CHECK(ordinal == -2);
  REQUIRE_OK(cuPointerGetAttributes(2, wanted, out, device));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(ordinal == 0);
  REQUIRE_OK(cuMemFree(device));
  REQUIRE_OK(cuMemFree(managed));
  REQUIRE_OK(cuMemFreeHost(pinned));
}

TEST_CASE("managed memory is the host's too and takes hints") {
  Session session;
  CUdeviceptr managed = 0, device = 0;
  REQUIRE_OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  REQUIRE_OK(cuMemAlloc(&device, 4096));
  REQUIRE_OK(cuMemsetD8(managed, 7, 4096));
  CHECK(reinterpret_cast<const char*>(managed)[4095] == 7);
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  REQUIRE_OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place));
  REQUIRE_OK(cuMemPrefetchAsync(managed, 4096, place, 0, nullptr));
  CHECK(cuMemPrefetchAsync(device, 4096, place, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  place.id = 9;
  CHECK(cuMemPrefetchAsync(managed, 4096, place, 0, nullptr) == CUDA_ERROR_INVALID_DEVICE);
  REQUIRE_OK(cuMemFree(managed));
  REQUIRE_OK(cuMemFree(device));
}

TEST_CASE("pooled memory goes back in stream order") {
  Session session;
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = nullptr, other = nullptr;
  REQUIRE_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  REQUIRE_OK(cuDeviceGetMemPool(&other, 0));
  CHECK(pool == other);
  CUdeviceptr memory = 0;
  REQUIRE_OK(cuMemAllocAsync(&memory, 4096, stream));
  cuuint64_t used = 0;
  REQUIRE_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 4096);
  CUdeviceptr freed_at_once = 0;
  REQUIRE_OK(cuMemAllocAsync(&freed_at_once, 512, stream));
  REQUIRE_OK(cuMemFree(freed_at_once));
  REQUIRE_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 4096);
  REQUIRE_OK(cuMemsetD8Async(memory, 1, 4096, stream));
  REQUIRE_OK(cuMemFreeAsync(memory, stream));
  CHECK(cuMemFreeAsync(memory, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(cuMemGetAddressRange(nullptr, nullptr, memory) == CUDA_ERROR_NOT_FOUND);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  REQUIRE_OK(cuMemPoolCreate(&other, &properties));
  REQUIRE_OK(cuMemAllocFromPoolAsync(&memory, 64, other, stream));
  REQUIRE_OK(cuMemFreeAsync(memory, stream));
  REQUIRE_OK(cuMemPoolDestroy(other));
  CHECK(cuMemPoolDestroy(other) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuStreamDestroy(stream));
}
