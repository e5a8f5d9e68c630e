// SPDX-License-Identifier: Apache-2.0
// What softgpu records of small programs: exact accesses, exact dependencies, waits. Run under
// several orders: none of it may depend on when operations ran.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "tests/unit/softgpu/graph_fixture.h"
#include "tools/softgpu/compare/order.h"
#include "tools/softgpu/compare/trace.h"

using namespace graph_test;  // NOLINT
using softgpu::compare::Operation;
using softgpu::compare::OperationIndex;
using softgpu::compare::Order;
using softgpu::compare::Reading;
using softgpu::compare::Trace;
using softgpu::compare::Wait;

namespace {

// A file that goes when the process ends.
struct TraceFile {
  char path[32] = "/tmp/softgpu_record_XXXXXX";

  // The option is read at the first driver call, which no test makes before this.
  TraceFile() {
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    close(file);
    setenv("CAJETA_SOFTGPU_TRACE", path, 1);
  }
  ~TraceFile() { unlink(path); }
};

std::string trace_path() {
  static const TraceFile file;
  return file.path;
}

Trace read_all() {
  Trace trace;
  std::string error;
  const bool is_good = softgpu::compare::read_trace(trace_path(), &trace, &error);
  INFO(error);
  REQUIRE(is_good);
  return trace;
}

// The trace from here on: what a test looks at are the operations with a text, in order.
class Recording {
 public:
  Recording() : path_(trace_path()) {
    Gpu::get();
    const Trace before = read_all();
    operations_ = before.operations.size();
    waits_ = before.waits.size();
  }

  // Call it once, when the work is done.
  void stop() {
    trace_ = read_all();
    for (OperationIndex i = operations_; i < trace_.operations.size(); ++i) {
      if (trace_.operations[i].has_identity) found_.push_back(i);
    }
  }

  std::size_t count() const { return found_.size(); }
  const Operation& operation(std::size_t index) const {
    return trace_.operations[found_.at(index)];
  }
  std::vector<Wait> waits() const {
    return {trace_.waits.begin() + static_cast<std::ptrdiff_t>(waits_), trace_.waits.end()};
  }
  // Positions among the recorded operations; those of earlier ones are left out.
  std::set<std::size_t> after(std::size_t index) const { return positions(operation(index).after); }
  std::set<std::size_t> goals(const Wait& wait) const { return positions(wait.goals); }
  bool is_before(std::size_t first, std::size_t second) const {
    return Order(trace_, Reading::kStrict).is_before(found_.at(first), found_.at(second));
  }

 private:
  std::set<std::size_t> positions(const std::vector<OperationIndex>& operations) const {
    std::set<std::size_t> found;
    for (const OperationIndex i : operations) {
      const auto at = std::find(found_.begin(), found_.end(), i);
      if (at != found_.end()) found.insert(static_cast<std::size_t>(at - found_.begin()));
    }
    return found;
  }

  const std::string path_;
  std::size_t operations_ = 0, waits_ = 0;
  Trace trace_;
  std::vector<OperationIndex> found_;
};

using Set = std::set<std::size_t>;

// Device memory whose ordinal is known.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) {
    Recording recording;
    REQUIRE(cuMemAlloc_v2(&address_, bytes) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8_v2(address_, 0, 1) == CUDA_SUCCESS);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    recording.stop();
    REQUIRE(recording.operation(0).accesses.size() == 1);
    name_ = std::to_string(recording.operation(0).accesses[0].allocation);
  }
  ~Buffer() { cuMemFree_v2(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr at(std::size_t byte) const { return address_ + byte; }
  // "w4:" for the letter w
  std::string with(char letter) const { return letter + name_ + ':'; }

 private:
  CUdeviceptr address_ = 0;
  std::string name_;
};

void launch_store(CUdeviceptr word, CUstream stream) {
  WordArguments arguments(word, 1);
  REQUIRE(cuLaunchKernel(Gpu::get().store, 1, 1, 1, 1, 1, 1, 0, stream, arguments.pointers,
                         nullptr) == CUDA_SUCCESS);
}

// spread: thread i reads a vector of four words at from + 128 i, writes a word at to + 64 i, adds
// to *sum and uses shared memory in between. copy_through: loads a pointer and overwrites the
// register that held its address.
constexpr char kSpreadPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry spread(.param .u64 from, .param .u64 to, .param .u64 sum) {
  .reg .b64 %rd<12>; .reg .b32 %r<12>;
  .shared .align 4 .b8 words[256];
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; ld.param.u64 %rd3, [sum];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 128; add.u64 %rd5, %rd1, %rd4;
  ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd5];
  mov.u64 %rd6, words; mul.wide.u32 %rd7, %r1, 4; add.u64 %rd8, %rd6, %rd7;
  st.shared.u32 [%rd8], %r2; ld.shared.u32 %r6, [%rd8];
  mul.wide.u32 %rd9, %r1, 64; add.u64 %rd10, %rd2, %rd9;
  st.global.u32 [%rd10], %r6;
  red.global.add.u32 [%rd3], 1;
  ret;
}
.visible .entry copy_through(.param .u64 from, .param .u64 to) {
  .reg .b64 %rd<4>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  ld.u64 %rd1, [%rd1];
  st.u64 [%rd2], %rd1;
  ret;
}
)";

