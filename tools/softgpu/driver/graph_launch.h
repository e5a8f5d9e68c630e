// SPDX-License-Identifier: Apache-2.0
// Launching an executable graph into a stream. Driver lock held; may be dropped while work runs at
// once.
#pragma once

#include "tools/softgpu/driver/graph.h"

namespace softgpu {

struct Stream;

// After the stream's earlier work and the exec's earlier launches. Into a capturing stream: a child
// graph node.
CUresult launch(GraphExec& exec, Stream& stream);
// Ordered like a launch, but nothing runs.
CUresult upload(GraphExec& exec, Stream& stream);

}  // namespace softgpu
