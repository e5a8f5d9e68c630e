// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: which can be made, what their descriptors say, copies from and to every other
// memory, their order in streams, captures and graphs, and what bad arguments answer.
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"

namespace {

using Bytes = std::vector<unsigned char>;

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 37 + i / 253 + seed);
  }
  return bytes;
}

CUDA_ARRAY3D_DESCRIPTOR shape(std::size_t width, std::size_t height, std::size_t depth,
                              unsigned flags = 0, CUarray_format format = CU_AD_FORMAT_FLOAT,
                              unsigned channels = 1) {
  return {width, height, depth, format, channels, flags};
}

CUresult create(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  CUarray array = nullptr;
  const CUresult code = cuArray3DCreate(&array, &descriptor);
  if (code == CUDA_SUCCESS) REQUIRE_OK(cuArrayDestroy(array));
  return code;
}

class TestArray {
 public:
  explicit TestArray(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    REQUIRE_OK(cuArray3DCreate(&array_, &descriptor));
  }
  // 1D, of bytes.
  explicit TestArray(std::size_t width)
      : TestArray(shape(width, 0, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8)) {}
  explicit TestArray(const Bytes& bytes) : TestArray(bytes.size()) {
    REQUIRE_OK(cuMemcpyHtoA(array_, 0, bytes.data(), bytes.size()));
  }
  ~TestArray() { cuArrayDestroy(array_); }
  TestArray(const TestArray&) = delete;
  TestArray& operator=(const TestArray&) = delete;
  operator CUarray() const { return array_; }

  Bytes bytes(std::size_t size) const {
    Bytes out(size);
    REQUIRE_OK(cuMemcpyAtoH(out.data(), array_, 0, size));
    return out;
  }

 private:
  CUarray array_ = nullptr;
};

class TestStream {
 public:
  TestStream() { REQUIRE_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING)); }
  ~TestStream() { cuStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator CUstream() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

CUDA_MEMCPY3D box(std::size_t width, std::size_t height, std::size_t depth) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = depth;
  return copy;
}

void from_array(CUDA_MEMCPY3D* copy, CUarray array, std::size_t x = 0, std::size_t y = 0,
                std::size_t z = 0) {
  copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->srcArray = array;
  copy->srcXInBytes = x;
  copy->srcY = y;
  copy->srcZ = z;
}

void to_array(CUDA_MEMCPY3D* copy, CUarray array, std::size_t x = 0, std::size_t y = 0,
              std::size_t z = 0) {
  copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->dstArray = array;
  copy->dstXInBytes = x;
  copy->dstY = y;
  copy->dstZ = z;
}

void from_host(CUDA_MEMCPY3D* copy, const Bytes& bytes, std::size_t pitch, std::size_t height) {
  copy->srcMemoryType = CU_MEMORYTYPE_HOST;
  copy->srcHost = bytes.data();
  copy->srcPitch = pitch;
  copy->srcHeight = height;
}

void to_host(CUDA_MEMCPY3D* copy, Bytes& bytes, std::size_t pitch, std::size_t height) {
  copy->dstMemoryType = CU_MEMORYTYPE_HOST;
  copy->dstHost = bytes.data();
  copy->dstPitch = pitch;
  copy->dstHeight = height;
}

CUDA_MEMCPY3D array_to_device(CUarray from, CUdeviceptr to, std::size_t bytes) {
  CUDA_MEMCPY3D copy = box(bytes, 1, 1);
  from_array(&copy, from);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  return copy;
}

