// SPDX-License-Identifier: Apache-2.0
// The entries of arrays as CUDA 2 had them, with 32-bit extents, offsets and device addresses.
#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

TEST_CASE("arrays by the older ABI") {
  Gpu::get();
  const TestStream stream;
  CUarray a = nullptr, b = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v1 row{64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1}, back{};
  REQUIRE(cuArrayCreate(&a, &row) == CUDA_SUCCESS);
  REQUIRE(cuArrayGetDescriptor(&back, a) == CUDA_SUCCESS);
  CHECK(std::memcmp(&row, &back, sizeof row) == 0);
  CUDA_ARRAY3D_DESCRIPTOR_v1 deep{8, 4, 2, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, kept{};
  REQUIRE(cuArray3DCreate(&b, &deep) == CUDA_SUCCESS);
  REQUIRE(cuArray3DGetDescriptor(&kept, b) == CUDA_SUCCESS);
  CHECK(std::memcmp(&deep, &kept, sizeof deep) == 0);

  std::vector<unsigned char> bytes(64), read(64);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i + 1);
  REQUIRE(cuMemcpyHtoA(a, 0, bytes.data(), 32) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyHtoAAsync(a, 32, bytes.data() + 32, 32, stream) == CUDA_SUCCESS);
  stream.sync();
  REQUIRE(cuMemcpyAtoA(a, 0, a, 48, 16) == CUDA_SUCCESS);
  std::memcpy(bytes.data(), bytes.data() + 48, 16);
  REQUIRE(cuMemcpyAtoH(read.data(), a, 0, 40) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyAtoHAsync(read.data() + 40, a, 40, 24, stream) == CUDA_SUCCESS);
  stream.sync();
  CHECK(read == bytes);
  CHECK(cuMemcpyAtoD(64, a, 0, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoA(a, 0, 64, 16) == CUDA_ERROR_INVALID_VALUE);

  CUDA_MEMCPY3D_v1 in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = bytes.data();
  in.srcPitch = 16;
  in.srcHeight = 2;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = b;
  in.dstZ = 0;
  in.WidthInBytes = 16;
  in.Height = 2;
  in.Depth = 2;
  REQUIRE(cuMemcpy3D(&in) == CUDA_SUCCESS);
  REQUIRE(cuMemcpy3DAsync(&in, stream) == CUDA_SUCCESS);
  stream.sync();
  CUDA_MEMCPY2D_v1 out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = b;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = read.data();
  out.dstPitch = 16;
  out.WidthInBytes = 16;
  out.Height = 2;
  for (const auto entry : {cuMemcpy2D, cuMemcpy2DUnaligned}) {
    std::fill(read.begin(), read.end(), 0);
    REQUIRE(entry(&out) == CUDA_SUCCESS);
    CHECK(std::memcmp(read.data(), bytes.data(), 32) == 0);
  }
  REQUIRE(cuMemcpy2DAsync(&out, stream) == CUDA_SUCCESS);
  stream.sync();
  REQUIRE(cuArrayDestroy(a) == CUDA_SUCCESS);
  REQUIRE(cuArrayDestroy(b) == CUDA_SUCCESS);
}
