// SPDX-License-Identifier: Apache-2.0
// Green contexts: contexts that have streams of their own and use the memory, code, events and
// errors of a primary context. Driver lock held.
#pragma once

#include "tools/softgpu/driver/context.h"

namespace softgpu {

// Multiprocessors do not bind work here: a resource is a count that is handed on and checked.
struct ResourceDescriptor {
  CUdevice device = 0;
  unsigned multiprocessors = 0;
};

using GreenContextTable = ObjectTable<Context, CUgreenCtx, HandleKind::kGreenContext>;
GreenContextTable& green_contexts();
// Never emptied: CUDA has no call that frees a descriptor.
using DescriptorTable =
    ObjectTable<ResourceDescriptor, CUdevResourceDesc, HandleKind::kResourceDescriptor>;
DescriptorTable& resource_descriptors();

// Fails with INVALID_CONTEXT or CONTEXT_IS_DESTROYED.
Context& green_context_of(CUgreenCtx handle);

// cuCtxRecordEvent: after everything submitted to the context and to green ones made from it.
CUresult record_in_context(Context& context, CUevent event);
// cuCtxWaitEvent: later work of the context, and of green ones made from it, waits for the event.
CUresult wait_in_context(Context& context, CUevent event);

}  // namespace softgpu
