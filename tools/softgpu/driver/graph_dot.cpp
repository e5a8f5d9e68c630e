// SPDX-License-Identifier: Apache-2.0
// cuGraphDebugDotPrint: a graph as a DOT file. Takes the driver lock, also while it writes.
#include <cstdio>
#include <string>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/graph.h"
#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {
namespace {

constexpr unsigned kAllFlags = (CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1;

bool wants(unsigned flags, unsigned flag) {
  return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
}

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), pattern, args...);
  return text;
}

const char* type_name(const Work& work) {
  switch (node_type(work)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "CONDITIONAL";
    default:
      return "OTHER";
  }
}

std::string describe(const KernelWork& kernel, unsigned flags) {
  std::string text = "\\n" + kernel.function->kernel->name;
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) {
    text +=
        format("\\ngrid {%u,%u,%u} block {%u,%u,%u} shared %u", kernel.grid.x, kernel.grid.y,
               kernel.grid.z, kernel.block.x, kernel.block.y, kernel.block.z, kernel.shared_bytes);
  }
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES)) {
    text += format("\\ncooperative %d", kernel.cooperative ? 1 : 0);
    for (const CUlaunchAttribute& attribute : kernel.attributes) {
      text += format("\\nattribute %d", static_cast<int>(attribute.id));
    }
  }
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) {
    text += format("\\nfunction %p", static_cast<void*>(kernel.function->handle));
  }
  return text;
}

const char* memory_name(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return "host";
    case CU_MEMORYTYPE_DEVICE:
      return "device";
    case CU_MEMORYTYPE_ARRAY:
      return "array";
    default:
      return "unified";
  }
}

std::string describe(const CUDA_MEMCPY3D& copy, unsigned flags) {
  std::string text =
      format("\\n%s to %s", memory_name(copy.srcMemoryType), memory_name(copy.dstMemoryType));
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) {
    text += format("\\nextent {%zu,%zu,%zu}", copy.WidthInBytes, copy.Height, copy.Depth);
  }
  return text;
}

std::string label(const GraphNode& node, unsigned flags) {
  std::string text = format("%u\\n%s", node.id, type_name(node.work));
  if (const auto* kernel = std::get_if<KernelWork>(&node.work)) text += describe(*kernel, flags);
  if (const auto* copy = std::get_if<CopyWork>(&node.work))
    text += describe(copy->parameters, flags);
  const auto* set = std::get_if<MemsetWork>(&node.work);
  if (set != nullptr && wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) {
    const CUDA_MEMSET_NODE_PARAMS& p = set->parameters;
    text +=
        format("\\nvalue %u size %u extent {%zu,%zu}", p.value, p.elementSize, p.width, p.height);
  }
  const auto* host = std::get_if<HostWork>(&node.work);
  if (host != nullptr && wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) {
    text += format("\\nargument %p", host->user_data);
  }
  const auto* conditional = std::get_if<ConditionalWork>(&node.work);
  if (conditional != nullptr && wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)) {
    text += "\\n" + describe(*conditional);
  }
  if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) {
    text += format("\\nnode %p", static_cast<void*>(node.handle));
  }
  return text;
}

void print(const Graph& graph, unsigned flags, std::string* out) {
  const auto serial = static_cast<unsigned long long>(graph.serial);
  *out += format("subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", serial, serial);
  for (const auto& node : graph.nodes) {
    *out += format("\"graph_%llu_node_%u\" [shape=box label=\"", serial, node->id) +
            label(*node, flags) + "\"]\n";
    for_each_inner(node->work, [&](const Graph& inner) { print(inner, flags, out); });
  }
  for (const auto& node : graph.nodes) {
    for (const GraphEdge& edge : node->dependents) {
      *out += format("\"graph_%llu_node_%u\" -> \"graph_%llu_node_%u\"%s\n", serial, node->id,
                     serial, edge.node->id, is_default(edge.data) ? "" : " [style=dashed]");
    }
  }
  *out += "}\n";
}

CUresult write_file(const char* path, const std::string& text) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = std::fclose(file) == 0;
  return is_written && is_closed ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

extern "C" CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph hGraph, const char* path,
                                                 unsigned int flags) {
  return call(EntryId::cuGraphDebugDotPrint, [&]() -> CUresult {
    if (path == nullptr || (flags & ~kAllFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    std::string text = "digraph dot {\n";
    print(graph_of(hGraph), flags, &text);
    text += "}\n";
    return write_file(path, text);
  });
}
