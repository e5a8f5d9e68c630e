// SPDX-License-Identifier: Apache-2.0
// Batches of copies: all of them arrive, as one step of the stream; sources are read when they must
// be; and a batch with one wrong copy does nothing and, by the older entries, says which it was.
#include "tests/unit/softgpu/graph_fixture.h"

using namespace graph_test;  // NOLINT

namespace {

constexpr std::size_t kNone = ~std::size_t{0};

CUmemcpyAttributes attributes(CUmemcpySrcAccessOrder order) {
  CUmemcpyAttributes value{};
  value.srcAccessOrder = order;
  return value;
}

// Copies between pointers, all with the same attributes unless said otherwise.
struct Batch {
  std::vector<CUdeviceptr> to, from;
  std::vector<std::size_t> sizes;
  std::vector<CUmemcpyAttributes> hints{attributes(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)};
  std::vector<std::size_t> firsts{0};

  void add(CUdeviceptr destination, CUdeviceptr source, std::size_t size) {
    to.push_back(destination);
    from.push_back(source);
    sizes.push_back(size);
  }
  CUresult submit(CUstream stream) {
    return cuMemcpyBatchAsync_v2(to.data(), from.data(), sizes.data(), to.size(), hints.data(),
                                 firsts.data(), hints.size(), stream);
  }
  CUresult submit(CUstream stream, std::size_t* fail_index) {
    return cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), hints.data(),
                              firsts.data(), hints.size(), fail_index, stream);
  }
};

CUmemcpy3DOperand pointer(CUdeviceptr address, std::size_t row_length = 0,
                          std::size_t layer_height = 0) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operand.op.ptr.ptr = address;
  operand.op.ptr.rowLength = row_length;
  operand.op.ptr.layerHeight = layer_height;
  return operand;
}

CUmemcpy3DOperand in_array(CUarray array, CUoffset3D offset) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  operand.op.array.array = array;
  operand.op.array.offset = offset;
  return operand;
}

CUDA_MEMCPY3D_BATCH_OP copy(const CUmemcpy3DOperand& to, const CUmemcpy3DOperand& from,
                            CUextent3D extent) {
  CUDA_MEMCPY3D_BATCH_OP value{};
  value.src = from;
  value.dst = to;
  value.extent = extent;
  value.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return value;
}

}  // namespace

