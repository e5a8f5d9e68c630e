// SPDX-License-Identifier: Apache-2.0
// What the device can be asked to do, as plain values: the same structs are queued on a stream and
// kept as graph nodes. Everything a caller's pointer reaches is copied in (kernel arguments, node
// parameters); memory operands are not.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "tools/softgpu/ptx/kernel_run.h"

namespace softgpu {

struct Array;      // driver/array.h
struct Condition;  // driver/conditional.h
struct Context;
struct Event;
struct FunctionObject;  // driver/module_objects.h: a CUfunction or CUkernel
struct Graph;           // driver/graph.h

struct KernelWork {
  std::shared_ptr<FunctionObject> function;
  ptx::Dim3 grid, block;
  unsigned shared_bytes = 0;
  std::vector<std::byte> parameters;          // packed by the kernel's layout
  std::vector<CUlaunchAttribute> attributes;  // as given to cuLaunchKernelEx or set on the node
  bool cooperative = false;
  ptx::Dim3 cluster{0, 0, 0};  // blocks; zeroes: no cluster asked for
};

// All copies, normalised: a 1D copy is width x 1 x 1.
struct CopyWork {
  CUDA_MEMCPY3D parameters{};
  Context* context = nullptr;
  // The source when a pageable host buffer was staged at the call, rows packed; null in graph
  // nodes.
  std::shared_ptr<const std::vector<std::byte>> staged;
  // The arrays that `parameters` names; null for a side in other memory.
  std::shared_ptr<const Array> source_array, destination_array;
};

struct MemsetWork {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  Context* context = nullptr;
};

struct HostWork {
  CUhostFn function = nullptr;
  void* user_data = nullptr;
};

// cuStreamAddCallback: as HostWork, but told the stream and its status.
struct CallbackWork {
  CUstreamCallback callback = nullptr;
  CUstream stream = nullptr;
  void* user_data = nullptr;
};

struct EventRecordWork {
  std::shared_ptr<Event> event;
};
struct EventWaitWork {
  std::shared_ptr<Event> event;
};
struct EmptyWork {};
struct ChildGraphWork {
  std::shared_ptr<Graph> graph;  // a snapshot owned by the node
};
struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<Graph>> bodies;  // owned by the node
  std::vector<CUgraph> handles;                // of the bodies: the array that clients were given
};
struct FreeAsyncWork {
  CUdeviceptr address = 0;
};
// cuStreamWriteValue / cuStreamWaitValue.
struct ValueWork {
  CUdeviceptr address = 0;
  cuuint64_t value = 0;
  bool is_64_bit = false;
  bool is_wait = false;
  unsigned flags = 0;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, MemsetWork, HostWork, CallbackWork,
                          EventRecordWork, EventWaitWork, ChildGraphWork, FreeAsyncWork, ValueWork,
                          ConditionalWork>;

}  // namespace softgpu
