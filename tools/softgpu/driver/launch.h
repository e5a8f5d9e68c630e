// SPDX-License-Identifier: Apache-2.0
// Checks a kernel launch as the API call must and packs its arguments. Shared by the launch entries
// and by graph kernel nodes. With the driver lock held.
#pragma once

#include <memory>

#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/work.h"

namespace softgpu {

struct LaunchShape {
  ptx::Dim3 grid, block;
  unsigned shared_bytes = 0;
  bool cooperative = false;
  ptx::Dim3 cluster{0, 0, 0};
};

// Fills `work` (its buffers are reused) from a launch of `function`, a CUfunction or a CUkernel, in
// `context`. Exactly one of `params` and `extra` gives the arguments, which are copied now. On
// error `work` is unspecified.
CUresult make_kernel_work(CUfunction function, const LaunchShape& shape, void** params,
                          void** extra, Context& context, KernelWork* work);

// The checks of the shape alone: sizes against device and function.
CUresult check_shape(const FunctionObject& function, const LaunchShape& shape);

// Checks and keeps launch attributes on `work`; a cooperative attribute makes the launch
// cooperative. `is_node`: for a graph node, which cannot have the attributes that are for launches
// only.
CUresult set_launch_attributes(const CUlaunchAttribute* attributes, unsigned count, bool is_node,
                               KernelWork* work);

struct LaunchAttributes {
  const CUlaunchAttribute* values = nullptr;
  unsigned count = 0;
};

// What every launch entry does once it knows the stream.
CUresult launch(Stream& stream, CUfunction function, const LaunchShape& shape, void** params,
                void** extra, LaunchAttributes attributes);

// kernel_operation.cpp: the operation that runs a kernel.
std::shared_ptr<Operation> make_kernel_operation(const KernelWork& work, Context& context,
                                                 std::uint64_t stream_ordinal,
                                                 std::uint64_t sequence);

}  // namespace softgpu
