// SPDX-License-Identifier: Apache-2.0
// told WAY LAUNCHES: launches a kernel so many times, some of which the driver refuses
// (CAJETA_SOFTGPU_FAIL), then goes on in some WAY, making every other call that fails once more, as
// programs do. Prints how often each error was seen, whatever call told it, and what ran.
#include <map>
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

std::map<int, int> g_seen;

CUresult see(CUresult result) {
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) ++g_seen[result];
  return result;
}

// A call that failed is made once more.
template <typename Call>
void try_twice(Call call) {
  if (see(call()) != CUDA_SUCCESS) see(call());
}

CUgraphExec own_graph(CUdeviceptr* cell, unsigned* by) {
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  CHECK(cuGraphCreate(&graph, 0));
  void* arguments[] = {cell, by};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = tiny::g_bump;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  CHECK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

void query(CUstream stream) {
  while (see(cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
  }
}

void wait_by_event(CUstream stream) {
  CUevent event;
  try_twice([&] { return cuEventCreate(&event, CU_EVENT_DEFAULT); });
  try_twice([&] { return cuEventRecord(event, stream); });
  while (see(cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
  }
  see(cuEventSynchronize(event));
}

}  // namespace

int main(int, char** arguments) {
  const std::string way = arguments[1];
  tiny::start();
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CUdeviceptr other;
  CHECK(cuMemAlloc(&other, 4));
  CHECK(cuMemsetD32(other, 0, 1));
  unsigned by = 1;
  CUgraphExec exec = own_graph(&other, &by);
  int failed_outright = 0;
  for (int i = std::atoi(arguments[2]); i > 0; --i) {
    void* parameters[] = {&tiny::g_cell, &by};
    see(cuLaunchKernel(tiny::g_bump, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  if (way == "query") query(stream);
  if (way == "event") wait_by_event(stream);
  if (way == "graph") try_twice([&] { return cuGraphLaunch(exec, stream); });
  if (way == "fail") {  // a cache of memory that asks for too much, and goes on with less
    CUdeviceptr big;
    failed_outright = cuMemAlloc(&big, std::size_t{1} << 45);
  }
  if (way == "copy") {
    try_twice([&] { return cuMemcpyDtoDAsync(other, tiny::g_cell, 4, stream); });
  }
  if (way == "destroy") try_twice([&] { return cuStreamDestroy(stream); });
  if (way == "context") {
    see(cuCtxSynchronize());
    see(cuCtxSynchronize());
  } else if (way != "destroy") {
    see(cuStreamSynchronize(stream));
    see(cuStreamSynchronize(stream));
  }
  unsigned ran[2] = {};
  see(cuMemcpyDtoH(&ran[0], tiny::g_cell, 4));
  see(cuMemcpyDtoH(&ran[1], other, 4));
  see(cuMemcpyDtoH(&ran[0], tiny::g_cell, 4));
  std::printf("ran %u, other %u, failed %d; seen", ran[0], ran[1], failed_outright);
  for (const auto& [error, count] : g_seen) std::printf(" %d x%d", error, count);
  std::printf("\n");
}
