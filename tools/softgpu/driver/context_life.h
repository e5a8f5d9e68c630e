// SPDX-License-Identifier: Apache-2.0
// Making and ending contexts, for the context entries. Driver lock held.
#pragma once

#include <vector>

#include "tools/softgpu/driver/context.h"

namespace softgpu {

// This thread's stack; the top is current. Entries may be dead.
std::vector<Context*>& context_stack();

// A live context that is not on any stack yet.
Context& create_context(CUdevice device, unsigned flags);
// As above: streams of its own in what else is `primary`.
Context& create_green_context(Context& primary, unsigned multiprocessors);
// Gives a new or reset context its fresh state.
void revive(Context& context);
// Ends its work, green contexts made from it included, and frees everything it owned. The object
// stays, dead.
void tear_down(Context& context);
// As tear_down; the handle dies too, and the context leaves the top of this thread's stack.
void destroy_context(Context& context);
// What cuDevicePrimaryCtxRetain and cuDevicePrimaryCtxRelease do.
void retain_primary(Context& context);
void release_primary(Context& context);

}  // namespace softgpu
