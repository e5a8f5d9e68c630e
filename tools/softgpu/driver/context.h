// SPDX-License-Identifier: Apache-2.0
// Contexts: the primary one of each device and those made by cuCtxCreate, the per-thread stacks,
// the sticky error. Context objects live until the process ends (operations point at them);
// `is_alive` says whether the handle is good. Driver lock held for everything here.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tools/softgpu/driver/state.h"

namespace softgpu {

struct Stream;

struct Context {
  CUcontext handle = nullptr;
  std::uint64_t ordinal = 0;  // creation order, 1 for the first
  std::uint64_t id = 0;       // cuCtxGetId; a reset primary context gets a new one
  CUdevice device = 0;
  unsigned flags = 0;
  bool is_primary = false;
  bool is_alive = false;
  unsigned retain_count = 0;             // primary: cuDevicePrimaryCtxRetain
  CUresult sticky_error = CUDA_SUCCESS;  // a kernel fault: every later call reports it
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;

  std::shared_ptr<Stream> legacy_stream;  // CU_STREAM_LEGACY
  std::map<std::uint64_t, std::shared_ptr<Stream>>
      per_thread;                                // by thread ordinal: CU_STREAM_PER_THREAD
  std::vector<std::shared_ptr<Stream>> streams;  // created, not destroyed; creation order
  std::uint64_t streams_created = 0;
  unsigned active_captures = 0;    // kept by driver/capture.cpp
  unsigned attach_count = 1;       // cuCtxAttach, cuCtxDetach
  std::set<const Context*> peers;  // cuCtxEnablePeerAccess
};

using ContextTable = ObjectTable<Context, CUcontext, HandleKind::kContext>;
ContextTable& contexts();

// Current context of this thread. Fails with INVALID_CONTEXT (none) or CONTEXT_IS_DESTROYED.
Context& current_context();
// As above, and fails with the sticky error: for calls that touch the device.
Context& usable_context();
// The context a handle names (null: current). Fails with INVALID_CONTEXT or CONTEXT_IS_DESTROYED.
Context& context_of(CUcontext handle);
// Fails with the sticky error or CONTEXT_IS_DESTROYED.
void require_usable(const Context& context);
// Null when this thread has none; may be destroyed.
Context* current_context_or_null();
// The primary context of a device, whether active or not. Fails with INVALID_DEVICE.
Context& primary_context(CUdevice device);

// A fault: sets the sticky error unless one is set already. CUDA_SUCCESS is ignored.
void set_sticky_error(Context& context, CUresult error);

// Small number of the calling thread, in order of first use.
std::uint64_t thread_ordinal();

}  // namespace softgpu