CUfunction function_of(const char* name) {
  static CUmodule module = nullptr;
  Gpu::get();
  if (module == nullptr) REQUIRE(cuModuleLoadData(&module, kSpreadPtx) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
  return function;
}

}  // namespace

TEST_CASE("a kernel's reads, writes and atomics are recorded by granule") {
  Recording outside;  // chooses the trace before the first driver call
  const CUfunction spread = function_of("spread");
  const Buffer from(4096), to(4096), sum(256);
  TestStream stream;
  Recording recording;
  CUdeviceptr first = from.at(0), second = to.at(64), third = sum.at(128);
  void* arguments[] = {&first, &second, &third};
  REQUIRE(cuLaunchKernel(spread, 1, 1, 1, 5, 1, 1, 0, stream, arguments, nullptr) == CUDA_SUCCESS);
  stream.sync();
  recording.stop();
  REQUIRE(recording.count() == 1);
  const std::string text(recording.operation(0).access_text);
  CHECK(text == from.with('r') + "0,2,4,6,8;" + to.with('w') + "1-5;" + sum.with('u') + "2");
  CHECK(recording.operation(0).text.find("kernel spread grid 1,1,1 block 5,1,1") == 0);
}

TEST_CASE("a load that overwrites its address is recorded by the old one") {
  const CUfunction copy_through = function_of("copy_through");
  const Buffer from(256), to(256);
  TestStream stream;
  REQUIRE(cuMemsetD8_v2(from.at(0), 0xff, 256) == CUDA_SUCCESS);
  Recording recording;
  CUdeviceptr first = from.at(192), second = to.at(64);
  void* arguments[] = {&first, &second};
  REQUIRE(cuLaunchKernel(copy_through, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) ==
          CUDA_SUCCESS);
  stream.sync();
  recording.stop();
  CHECK(std::string(recording.operation(0).access_text) ==
        from.with('r') + "3;" + to.with('w') + "1");
}

