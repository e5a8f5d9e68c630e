// SPDX-License-Identifier: Apache-2.0
// See conditional.h; and the entry that creates handles. The driver lock is held throughout.
#include "tools/softgpu/driver/conditional.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tools/softgpu/driver/context.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {
namespace {

// Handles are numbers far from any address, and never used again.
constexpr CUgraphConditionalHandle kFirstHandle = CUgraphConditionalHandle{1} << 62;
// More bodies than this are taken for a mistake.
constexpr unsigned kMostBodies = 1u << 16;

using ConditionPtr = std::shared_ptr<Condition>;
using Conditions = std::unordered_map<CUgraphConditionalHandle, std::weak_ptr<Condition>>;

// Leaked: calls may come while the process exits.
Conditions& conditions() {
  static Conditions& table = *new Conditions;
  return table;
}

// Null: not a live handle.
ConditionPtr find_condition(CUgraphConditionalHandle handle) {
  const auto found = conditions().find(handle);
  return found == conditions().end() ? nullptr : found->second.lock();
}

CUgraphConditionalHandle create_condition(Graph& graph, Context& context, unsigned value,
                                          bool assigns_default) {
  static std::uint64_t last = 0;
  std::erase_if(conditions(), [](const auto& entry) { return entry.second.expired(); });
  const auto condition = std::make_shared<Condition>();
  condition->ordinal = ++last;
  condition->graph_serial = graph.serial;
  condition->context = &context;
  condition->default_value = value;
  condition->assigns_default = assigns_default;
  const CUgraphConditionalHandle handle = kFirstHandle + condition->ordinal;
  conditions().emplace(handle, condition);
  graph.conditions.push_back(condition);
  return handle;
}

// The graph itself, or the one whose node's body it is, and so on.
bool is_inside(const Graph& graph, std::uint64_t outer_serial) {
  for (const Graph* at = &graph;; at = at->body_of->graph) {
    if (at->serial == outer_serial) return true;
    if (at->body_of == nullptr) return false;
  }
}

bool is_valid_size(CUgraphConditionalNodeType type, unsigned size) {
  switch (type) {
    case CU_GRAPH_COND_TYPE_IF:
      return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return size > 0;
  }
  return false;
}

bool is_on_device(CUmemorytype type, const void* host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_ARRAY) return true;
  const auto address = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  return find_allocation(address) != nullptr;
}

// A copy that the device can do alone: no operand in pageable host memory.
bool is_device_copy(const CUDA_MEMCPY3D& copy) {
  return is_on_device(copy.srcMemoryType, copy.srcHost, copy.srcDevice) &&
         is_on_device(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
}

const GraphNode* find_forbidden_in(const Graph& body, const Context& context);

// What the bodies of a conditional node of `context` may hold (cuda.h,
// CUDA_CONDITIONAL_NODE_PARAMS). Null, or the node at fault.
const GraphNode* find_forbidden_in(const GraphNode& node, const Context& context) {
  const auto unless = [&](bool is_allowed) { return is_allowed ? nullptr : &node; };
  if (std::holds_alternative<EmptyWork>(node.work)) return nullptr;
  if (const auto* kernel = std::get_if<KernelWork>(&node.work))
    return unless(&owner_of(*kernel->function->context) == &context);
  if (const auto* set = std::get_if<MemsetWork>(&node.work))
    return unless(set->context == &context);
  if (const auto* copy = std::get_if<CopyWork>(&node.work))
    return unless(copy->context == &context && is_device_copy(copy->parameters));
  const auto* conditional = std::get_if<ConditionalWork>(&node.work);
  if (conditional == nullptr && !std::holds_alternative<ChildGraphWork>(node.work)) return &node;
  if (conditional != nullptr && conditional->condition->context != &context) return &node;
  const GraphNode* found = nullptr;
  for_each_inner(node.work, [&](const Graph& inner) {
    if (found == nullptr) found = find_forbidden_in(inner, context);
  });
  return found;
}

const GraphNode* find_forbidden_in(const Graph& body, const Context& context) {
  for (const auto& node : body.nodes) {
    if (const GraphNode* found = find_forbidden_in(*node, context); found != nullptr) return found;
  }
  return nullptr;
}

void collect_conditions(const Graph& graph, std::vector<ConditionPtr>* found) {
  for (const auto& node : graph.nodes) {
    const auto* conditional = std::get_if<ConditionalWork>(&node->work);
    if (conditional == nullptr) continue;
    found->push_back(conditional->condition);
    for (const auto& body : conditional->bodies) collect_conditions(*body, found);
  }
}

}  // namespace

bool set_condition(CUgraphConditionalHandle handle, const Context& context, std::uint32_t value) {
  const ConditionPtr condition = find_condition(handle);
  if (condition == nullptr || condition->context != &context) return false;
  condition->value = value;
  return true;
}

ConditionalWork make_conditional(const Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS* params) {
  const ConditionPtr condition = find_condition(params->handle);
  if (condition == nullptr) {
    note_misuse(Misuse::kHandle);
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  const bool is_child = graph.embedded && graph.body_of == nullptr;
  if (is_child || condition->has_node || !is_inside(graph, condition->graph_serial))
    fail(CUDA_ERROR_INVALID_VALUE);
  if (!is_valid_size(params->type, params->size)) fail(CUDA_ERROR_INVALID_VALUE);
  if (&context_of(params->ctx) != condition->context) fail(CUDA_ERROR_INVALID_VALUE);
  if (params->size > kMostBodies) fail(CUDA_ERROR_OUT_OF_MEMORY);
  ConditionalWork work{condition, params->type, {}, {}};
  for (unsigned i = 0; i < params->size; ++i) {
    work.bodies.push_back(create_graph());
    work.bodies.back()->embedded = true;
    work.handles.push_back(work.bodies.back()->handle);
  }
  condition->has_node = true;
  params->phGraph_out = work.handles.data();  // stays where it is when the work is moved
  return work;
}

const GraphNode* find_forbidden_node(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    const auto* conditional = std::get_if<ConditionalWork>(&node->work);
    if (conditional == nullptr) continue;
    const Context& context = *conditional->condition->context;
    if (const GraphNode* found = find_forbidden_in(*node, context); found != nullptr) return found;
  }
  return nullptr;
}

bool has_unused_condition(const Graph& graph) {
  bool found = std::any_of(graph.conditions.begin(), graph.conditions.end(),
                           [](const ConditionPtr& condition) { return !condition->has_node; });
  for (const auto& node : graph.nodes) {
    if (!std::holds_alternative<ConditionalWork>(node->work)) continue;
    for_each_inner(node->work, [&](const Graph& body) { found |= has_unused_condition(body); });
  }
  return found;
}

std::vector<ConditionPtr> conditions_of(const Graph& snapshot) {
  std::vector<ConditionPtr> found;
  collect_conditions(snapshot, &found);
  return found;
}

std::string describe(const ConditionalWork& work) {
  static constexpr const char* kNames[] = {"if", "while", "switch"};
  return std::string(kNames[work.type]) + " condition " + std::to_string(work.condition->ordinal) +
         " bodies " + std::to_string(work.bodies.size());
}

}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out,
                                                           CUgraph hGraph, CUcontext ctx,
                                                           unsigned int defaultLaunchValue,
                                                           unsigned int flags) {
  return call(EntryId::cuGraphConditionalHandleCreate, [&]() -> CUresult {
    if (pHandle_out == nullptr || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    *pHandle_out = create_condition(graph_of(hGraph), context_of(ctx), defaultLaunchValue,
                                    (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0);
    return CUDA_SUCCESS;
  });
}
