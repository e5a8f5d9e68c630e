// SPDX-License-Identifier: Apache-2.0
// Copies and memsets of every shape, and what the host may rely on when each returns.
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

namespace {

std::vector<unsigned char> pattern(std::size_t size, int seed) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 31 + i / 251 + static_cast<std::size_t>(seed));
  }
  return bytes;
}

class Pinned {
 public:
  explicit Pinned(std::size_t size) { REQUIRE_OK(cuMemAllocHost(&memory_, size)); }
  ~Pinned() { cuMemFreeHost(memory_); }
  unsigned char* bytes() const { return static_cast<unsigned char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

constexpr std::size_t kSize = 300000;  // several pieces under random order

}  // namespace

TEST_CASE("linear copies arrive by every entry") {
  Session session;
  const auto bytes = pattern(kSize, 1);
  DeviceArray<unsigned char> a{kSize}, b{kSize};
  std::vector<unsigned char> back(kSize);
  REQUIRE_OK(cuMemcpyHtoD(a.address(), bytes.data(), kSize));
  REQUIRE_OK(cuMemcpyDtoD(b.address(), a.address(), kSize));
  REQUIRE_OK(cuMemcpyDtoH(back.data(), b.address(), kSize));
  CHECK(back == bytes);

  const auto unified = pattern(kSize, 2);
  const auto host = [](const void* p) { return reinterpret_cast<CUdeviceptr>(p); };
  REQUIRE_OK(cuMemcpy(a.address(), host(unified.data()), kSize));
  REQUIRE_OK(cuMemcpy(host(back.data()), a.address(), kSize));
  CHECK(back == unified);

  REQUIRE_OK(cuMemcpyPeer(b.address(), session.context(), a.address(), session.context(), kSize));
  CHECK(b.values() == unified);
  const auto between = pattern(kSize, 3);
  REQUIRE_OK(cuMemcpy(host(back.data()), host(between.data()), kSize));
  CHECK(back == between);
}

TEST_CASE("pageable memory is read before an asynchronous copy returns") {
  Session session;
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const auto wanted = pattern(kSize, 4);
  auto source = wanted;
  DeviceArray<unsigned char> a{kSize};
  REQUIRE_OK(cuCtxSynchronize());
  REQUIRE_OK(cuMemcpyHtoDAsync(a.address(), source.data(), kSize, stream));
  std::fill(source.begin(), source.end(), 0);
  std::vector<unsigned char> back(kSize);
  REQUIRE_OK(cuMemcpyDtoHAsync(back.data(), a.address(), kSize, stream));
  CHECK(back == wanted);  // complete on return, as it ends in pageable memory
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("pinned copies are complete after the stream") {
  Session session;
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const auto wanted = pattern(kSize, 5);
  Pinned source{kSize}, target{kSize};
  std::memcpy(source.bytes(), wanted.data(), kSize);
  DeviceArray<unsigned char> a{kSize};
  REQUIRE_OK(cuCtxSynchronize());
  REQUIRE_OK(cuMemcpyHtoDAsync(a.address(), source.bytes(), kSize, stream));
  REQUIRE_OK(cuMemcpyDtoHAsync(target.bytes(), a.address(), kSize, stream));
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(std::memcmp(target.bytes(), wanted.data(), kSize) == 0);
  REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("2D copies move the rectangle and nothing else") {
  Session session;
  constexpr std::size_t kPitch = 64, kRows = 20, kWidth = 24, kHeight = 7;
  const auto bytes = pattern(kPitch * kRows, 6);
  DeviceArray<unsigned char> a{bytes};
  std::vector<unsigned char> back(kPitch * kRows, 0xee);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a.address();
  copy.srcPitch = kPitch;
  copy.srcXInBytes = 5;
  copy.srcY = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = back.data();
  copy.dstPitch = 40;
  copy.dstXInBytes = 2;
  copy.dstY = 1;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  REQUIRE_OK(cuMemcpy2D(&copy));
  std::vector<unsigned char> wanted(kPitch * kRows, 0xee);
  for (std::size_t y = 0; y < kHeight; ++y) {
    std::memcpy(&wanted[(y + 1) * 40 + 2], &bytes[(y + 3) * kPitch + 5], kWidth);
  }
  CHECK(back == wanted);
  copy.srcPitch = 20;
  CHECK(cuMemcpy2D(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = kPitch;
  copy.srcY = kRows;
  CHECK(cuMemcpy2D(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("3D copies move the box and nothing else") {
  Session session;
  constexpr std::size_t kPitch = 32, kRows = 6, kSlices = 4;
  const auto bytes = pattern(kPitch * kRows * kSlices, 7);
  DeviceArray<unsigned char> a{bytes.size()};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = bytes.data();
  copy.srcPitch = copy.dstPitch = kPitch;
  copy.srcHeight = copy.dstHeight = kRows;
  copy.srcXInBytes = 3;
  copy.srcY = 1;
  copy.srcZ = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a.address();
  copy.dstXInBytes = 1;
  copy.dstY = 2;
  copy.WidthInBytes = 10;
  copy.Height = 4;
  copy.Depth = 3;
  REQUIRE_OK(cuMemcpy3D(&copy));
  std::vector<unsigned char> wanted(bytes.size());
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 4; ++y) {
      std::memcpy(&wanted[(z * kRows + y + 2) * kPitch + 1],
                  &bytes[((z + 1) * kRows + y + 1) * kPitch + 3], 10);
    }
  }
  CHECK(a.values() == wanted);
  copy.srcHeight = 3;
  CHECK(cuMemcpy3D(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.srcHeight = kRows;
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  CHECK(cuMemcpy3D(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("copies outside a live range are refused") {
  Session session;
  DeviceArray<unsigned char> a{100};
  unsigned char host[200] = {};
  CHECK(cuMemcpyHtoD(a.address() + 50, host, 51) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(host, a.address() + 100, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(nullptr, a.address(), 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(reinterpret_cast<void*>(a.address()), a.address(), 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host), host, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(a.address(), host, 0) == CUDA_SUCCESS);
  CHECK(cuMemcpyHtoDAsync(a.address(), host, 1, reinterpret_cast<CUstream>(host)) ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("memsets write their element and stay in their rectangle") {
  Session session;
  constexpr std::size_t kBytes = 256;
  DeviceArray<unsigned char> a{kBytes};
  REQUIRE_OK(cuMemsetD8(a.address(), 0x11, kBytes));
  REQUIRE_OK(cuMemsetD16(a.address() + 16, 0x2233, 4));
  REQUIRE_OK(cuMemsetD32(a.address() + 32, 0x44556677, 3));
  REQUIRE_OK(cuMemsetD2D8(a.address() + 64, 32, 0x99, 5, 3));
  std::vector<unsigned char> wanted(kBytes, 0x11);
  for (int i = 0; i < 4; ++i) {
    wanted[static_cast<std::size_t>(16 + 2 * i)] = 0x33;
    wanted[static_cast<std::size_t>(17 + 2 * i)] = 0x22;
  }
  const std::uint32_t word = 0x44556677;
  for (std::size_t i = 0; i < 3; ++i) std::memcpy(&wanted[32 + 4 * i], &word, 4);
  for (std::size_t y = 0; y < 3; ++y) std::memset(&wanted[64 + 32 * y], 0x99, 5);
  CHECK(a.values() == wanted);
  CHECK(cuMemsetD32(a.address() + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8(a.address(), 0, kBytes + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD2D8(a.address(), 8, 0, 9, 2) == CUDA_ERROR_INVALID_VALUE);
}
