// SPDX-License-Identifier: Apache-2.0
#include "graphs/graph_plan.h"

#include <bit>
#include <new>

#include "graphs/direct_launch.h"
#include "runtime/mutants.h"

namespace graphs {

using runtime::is_mutant;
using runtime::LaunchSlot;
using runtime::Mutant;
using runtime::real;

namespace {

// 64 KiB an exec: the launch machinery that does not grow with nodes; published figures lie between
// 40 KB and 7 MB (docs/performance.md); measured by tests/device.
constexpr std::size_t kExecFloorBytes = 64u << 10;
constexpr std::size_t kNodeBytes = 10u << 10;

// The node form of CUDA 12; its first fields are the older struct, which the first ABI takes.
CUDA_KERNEL_NODE_PARAMS_v2 node_params(CUfunction function, const LaunchSlot& slot,
                                       ArgumentPointers& arguments) noexcept {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  params.func = function;
  params.gridDimX = slot.shape.grid[0];
  params.gridDimY = slot.shape.grid[1];
  params.gridDimZ = slot.shape.grid[2];
  params.blockDimX = slot.shape.block[is_mutant(Mutant::kBlockNotCarried) ? 1 : 0];
  params.blockDimY = slot.shape.block[1];
  params.blockDimZ = slot.shape.block[2];
  params.sharedMemBytes = is_mutant(Mutant::kSharedNotCarried) ? 0 : slot.shape.shared_bytes;
  params.kernelParams = arguments.kernel_params();
  params.extra = arguments.extra();
  return params;
}

CUDA_KERNEL_NODE_PARAMS_v1 older(const CUDA_KERNEL_NODE_PARAMS_v2& params) noexcept {
  CUDA_KERNEL_NODE_PARAMS_v1 first{};
  first.func = params.func;
  first.gridDimX = params.gridDimX;
  first.gridDimY = params.gridDimY;
  first.gridDimZ = params.gridDimZ;
  first.blockDimX = params.blockDimX;
  first.blockDimY = params.blockDimY;
  first.blockDimZ = params.blockDimZ;
  first.sharedMemBytes = params.sharedMemBytes;
  first.kernelParams = params.kernelParams;
  first.extra = params.extra;
  return first;
}

CUresult add_node(GraphPlan& plan, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                  CUgraphNode* node) noexcept {
  const CUgraphNode* before = plan.nodes.empty() ? nullptr : &plan.nodes.back();
  std::size_t count = before == nullptr || is_mutant(Mutant::kNodesUnchained) ? 0 : 1;
  if (!plan.has_older_nodes) {
    CUresult result = real.cuGraphAddKernelNode_v2(node, plan.graph, before, count, &params);
    if (result != CUDA_ERROR_NOT_FOUND)
      return result;  // the answer of an absent entry, see driver.h
    plan.has_older_nodes = true;
  }
  CUDA_KERNEL_NODE_PARAMS_v1 first = older(params);
  return real.cuGraphAddKernelNode(node, plan.graph, before, count, &first);
}

CUresult set_node(GraphPlan& plan, std::uint32_t index,
                  const CUDA_KERNEL_NODE_PARAMS_v2& params) noexcept {
  if (!plan.has_older_nodes) {
    return real.cuGraphExecKernelNodeSetParams_v2(plan.exec, plan.nodes[index], &params);
  }
  CUDA_KERNEL_NODE_PARAMS_v1 first = older(params);
  return real.cuGraphExecKernelNodeSetParams(plan.exec, plan.nodes[index], &first);
}

CUresult instantiate(GraphPlan& plan) noexcept {
  CUresult result = real.cuGraphInstantiateWithFlags(&plan.exec, plan.graph, 0);
  if (result != CUDA_ERROR_NOT_FOUND) return result;
  return real.cuGraphInstantiate_v2(&plan.exec, plan.graph, nullptr, nullptr, 0);
}

// The CUfunction of the current context: a node takes no CUkernel that was cast to one.
CUfunction resolve(const LaunchSlot& slot) noexcept {
  if (!slot.info->is_kernel) return slot.function();
  CUfunction function = nullptr;
  CUresult result =
      real.cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(slot.function()));
  return result == CUDA_SUCCESS ? function : nullptr;
}

bool add_nodes(GraphPlan& plan, const Sequence& sequence) noexcept {
  for (std::uint32_t i = 0; i < sequence.count; ++i) {
    const LaunchSlot& slot = sequence.slots[i];
    CUfunction function = resolve(slot);
    ArgumentPointers arguments(sequence, slot);
    CUgraphNode node = nullptr;
    if (function == nullptr ||
        add_node(plan, node_params(function, slot, arguments), &node) != CUDA_SUCCESS ||
        runtime::set_node_attributes(node, slot.attributes) != CUDA_SUCCESS ||
        !plan.nodes.push_back(node) || !plan.functions.push_back(function)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::size_t estimate_bytes(std::uint32_t nodes) noexcept {
  return kExecFloorBytes + nodes * kNodeBytes;
}

GraphPlan* build_plan(const Sequence& sequence) noexcept {
  auto* plan = new (std::nothrow) GraphPlan;
  if (plan == nullptr) return nullptr;
  plan->bytes = estimate_bytes(sequence.count);
  if (real.cuGraphCreate(&plan->graph, 0) == CUDA_SUCCESS && add_nodes(*plan, sequence) &&
      instantiate(*plan) == CUDA_SUCCESS) {
    return plan;
  }
  destroy_plan(plan);
  return nullptr;
}

bool patch_plan(GraphPlan& plan, Sequence& sequence, std::uint64_t* patched) noexcept {
  for (std::size_t word = 0; word < sequence.dirty.size(); ++word) {
    std::uint64_t bits = sequence.dirty[word];
    for (; bits != 0; bits &= bits - 1) {
      if ((bits & (bits - 1)) == 0 && is_mutant(Mutant::kLastPatchMissed)) break;
      auto index = static_cast<std::uint32_t>(word * 64 + std::countr_zero(bits));
      const LaunchSlot& slot = sequence.slots[index];
      ArgumentPointers arguments(sequence, slot);
      if (set_node(plan, index, node_params(plan.functions[index], slot, arguments)) !=
          CUDA_SUCCESS) {
        return false;
      }
      ++*patched;
    }
    sequence.dirty[word] = 0;
  }
  return true;
}

CUresult launch_plan(GraphPlan& plan, CUstream stream) noexcept {
  return real.cuGraphLaunch(plan.exec, stream);
}

void destroy_plan(GraphPlan* plan) noexcept {
  if (plan == nullptr) return;
  if (plan->exec != nullptr) real.cuGraphExecDestroy(plan->exec);
  if (plan->graph != nullptr) real.cuGraphDestroy(plan->graph);
  delete plan;
}

}  // namespace graphs
