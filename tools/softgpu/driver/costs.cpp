// SPDX-License-Identifier: Apache-2.0
// The cost profiles. "linux" is a current desktop or server CPU with the native driver, "wsl2" the
// same under Windows' subsystem. Entries without a row cost nothing extra.

#include "tools/softgpu/driver/costs.h"

#include <array>
#include <string_view>

#include "tools/softgpu/driver/options.h"

namespace softgpu {
namespace {

struct CostRow {
  std::string_view api;
  Cost linux_cost, wsl2_cost;
};

constexpr CostRow kCosts[] = {
    // Launch, Linux: 2.26 us (A100) and 2.37 us (H100), arXiv 2504.11750; 1.68 us mean on an RTX
    // 5080 box. WSL2: 6-13 us
    // as its users report, 2.6-2.8 us in the best case (ahrefs/ocannl#488); 8 us is a middle value.
    {"cuLaunchKernel", {2200, 0}, {8000, 0}},
    {"cuLaunchKernelEx", {2200, 0}, {8000, 0}},
    {"cuLaunchCooperativeKernel", {2600, 0}, {9000, 0}},
    // Graph launch, Linux: 1.0-1.3 us on an RTX 5080 and 4090 D, 2.5 us + 1 ns a node on an RTX
    // 3060 (NVIDIA's
    // "constant time launch" note). WSL2: 6 us + 0.3 us a node, an RTX 4090.
    {"cuGraphLaunch", {1500, 1}, {6000, 300}},
    // Patching: no public CUDA figure on Linux, 0.4 us is an assumption (HIP: 0.66 us,
    // ROCm/rocm-systems#11069); WSL2:
    // 0.2 us, an RTX 4090.
    {"cuGraphExecKernelNodeSetParams", {400, 0}, {200, 0}},
    {"cuGraphExecMemcpyNodeSetParams", {400, 0}, {200, 0}},
    {"cuGraphExecMemsetNodeSetParams", {400, 0}, {200, 0}},
    {"cuGraphExecHostNodeSetParams", {400, 0}, {200, 0}},
    {"cuGraphExecNodeSetParams", {400, 0}, {200, 0}},
    // Whole-graph update: 0.1 ms and instantiate: 8.4-13.7 ms for an LLM decode graph of the order
    // of 1000 nodes
    // (kekzl/imp#1895).
    {"cuGraphExecUpdate", {2000, 100}, {2000, 100}},
    {"cuGraphInstantiate", {20000, 8000}, {20000, 12000}},
    {"cuGraphInstantiateWithFlags", {20000, 8000}, {20000, 12000}},
    {"cuGraphInstantiateWithParams", {20000, 8000}, {20000, 12000}},
    {"cuGraphAddKernelNode", {500, 0}, {500, 0}},  // assumption
    // The rest are assumptions in proportion to a launch: each submits one command or asks for one
    // answer.
    {"cuMemcpyHtoDAsync", {2200, 0}, {8000, 0}},
    {"cuMemcpyDtoHAsync", {2200, 0}, {8000, 0}},
    {"cuMemcpyDtoDAsync", {2200, 0}, {8000, 0}},
    {"cuMemcpyAsync", {2200, 0}, {8000, 0}},
    {"cuMemcpyHtoD", {4000, 0}, {12000, 0}},
    {"cuMemcpyDtoH", {6000, 0}, {20000, 0}},
    {"cuMemsetD8Async", {2000, 0}, {7000, 0}},
    {"cuMemsetD32Async", {2000, 0}, {7000, 0}},
    {"cuLaunchHostFunc", {2500, 0}, {8000, 0}},
    {"cuEventRecord", {600, 0}, {3000, 0}},
    {"cuEventQuery", {200, 0}, {500, 0}},
    {"cuStreamWaitEvent", {500, 0}, {1000, 0}},
    {"cuStreamQuery", {300, 0}, {500, 0}},
    {"cuStreamSynchronize", {3000, 0}, {15000, 0}},
    {"cuCtxSynchronize", {3000, 0}, {15000, 0}},
    {"cuEventSynchronize", {2500, 0}, {14000, 0}},
};

std::array<Cost, kEntryCount> chosen_costs() {
  std::array<Cost, kEntryCount> costs{};
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    for (const CostRow& row : kCosts) {
      if (row.api != kEntryTable[i].api) continue;
      if (options().costs == CostProfile::kLinux) costs[i] = row.linux_cost;
      if (options().costs == CostProfile::kWsl2) costs[i] = row.wsl2_cost;
    }
  }
  return costs;
}

}  // namespace

Cost cost_of(EntryId id) {
  static const std::array<Cost, kEntryCount> costs = chosen_costs();
  return costs[static_cast<std::size_t>(id)];
}

}  // namespace softgpu