TEST_CASE("a batch is one step of its stream") {
  Gpu::get();
  const TestStream stream;
  Words from(64), to(64);
  REQUIRE(cuMemsetD32Async(from.at(0), 5, 64, stream) == CUDA_SUCCESS);
  Batch batch;
  for (std::size_t i = 0; i < 64; i += 8) batch.add(to.at(56 - i), from.at(i), 32);
  REQUIRE(batch.submit(stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD32Async(from.at(0), 6, 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD32Async(to.at(0), 7, 8, stream) == CUDA_SUCCESS);
  stream.sync();
  std::vector<std::uint32_t> wanted(64, 5);
  std::fill(wanted.begin(), wanted.begin() + 8, 7);
  CHECK(to.read() == wanted);
}

TEST_CASE("a batch reads a source during the call where it is told to") {
  Gpu::get();
  const TestStream stream;
  Words from(4), to(8);
  REQUIRE(cuMemsetD32_v2(from.at(0), 9, 4) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  std::uint32_t local[4] = {1, 2, 3, 4};
  Batch batch;
  batch.add(to.at(0), reinterpret_cast<CUdeviceptr>(local), 16);
  batch.add(to.at(4), from.at(0), 16);
  batch.hints[0] = attributes(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
  REQUIRE(batch.submit(stream) == CUDA_SUCCESS);
  std::fill(std::begin(local), std::end(local), 0u);
  REQUIRE(cuMemsetD32_v2(from.at(0), 0, 4) == CUDA_SUCCESS);  // not ordered with the stream
  stream.sync();
  CHECK(to.read() == std::vector<std::uint32_t>{1, 2, 3, 4, 9, 9, 9, 9});
}

TEST_CASE("each copy of a batch has the attributes that start before it") {
  Gpu::get();
  const TestStream stream;
  Words to(12);
  void* pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, 16, 0) == CUDA_SUCCESS);
  std::uint32_t local[4] = {1, 1, 1, 1};
  auto* const later = static_cast<std::uint32_t*>(pinned);
  std::fill(later, later + 4, 2u);
  Batch batch;
  batch.add(to.at(0), reinterpret_cast<CUdeviceptr>(pinned), 16);
  batch.add(to.at(4), reinterpret_cast<CUdeviceptr>(local), 16);
  batch.add(to.at(8), reinterpret_cast<CUdeviceptr>(local), 16);
  batch.hints.push_back(attributes(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL));
  batch.firsts.push_back(1);
  REQUIRE(batch.submit(stream) == CUDA_SUCCESS);
  std::fill(std::begin(local), std::end(local), 0u);
  stream.sync();
  CHECK(to.read() == std::vector<std::uint32_t>{2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1});
  REQUIRE(cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("a batch with a wrong copy does nothing and says which") {
  Gpu::get();
  const TestStream stream;
  Words from(4), to(4);
  REQUIRE(cuMemsetD32_v2(from.at(0), 3, 4) == CUDA_SUCCESS);
  std::size_t index = 77;
  Batch batch;
  batch.add(to.at(0), from.at(0), 4);
  batch.add(to.at(1), from.at(1), 4);
  batch.add(to.at(2), from.at(2), 4096);
  CHECK(batch.submit(stream, &index) == CUDA_ERROR_INVALID_VALUE);
  CHECK(index == 2);
  CHECK(batch.submit(stream, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(batch.submit(stream) == CUDA_ERROR_INVALID_VALUE);
  stream.sync();
  CHECK(to.read() == std::vector<std::uint32_t>(4));
  batch.sizes[2] = 0;  // nothing to copy is no error
  index = 77;
  REQUIRE(batch.submit(stream, &index) == CUDA_SUCCESS);
  CHECK(index == 77);
  stream.sync();
  CHECK(to.read() == std::vector<std::uint32_t>{3, 3, 0, 0});
}

TEST_CASE("what is wrong with a whole batch is of no copy") {
  Gpu::get();
  const TestStream stream;
  Words from(4), to(4);
  Batch good;
  good.add(to.at(0), from.at(0), 4);
  good.add(to.at(1), from.at(1), 4);
  std::vector<Batch> wrong(6, good);
  wrong[0].hints[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  wrong[1].hints[0].flags = 2;
  wrong[2].firsts[0] = 1;
  wrong[3].hints.assign(2, good.hints[0]);
  wrong[3].firsts = {0, 0};
  wrong[4].hints.assign(2, good.hints[0]);
  wrong[4].firsts = {0, 2};
  wrong[5].hints.assign(3, good.hints[0]);
  wrong[5].firsts = {0, 1, 2};
  for (Batch& batch : wrong) {
    std::size_t index = 0;
    CHECK(batch.submit(stream, &index) == CUDA_ERROR_INVALID_VALUE);
    CHECK(index == kNone);
  }
  CHECK(good.submit(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(good.submit(CU_STREAM_LEGACY) == CUDA_ERROR_INVALID_VALUE);
  CHECK(good.submit(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK(cuMemcpyBatchAsync_v2(nullptr, good.from.data(), good.sizes.data(), 1, good.hints.data(),
                              good.firsts.data(), 1, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyBatchAsync_v2(good.to.data(), good.from.data(), good.sizes.data(), 0,
                              good.hints.data(), good.firsts.data(), 0,
                              stream) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(good.submit(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("a 3D batch counts in elements") {
  Gpu::get();
  const TestStream stream;
  Words from(64), to(64);
  std::vector<std::uint32_t> values(64);
  for (std::uint32_t i = 0; i < 64; ++i) values[i] = i + 1;
  REQUIRE(cuMemcpyHtoD_v2(from.at(0), values.data(), 256) == CUDA_SUCCESS);
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape{8, 4, 2, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
  REQUIRE(cuArray3DCreate_v2(&array, &shape) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);

  // All of it, packed; then a box of 3 x 2 x 2 at (4, 1, 0) to rows of 5 and layers of 4.
  auto fill = copy(in_array(array, {0, 0, 0}), pointer(from.at(0)), {8, 4, 2});
  auto read = copy(pointer(to.at(0), 5, 4), in_array(array, {4, 1, 0}), {3, 2, 2});
  REQUIRE(cuMemcpy3DBatchAsync_v2(1, &fill, 0, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpy3DBatchAsync_v2(1, &read, 0, stream) == CUDA_SUCCESS);
  stream.sync();
  std::vector<std::uint32_t> wanted(64);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 2; ++y) {
      for (std::size_t x = 0; x < 3; ++x) {
        wanted[(z * 4 + y) * 5 + x] = values[(z * 4 + y + 1) * 8 + x + 4];
      }
    }
  }
  CHECK(to.read() == wanted);

  // Between pointers an element is a byte.
  auto bytes = copy(pointer(to.at(60)), pointer(from.at(0)), {8, 1, 1});
  CUDA_MEMCPY3D_BATCH_OP batch[2] = {fill, bytes};
  REQUIRE(cuMemcpy3DBatchAsync_v2(2, batch, 0, stream) == CUDA_SUCCESS);
  stream.sync();
  wanted[60] = values[0];
  wanted[61] = values[1];
  CHECK(to.read() == wanted);

  std::size_t index = 0;
  batch[1] = copy(pointer(to.at(0), 2), in_array(array, {0, 0, 0}), {3, 1, 1});
  CHECK(cuMemcpy3DBatchAsync(2, batch, &index, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(index == 1);
  batch[0].extent.depth = 0;
  CHECK(cuMemcpy3DBatchAsync(2, batch, &index, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(index == 0);
  batch[0] = copy(pointer(to.at(0)), in_array(array, {6, 0, 0}), {3, 1, 1});
  CHECK(cuMemcpy3DBatchAsync_v2(1, batch, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  batch[0] = fill;
  CHECK(cuMemcpy3DBatchAsync(1, batch, &index, 1, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(index == kNone);
  batch[0].extent.width = kNone;
  CHECK(cuMemcpy3DBatchAsync_v2(1, batch, 0, stream) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuArrayDestroy(array) == CUDA_SUCCESS);
}