TEST_CASE("copies and memsets are recorded row by row") {
  const Buffer a(4096), b(4096);
  TestStream stream;
  std::vector<char> host(256);
  Recording recording;
  REQUIRE(cuMemcpyDtoDAsync_v2(b.at(100), a.at(64), 200, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyHtoDAsync_v2(a.at(0), host.data(), 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD2D8Async(a.at(0), 256, 1, 10, 3, stream) == CUDA_SUCCESS);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = a.at(0);
  rows.srcPitch = 512;
  rows.dstDevice = b.at(0);
  rows.dstPitch = 64;
  rows.WidthInBytes = 64;
  rows.Height = 3;
  REQUIRE(cuMemcpy2DAsync_v2(&rows, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoH_v2(host.data(), b.at(63), 2) == CUDA_SUCCESS);
  stream.sync();
  recording.stop();
  REQUIRE(recording.count() == 5);
  const auto accesses = [&](std::size_t i) {
    return std::string(recording.operation(i).access_text);
  };
  CHECK(accesses(0) == a.with('r') + "1-4;" + b.with('w') + "1-4");
  CHECK(accesses(1) == a.with('w') + "0");
  CHECK(accesses(2) == a.with('w') + "0,4,8");
  CHECK(accesses(3) == a.with('r') + "0,8,16;" + b.with('w') + "0-2");
  CHECK(accesses(4) == b.with('r') + "0-1");
  CHECK(recording.after(1) == Set{0});
  CHECK(recording.after(3) == Set{2});
}

TEST_CASE("memory freed in order counts as written") {
  TestStream stream;
  CUdeviceptr address = 0;
  Recording recording;
  REQUIRE(cuMemAllocAsync(&address, 1024, stream) == CUDA_SUCCESS);
  launch_store(address, stream);
  REQUIRE(cuMemFreeAsync(address, stream) == CUDA_SUCCESS);
  stream.sync();
  recording.stop();
  REQUIRE(recording.count() == 2);
  const std::string store(recording.operation(0).access_text);
  const std::string name = store.substr(1, store.find(':'));
  CHECK(store == 'w' + name + '0');
  CHECK(std::string(recording.operation(1).access_text) == 'w' + name + "0-15");
}

TEST_CASE("events order streams by the record that was latest") {
  const Buffer words(256);
  TestStream a, b;
  TestEvent event;
  Recording recording;
  launch_store(words.at(0), a);                             // 0
  REQUIRE(cuStreamWaitEvent(b, event, 0) == CUDA_SUCCESS);  // 1: never recorded
  REQUIRE(cuEventRecord(event, a) == CUDA_SUCCESS);         // 2
  launch_store(words.at(0), a);                             // 3
  REQUIRE(cuStreamWaitEvent(b, event, 0) == CUDA_SUCCESS);  // 4
  REQUIRE(cuEventRecord(event, a) == CUDA_SUCCESS);         // 5
  launch_store(words.at(64), b);                            // 6
  a.sync();
  b.sync();
  recording.stop();
  REQUIRE(recording.count() == 7);
  CHECK(recording.after(0).empty());
  CHECK(recording.after(1).empty());
  CHECK(recording.after(2) == Set{0});
  CHECK(recording.after(3) == Set{2});
  CHECK(recording.after(4) == Set{1, 2});
  CHECK(recording.after(6) == Set{4});
  CHECK(recording.is_before(0, 6));
  CHECK_FALSE(recording.is_before(3, 6));
}

TEST_CASE("what has ended is ordered as well") {
  const Buffer words(256);
  TestStream a, b;
  TestEvent event;
  Recording recording;
  launch_store(words.at(0), a);                      // 0
  REQUIRE(cuEventRecord(event, a) == CUDA_SUCCESS);  // 1
  std::thread([&] {
    REQUIRE(cuCtxSetCurrent(Gpu::get().context) == CUDA_SUCCESS);
    a.sync();
  }).join();
  launch_store(words.at(0), a);                             // 2
  REQUIRE(cuStreamWaitEvent(b, event, 0) == CUDA_SUCCESS);  // 3
  b.sync();
  recording.stop();
  REQUIRE(recording.count() == 4);
  CHECK(recording.after(2) == Set{1});
  CHECK(recording.after(3) == Set{1});
}

TEST_CASE("the legacy stream joins with blocking streams, also with destroyed ones") {
  const Buffer words(512);
  TestStream blocking(CU_STREAM_DEFAULT), other(CU_STREAM_NON_BLOCKING);
  Recording recording;
  {
    TestStream brief(CU_STREAM_DEFAULT);
    launch_store(words.at(0), brief);  // 0
    std::thread([&] {
      REQUIRE(cuCtxSetCurrent(Gpu::get().context) == CUDA_SUCCESS);
      brief.sync();
    }).join();
  }
  launch_store(words.at(64), blocking);           // 1
  launch_store(words.at(128), other);             // 2
  launch_store(words.at(192), CU_STREAM_LEGACY);  // 3
  launch_store(words.at(192), CU_STREAM_LEGACY);  // 4
  launch_store(words.at(64), blocking);           // 5
  launch_store(words.at(128), other);             // 6
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  recording.stop();
  REQUIRE(recording.count() == 7);
  CHECK(recording.after(3) == Set{0, 1});
  CHECK(recording.after(4) == Set{1, 3});
  CHECK(recording.after(5) == Set{1, 4});
  CHECK(recording.after(6) == Set{2});
}

TEST_CASE("a graph's edges are recorded, with branches and through empty nodes") {
  const Buffer words(512);
  TestStream stream;
  TestGraph graph;
  const CUgraphNode root = graph.store(words.at(0), 1);
  const CUgraphNode left = graph.store(words.at(64), 1, {root});
  const CUgraphNode right = graph.store(words.at(128), 1, {root});
  graph.store(words.at(192), 1, {graph.empty({left, right})});
  TestExec exec(graph);
  Recording recording;
  launch_store(words.at(256), stream);  // 0
  exec.launch(stream);                  // 1 to 4
  launch_store(words.at(256), stream);  // 5
  exec.launch(stream);                  // 6 to 9
  stream.sync();
  recording.stop();
  REQUIRE(recording.count() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(recording.operation(i).sequence == i);
  CHECK(recording.after(1) == Set{0});
  CHECK(recording.after(2) == Set{1});
  CHECK(recording.after(3) == Set{1});
  CHECK(recording.after(5) == Set{4});
  CHECK(recording.after(6) == Set{4, 5});
  CHECK(recording.is_before(2, 4));
  CHECK(recording.is_before(3, 4));
  CHECK_FALSE(recording.is_before(2, 3));
  CHECK_FALSE(recording.is_before(3, 2));
}

TEST_CASE("a conditional node is one operation whose steps are recorded") {
  const Buffer words(256);
  TestStream stream;
  TestGraph graph;
  CUgraphConditionalHandle handle = 0;
  REQUIRE(cuGraphConditionalHandleCreate(&handle, graph, Gpu::get().context, 7,
                                         CU_GRAPH_COND_ASSIGN_DEFAULT) == CUDA_SUCCESS);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = Gpu::get().context;
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddNode(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  const CUgraph body = *params.conditional.phGraph_out;
  CUgraphNode last = nullptr;
  for (const std::size_t byte : {0, 128}) {
    WordArguments arguments(words.at(byte), 1);
    const auto kernel = kernel_params(Gpu::get().store, arguments.pointers);
    CUgraphNode added = nullptr;
    REQUIRE(cuGraphAddKernelNode_v2(&added, body, &last, last == nullptr ? 0 : 1, &kernel) ==
            CUDA_SUCCESS);
    last = added;
  }
  TestExec exec(graph);
  Recording recording;
  launch_store(words.at(64), stream);  // 0
  exec.launch(stream);                 // 1
  launch_store(words.at(64), stream);  // 2
  exec.launch(stream);                 // 3
  stream.sync();
  recording.stop();
  REQUIRE(recording.count() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(recording.operation(i).sequence == i);
  for (std::size_t i = 0; i < 3; ++i) CHECK(recording.is_before(i, i + 1));
  const Operation& first = recording.operation(1);
  const std::string text(first.text);
  CHECK(text.find("if condition ") == 0);
  REQUIRE(first.steps.size() == 3);
  CHECK(first.steps[0] == text + " value 7 runs body 0");
  CHECK(first.steps[1].find("kernel store") == 0);
  CHECK(first.steps[1] != first.steps[2]);
  CHECK(first.steps == recording.operation(3).steps);
  CHECK(std::string(first.access_text) == words.with('w') + "0,2");
  CHECK(recording.operation(2).steps.empty());
}

TEST_CASE("a chain graph has the identities of its launches") {
  const Buffer words(256);
  TestStream single, graphed;
  TestGraph graph;
  graph.store(words.at(64), 1, {graph.store(words.at(0), 1)});
  TestExec exec(graph);
  Recording recording;
  for (int i = 0; i < 2; ++i) {
    launch_store(words.at(0), single);
    launch_store(words.at(64), single);
  }
  exec.launch(graphed);
  exec.launch(graphed);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  recording.stop();
  REQUIRE(recording.count() == 8);
  for (std::size_t i = 0; i < 4; ++i) {
    const Operation &one = recording.operation(i), &other = recording.operation(4 + i);
    CHECK(one.text == other.text);
    CHECK(one.sequence == other.sequence);
    CHECK(one.access_text == other.access_text);
    if (i > 0) CHECK(recording.after(4 + i) == Set{4 + i - 1});
  }
}

TEST_CASE("waits and queries are recorded with their goals") {
  const Buffer words(256);
  TestStream a, b;
  TestEvent event;
  std::vector<char> host(16);
  Recording recording;
  launch_store(words.at(0), a);                      // 0
  REQUIRE(cuEventRecord(event, a) == CUDA_SUCCESS);  // 1
  launch_store(words.at(64), b);                     // 2
  while (cuEventQuery(event) != CUDA_SUCCESS) {
  }
  REQUIRE(cuEventSynchronize(event) == CUDA_SUCCESS);
  while (cuStreamQuery(b) != CUDA_SUCCESS) {
  }
  b.sync();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoH_v2(host.data(), words.at(0), 16) == CUDA_SUCCESS);  // 3
  recording.stop();

  std::vector<Wait> waits = recording.waits();
  // However often it had to ask.
  std::erase_if(waits, [](const Wait& wait) { return wait.is_query && !wait.is_over; });
  REQUIRE(waits.size() == 6);
  const char* entries[] = {"cuEventQuery",        "cuEventSynchronize", "cuStreamQuery",
                           "cuStreamSynchronize", "cuCtxSynchronize",   "cuMemcpyDtoH_v2"};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(waits[i].entry == entries[i]);
    CHECK(waits[i].is_over);
    CHECK(waits[i].thread == waits[0].thread);
  }
  CHECK(recording.goals(waits[0]) == Set{1});
  CHECK(recording.goals(waits[1]) == Set{1});
  CHECK(recording.goals(waits[2]) == Set{2});
  CHECK(recording.goals(waits[3]) == Set{2});
  CHECK(waits[4].contexts.size() == 1);
  CHECK(recording.goals(waits[5]) == Set{3});
  CHECK(recording.is_before(2, 3));
}
