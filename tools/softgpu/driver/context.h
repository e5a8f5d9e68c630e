// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one of each device, those made by cuCtxCreate and the green ones
// (green_context.h), the per-thread stacks, the sticky error. Context objects live until the
// process ends (operations point at them); `is_alive` says whether the handle is good. Driver lock
// held for everything here.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tools/softgpu/driver/state.h"

namespace softgpu {

class Operation;
struct Stream;

struct Context {
  CUcontext handle = nullptr;
  std::uint64_t ordinal = 0;  // creation order, 1 for the first
  std::uint64_t id = 0;       // cuCtxGetId; a reset primary context gets a new one
  CUdevice device = 0;
  unsigned flags = 0;
  bool is_primary = false;
  // Of a green context: the context whose memory, code, events and errors it uses. It has streams
  // of its own.
  Context* primary = nullptr;
  CUgreenCtx green_handle = nullptr;
  unsigned multiprocessors = 0;  // that a green context was given
  bool is_alive = false;
  unsigned retain_count = 0;             // primary: cuDevicePrimaryCtxRetain
  CUresult sticky_error = CUDA_SUCCESS;  // a kernel fault: every later call reports it; see below
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;

  std::shared_ptr<Stream> legacy_stream;  // CU_STREAM_LEGACY
  std::map<std::uint64_t, std::shared_ptr<Stream>>
      per_thread;                                // by thread ordinal: CU_STREAM_PER_THREAD
  std::vector<std::shared_ptr<Stream>> streams;  // created, not destroyed; creation order
  std::uint64_t streams_created = 0;
  // Work of destroyed non-blocking streams that a trace wants to know of.
  std::vector<std::shared_ptr<Operation>> retired;
  std::uint64_t sequence = 0;            // events recorded and waited for by the context itself
  std::shared_ptr<Operation> last_wait;  // cuCtxWaitEvent: all later work waits for it
  unsigned active_captures = 0;          // kept by driver/capture.cpp
  unsigned attach_count = 1;             // cuCtxAttach, cuCtxDetach
  std::set<const Context*> peers;        // cuCtxEnablePeerAccess
};

using ContextTable = ObjectTable<Context, CUcontext, HandleKind::kContext>;
ContextTable& contexts();

// Whose memory, code, events and errors a context uses: a green one's primary context, else its
// own.
inline Context& owner_of(Context& context) {
  return context.primary != nullptr ? *context.primary : context;
}
inline const Context& owner_of(const Context& context) {
  return context.primary != nullptr ? *context.primary : context;
}
// The streams of `inner` are among those of `outer`: it is the same, or a green one of it.
inline bool covers(const Context& outer, const Context& inner) {
  return &outer == &inner || &outer == inner.primary;
}

// The owner of the current context of this thread. Fails with INVALID_CONTEXT (none) or
// CONTEXT_IS_DESTROYED.
Context& current_context();
// The context itself: where streams matter.
Context& exact_current_context();
// As above, and fails with the sticky error: for calls that touch the device.
Context& usable_context();
// The owner of the context a handle names (null: current). Fails with INVALID_CONTEXT or
// CONTEXT_IS_DESTROYED.
Context& context_of(CUcontext handle);
Context& exact_context_of(CUcontext handle);
// Fails with the sticky error or CONTEXT_IS_DESTROYED.
void require_usable(const Context& context);
// Null when this thread has none; may be destroyed.
Context* current_context_or_null();
// The primary context of a device, whether active or not. Fails with INVALID_DEVICE.
Context& primary_context(CUdevice device);

// A fault: sets the sticky error of the owner unless one is set already. CUDA_SUCCESS is ignored.
void set_sticky_error(Context& context, CUresult error);
inline CUresult sticky_error(const Context& context) {
  return owner_of(context).sticky_error;
}

// Small number of the calling thread, in order of first use.
std::uint64_t thread_ordinal();

}  // namespace softgpu