std::size_t free_memory() {
  std::size_t free_bytes = 0, total = 0;
  REQUIRE_OK(cuMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

}  // namespace

TEST_CASE("array descriptors are kept as given") {
  Session session;
  const std::size_t before = free_memory();
  CUarray array = nullptr;
  const auto given = shape(10, 6, 12, CUDA_ARRAY3D_LAYERED, CU_AD_FORMAT_HALF, 4);
  REQUIRE_OK(cuArray3DCreate(&array, &given));
  CHECK(free_memory() <= before - 10 * 6 * 12 * 8);
  CUDA_ARRAY3D_DESCRIPTOR deep{};
  REQUIRE_OK(cuArray3DGetDescriptor(&deep, array));
  CHECK((deep.Width == 10 && deep.Height == 6 && deep.Depth == 12));
  CHECK((deep.Format == CU_AD_FORMAT_HALF && deep.NumChannels == 4 &&
         deep.Flags == CUDA_ARRAY3D_LAYERED));
  CUDA_ARRAY_DESCRIPTOR flat{};
  REQUIRE_OK(cuArrayGetDescriptor(&flat, array));
  CHECK((flat.Width == 10 && flat.Height == 6 && flat.NumChannels == 4));
  REQUIRE_OK(cuArrayDestroy(array));
  CHECK(free_memory() == before);

  const CUDA_ARRAY_DESCRIPTOR row{7, 0, CU_AD_FORMAT_SIGNED_INT16, 2};
  REQUIRE_OK(cuArrayCreate(&array, &row));
  REQUIRE_OK(cuArray3DGetDescriptor(&deep, array));
  CHECK((deep.Width == 7 && deep.Height == 0 && deep.Depth == 0 && deep.Flags == 0));
  REQUIRE_OK(cuArrayDestroy(array));
}

TEST_CASE("array shapes, limits and formats are checked") {
  Session session;
  int width_1d = 0, layers = 0, alternate_depth = 0;
  REQUIRE_OK(cuDeviceGetAttribute(&width_1d, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH,
                                  session.device()));
  REQUIRE_OK(cuDeviceGetAttribute(&layers, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
                                  session.device()));
  REQUIRE_OK(cuDeviceGetAttribute(
      &alternate_depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, session.device()));
  const auto width = static_cast<std::size_t>(width_1d);
  const auto most_layers = static_cast<std::size_t>(layers);
  const auto deepest = static_cast<std::size_t>(alternate_depth);
  const unsigned layered = CUDA_ARRAY3D_LAYERED, cube = CUDA_ARRAY3D_CUBEMAP;
  for (const auto& legal :
       {shape(width, 0, 0), shape(4, 4, 0), shape(4, 4, 4), shape(4, 0, 4, layered),
        shape(4, 4, most_layers, layered), shape(4, 4, 6, cube), shape(4, 4, 12, cube | layered),
        shape(4, 4, 0, CUDA_ARRAY3D_TEXTURE_GATHER), shape(4, 4, deepest),
        shape(4, 4, 0, CUDA_ARRAY3D_SURFACE_LDST)}) {
    CHECK(create(legal) == CUDA_SUCCESS);
  }
  for (const auto& wrong :
       {shape(0, 0, 0), shape(width + 1, 0, 0), shape(width, 0, 0, CUDA_ARRAY3D_SURFACE_LDST),
        shape(4, 0, 4), shape(4, 4, 0, layered), shape(4, 4, most_layers + 1, layered),
        shape(4, 5, 6, cube), shape(4, 4, 7, cube), shape(4, 4, 8, cube | layered),
        shape(4, 4, 4, CUDA_ARRAY3D_TEXTURE_GATHER), shape(4, 4, deepest + 1),
        shape(4, 4, 0, 0x1000), shape(4, 4, 0, 0, CU_AD_FORMAT_FLOAT, 3),
        shape(4, 4, 0, 0, static_cast<CUarray_format>(7)),
        shape(4, 4, 0, 0, CU_AD_FORMAT_UNORM_INT8X2, 4)}) {
    CHECK(create(wrong) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(create(shape(4, 4, 0, CUDA_ARRAY3D_SPARSE)) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(create(shape(4, 4, 0, 0, CU_AD_FORMAT_BC1_UNORM, 4)) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(create(shape(16384, 16384, 16384, 0, CU_AD_FORMAT_FLOAT, 4)) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("an array's element size follows its format and channels") {
  Session session;
  struct {
    CUarray_format format;
    unsigned channels;
    std::size_t size;
  } const kinds[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
                     {CU_AD_FORMAT_SIGNED_INT8, 4, 4},
                     {CU_AD_FORMAT_UNSIGNED_INT16, 2, 4},
                     {CU_AD_FORMAT_SIGNED_INT16, 1, 2},
                     {CU_AD_FORMAT_HALF, 4, 8},
                     {CU_AD_FORMAT_UNSIGNED_INT32, 1, 4},
                     {CU_AD_FORMAT_SIGNED_INT32, 2, 8},
                     {CU_AD_FORMAT_FLOAT, 4, 16},
                     {CU_AD_FORMAT_UNORM_INT16X4, 4, 8},
                     {CU_AD_FORMAT_SNORM_INT8X2, 2, 2},
                     {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4}};
  for (const auto& kind : kinds) {
    const TestArray array(shape(5, 0, 0, 0, kind.format, kind.channels));
    const Bytes bytes = pattern(5 * kind.size, 1);
    REQUIRE_OK(cuMemcpyHtoA(array, 0, bytes.data(), bytes.size()));
    CHECK(array.bytes(bytes.size()) == bytes);
    Bytes more(bytes.size() + kind.size);
    CHECK(cuMemcpyAtoH(more.data(), array, 0, more.size()) == CUDA_ERROR_INVALID_VALUE);
    if (kind.size == 1) continue;
    CHECK(cuMemcpyAtoH(more.data(), array, 1, kind.size) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpyAtoH(more.data(), array, 0, kind.size + 1) == CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("1D copies reach arrays by every entry") {
  Session session;
  constexpr std::size_t kSize = 100000;  // several pieces under random order
  const Bytes bytes = pattern(kSize, 2);
  const TestArray a(bytes), b(kSize);
  DeviceArray<unsigned char> device{kSize};
  REQUIRE_OK(cuMemcpyAtoA(b, 0, a, 0, kSize));
  REQUIRE_OK(cuMemcpyAtoD(device.address(), b, 0, kSize));
  CHECK(device.values() == bytes);
  REQUIRE_OK(cuMemcpyDtoA(b, 300, device.address() + 7, 1000));
  Bytes wanted = bytes;
  std::memcpy(&wanted[300], &bytes[7], 1000);
  CHECK(b.bytes(kSize) == wanted);

  const TestStream stream;
  Bytes source = pattern(500, 3), back(700);
  REQUIRE_OK(cuMemcpyHtoAAsync(b, 100, source.data(), source.size(), stream));
  std::memcpy(&wanted[100], source.data(), source.size());
  std::fill(source.begin(), source.end(), 0);  // was read: it is pageable
  REQUIRE_OK(cuMemcpyAtoHAsync(back.data(), b, 50, back.size(), stream));
  CHECK(std::memcmp(back.data(), &wanted[50], back.size()) == 0);  // waits, as for any pageable
}

TEST_CASE("a box of an array is copied and nothing else") {
  Session session;
  constexpr std::size_t kWidth = 20, kHeight = 5, kDepth = 4;  // in floats
  const TestArray array(shape(kWidth, kHeight, kDepth));
  const Bytes whole = pattern(kWidth * 4 * kHeight * kDepth, 4);
  CUDA_MEMCPY3D fill = box(kWidth * 4, kHeight, kDepth);
  from_host(&fill, whole, kWidth * 4, kHeight);
  to_array(&fill, array);
  REQUIRE_OK(cuMemcpy3D(&fill));

  const Bytes part = pattern(32 * 4 * 3, 5);  // pitch 32, 4 rows a slice
  CUDA_MEMCPY3D patch = box(24, 3, 2);
  from_host(&patch, part, 32, 4);
  to_array(&patch, array, 8, 1, 2);
  REQUIRE_OK(cuMemcpy3D(&patch));
  Bytes wanted = whole;
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 3; ++y) {
      std::memcpy(&wanted[((z + 2) * kHeight + y + 1) * kWidth * 4 + 8], &part[(z * 4 + y) * 32],
                  24);
    }
  }
  Bytes back(whole.size());
  CUDA_MEMCPY3D read = box(kWidth * 4, kHeight, kDepth);
  from_array(&read, array);
  to_host(&read, back, kWidth * 4, kHeight);
  REQUIRE_OK(cuMemcpy3D(&read));
  CHECK(back == wanted);

  // A row of one slice, through a 2D array and by the 2D entries.
  const TestArray flat(shape(kWidth, 2, 0));
  CUDA_MEMCPY3D row = box(40, 1, 1);
  from_array(&row, array, 12, 3, 1);
  to_array(&row, flat, 4, 1);
  REQUIRE_OK(cuMemcpy3D(&row));
  Bytes line(40);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = flat;
  out.srcXInBytes = 4;
  out.srcY = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = line.data();
  out.WidthInBytes = 40;
  out.Height = 1;
  REQUIRE_OK(cuMemcpy2DUnaligned(&out));
  CHECK(std::memcmp(line.data(), &wanted[(1 * kHeight + 3) * kWidth * 4 + 12], 40) == 0);
}

TEST_CASE("copies outside an array are refused") {
  Session session;
  const TestArray array(shape(8, 4, 2)), bytes(shape(64, 0, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8));
  Bytes host(4096);
  constexpr std::size_t kHuge = ~std::size_t{0} - 15;
  const auto read = [&](std::size_t x, std::size_t y, std::size_t z, std::size_t width,
                        std::size_t height, std::size_t depth) {
    CUDA_MEMCPY3D copy = box(width, height, depth);
    from_array(&copy, array, x, y, z);
    to_host(&copy, host, 32, 4);
    return cuMemcpy3D(&copy);
  };
  CHECK(read(0, 0, 0, 32, 4, 2) == CUDA_SUCCESS);
  CHECK(read(16, 2, 1, 16, 2, 1) == CUDA_SUCCESS);
  CHECK(read(20, 2, 1, 16, 2, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(16, 3, 1, 16, 2, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(16, 2, 2, 16, 2, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(0, 0, 0, 36, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(kHuge, 0, 0, 16, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(0, kHuge, 0, 16, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(0, 0, kHuge, 16, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(read(0, 0, 0, 0, 4, 2) == CUDA_SUCCESS);

  // Elements of different sizes; more than one dimension by a 1D entry.
  CUDA_MEMCPY3D between = box(32, 1, 1);
  from_array(&between, bytes);
  to_array(&between, array);
  CHECK(cuMemcpy3D(&between) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoH(host.data(), array, 0, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoH(nullptr, bytes, 0, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoD(0, bytes, 0, 16) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("extents that wrap around reach nothing") {
  Session session;
  DeviceArray<unsigned char> a{64}, b{64};
  CUDA_MEMCPY3D copy = box(16, 3, 1);
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a.address();
  copy.dstDevice = b.address();
  copy.srcPitch = copy.dstPitch = std::size_t{1} << 63;
  CHECK(cuMemcpy3D(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy = box(16, 1, 1);
  Bytes host(64);
  from_host(&copy, host, 0, 0);
  copy.srcY = std::size_t{1} << 61;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = b.address();
  CHECK(cuMemcpy3D(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("null, dead and foreign arrays are refused") {
  Session session;
  CUarray array = nullptr;
  const auto given = shape(16, 0, 0);
  CHECK(cuArray3DCreate(nullptr, &given) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArray3DCreate(&array, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuArray3DCreate(&array, &given));
  CUDA_ARRAY_DESCRIPTOR flat{};
  CUDA_ARRAY3D_DESCRIPTOR deep{};
  CHECK(cuArrayGetDescriptor(nullptr, array) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayGetDescriptor(&flat, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CUarray plane = nullptr;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  CUDA_ARRAY_SPARSE_PROPERTIES sparse{};
  CHECK(cuArrayGetPlane(&plane, array, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayGetMemoryRequirements(&needs, array, session.device()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayGetSparseProperties(&sparse, array) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArrayDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);

  Bytes host(64);
  CHECK(cuMemcpyAtoH(host.data(), nullptr, 0, 16) == CUDA_ERROR_INVALID_VALUE);
  {
    Session other;
    CHECK(cuMemcpyAtoH(host.data(), array, 0, 64) == CUDA_ERROR_INVALID_VALUE);
    const TestArray theirs(given);
    // Between contexts copies the peer entry, which looks at no context of an array.
    CUDA_MEMCPY3D_PEER peer{};
    peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    peer.srcArray = array;
    peer.dstArray = theirs;
    peer.WidthInBytes = 64;
    peer.Height = peer.Depth = 1;
    CHECK(cuMemcpy3DPeer(&peer) == CUDA_SUCCESS);
  }
  REQUIRE_OK(cuCtxSetCurrent(session.context()));
  REQUIRE_OK(cuArrayDestroy(array));
  CHECK(cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuArray3DGetDescriptor(&deep, array) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuMemcpyAtoH(host.data(), array, 0, 16) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an array goes with its context") {
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR flat{};
  {
    Session session;
    const auto given = shape(16, 0, 0);
    REQUIRE_OK(cuArray3DCreate(&array, &given));
  }
  Session session;
  CHECK(cuArrayGetDescriptor(&flat, array) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("array copies run in stream order and the array outlives them") {
  Session session;
  const TestStream stream;
  constexpr std::size_t kSize = 200000;
  DeviceArray<unsigned char> from{kSize}, to{kSize};
  CUarray array = nullptr;
  const auto given = shape(100000, 2, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8);
  REQUIRE_OK(cuArray3DCreate(&array, &given));
  REQUIRE_OK(cuCtxSynchronize());
  CUDA_MEMCPY3D in = box(100000, 2, 1), out = box(100000, 2, 1);
  in.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  in.srcDevice = from.address();
  in.srcPitch = 100000;
  to_array(&in, array);
  from_array(&out, array);
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = to.address();
  out.dstPitch = 100000;
  REQUIRE_OK(cuMemsetD8Async(from.address(), 1, kSize, stream));
  REQUIRE_OK(cuMemcpy3DAsync(&in, stream));
  REQUIRE_OK(cuMemsetD8Async(from.address(), 2, kSize, stream));
  REQUIRE_OK(cuMemcpy3DAsync(&out, stream));
  REQUIRE_OK(cuArrayDestroy(array));  // waits
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(to.values() == Bytes(kSize, 1));
}

TEST_CASE("captures and graphs copy arrays") {
  Session session;
  const TestStream stream;
  constexpr std::size_t kSize = 256;
  const TestArray array(pattern(kSize, 6)), other(pattern(kSize, 7));
  DeviceArray<unsigned char> middle{kSize}, last{kSize};
  REQUIRE_OK(cuCtxSynchronize());
  CUgraph captured = nullptr;
  REQUIRE_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUDA_MEMCPY3D copy = array_to_device(array, middle.address(), kSize);
  REQUIRE_OK(cuMemcpy3DAsync(&copy, stream));
  REQUIRE_OK(cuMemcpyDtoDAsync(last.address(), middle.address(), kSize, stream));
  REQUIRE_OK(cuStreamEndCapture(stream, &captured));
  CUgraphNode nodes[2];
  std::size_t count = 2;
  REQUIRE_OK(cuGraphGetRootNodes(captured, nodes, &count));
  REQUIRE(count == 1);
  CUDA_MEMCPY3D kept{};
  REQUIRE_OK(cuGraphMemcpyNodeGetParams(nodes[0], &kept));
  CHECK((kept.srcMemoryType == CU_MEMORYTYPE_ARRAY && kept.srcArray == array));
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphInstantiate(&exec, captured, 0));
  REQUIRE_OK(cuGraphLaunch(exec, stream));
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(last.values() == pattern(kSize, 6));

  const CUDA_MEMCPY3D replaced = array_to_device(other, middle.address(), kSize);
  REQUIRE_OK(cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &replaced, session.context()));
  REQUIRE_OK(cuGraphLaunch(exec, stream));
  REQUIRE_OK(cuStreamSynchronize(stream));
  CHECK(last.values() == pattern(kSize, 7));

  // Another type of memory, or no array at all, cannot take its place.
  CUDA_MEMCPY3D wrong = replaced;
  wrong.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  wrong.srcDevice = last.address();
  CHECK(cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &wrong, session.context()) ==
        CUDA_ERROR_INVALID_VALUE);
  wrong = replaced;
  wrong.srcArray = nullptr;
  CHECK(cuGraphMemcpyNodeSetParams(nodes[0], &wrong) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE_OK(cuGraphDestroy(captured));
}

TEST_CASE("a graph does not take a new array for the one it was made with") {
  Session session;
  const TestStream stream;
  DeviceArray<unsigned char> to{64};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphCreate(&graph, 0));
  CUarray before = nullptr;
  {
    const TestArray array(Bytes(64, 1));
    before = array;
    const CUDA_MEMCPY3D copy = array_to_device(array, to.address(), 64);
    REQUIRE_OK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, session.context()));
    REQUIRE_OK(cuGraphInstantiate(&exec, graph, 0));
  }
  const TestArray reused(Bytes(64, 2));
  REQUIRE_OK(cuCtxSynchronize());
  REQUIRE(static_cast<CUarray>(reused) == before);
  REQUIRE_OK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_CASE("an array is not made or destroyed while a capture forbids it") {
  Session session;
  const TestStream stream;
  const TestArray array(std::size_t{16});
  CUarray other = nullptr;
  const auto given = shape(16, 0, 0);
  for (const bool creates : {true, false}) {
    REQUIRE_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUresult code = creates ? cuArray3DCreate(&other, &given) : cuArrayDestroy(array);
    CHECK(code == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}
