// SPDX-License-Identifier: Apache-2.0
// Context life and the stack of each thread. The entries are in context_entries.cpp and
// primary_context.cpp.

#include "tools/softgpu/driver/context.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "tools/softgpu/driver/array.h"
#include "tools/softgpu/driver/context_life.h"
#include "tools/softgpu/driver/device.h"
#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/memory.h"
#include "tools/softgpu/driver/misuse.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

// Work that has not ended by then is cut off: the context is going away.
constexpr auto kTeardownPatience = std::chrono::seconds(5);

// Operations and stacks point at contexts, so none is ever freed.
std::vector<std::shared_ptr<Context>>& every_context() {
  static auto* const list = new std::vector<std::shared_ptr<Context>>();
  return *list;
}

std::uint64_t next_context_id() {
  static std::uint64_t last = 0;
  return ++last;
}

std::shared_ptr<Context> new_context(CUdevice device, unsigned flags) {
  auto context = std::make_shared<Context>();
  context->device = device;
  context->flags = flags;
  every_context().push_back(context);
  context->handle = contexts().add(context);
  return context;
}

void finish_work(Context& context) {
  const auto deadline = Engine::Clock::now() + kTeardownPatience;
  for (const auto& operation : Engine::get().pending(&context)) {
    // A bounded wait turns away early from what is blocked, such as a host function that runs.
    while (!operation->done && Engine::Clock::now() < deadline) {
      Engine::get().wait(operation, deadline);
    }
    if (!operation->done) set_sticky_error(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
}

}  // namespace

ContextTable& contexts() {
  static auto* const table = new ContextTable();
  return *table;
}

std::vector<Context*>& context_stack() {
  // Never destroyed: exit() runs the thread's destructors before its exit handlers, and those may
  // still call the driver. `all` keeps the stacks reachable for leak checkers; the driver lock
  // guards it.
  thread_local std::vector<Context*>* stack = nullptr;
  if (stack == nullptr) {
    static auto* const all = new std::vector<std::unique_ptr<std::vector<Context*>>>();
    stack = all->emplace_back(std::make_unique<std::vector<Context*>>()).get();
  }
  return *stack;
}

void revive(Context& context) {
  // Another one for every life: operations are named by it in the log and the trace.
  static std::uint64_t lives = 0;
  context.ordinal = ++lives;
  context.is_alive = true;
  context.id = next_context_id();
  context.sticky_error = CUDA_SUCCESS;
  context.limits = {};
  context.limits[CU_LIMIT_STACK_SIZE] = 1024;
  context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = std::size_t{1} << 20;
  context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = std::size_t{8} << 20;
  context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  make_legacy_stream(context);
}

Context& create_context(CUdevice device, unsigned flags) {
  const std::shared_ptr<Context> context = new_context(device, flags);
  revive(*context);
  return *context;
}

Context& create_green_context(Context& primary, unsigned multiprocessors) {
  Context& green = create_context(primary.device, primary.flags);
  green.primary = &primary;
  green.multiprocessors = multiprocessors;
  return green;
}

void tear_down(Context& context) {
  note_pending_work(context);
  for (const auto& green : contexts().all()) {
    if (green->primary == &context && green->is_alive) tear_down(*green);
  }
  context.is_alive = false;  // first: the lock is dropped while work ends
  finish_work(context);
  unload_context_modules(context);
  destroy_streams(context);
  destroy_events(context);
  release_all(context);
  forget_arrays(context);
  context.peers.clear();
  context.retired.clear();
  context.last_wait = nullptr;
}

void destroy_context(Context& context) {
  tear_down(context);
  contexts().remove(context.handle);
  std::vector<Context*>& stack = context_stack();
  if (!stack.empty() && stack.back() == &context) stack.pop_back();
}

Context& primary_context(CUdevice device) {
  require_device(device);
  static auto* const primaries = new std::map<CUdevice, std::shared_ptr<Context>>();
  std::shared_ptr<Context>& primary = (*primaries)[device];
  if (primary == nullptr) {
    primary = new_context(device, 0);
    primary->is_primary = true;
  }
  return *primary;
}

Context* current_context_or_null() {
  const std::vector<Context*>& stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

Context& exact_current_context() {
  Context* const context = current_context_or_null();
  if (context == nullptr) fail(CUDA_ERROR_INVALID_CONTEXT);
  if (!context->is_alive) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return *context;
}

Context& current_context() {
  return owner_of(exact_current_context());
}

void require_usable(const Context& context) {
  if (!context.is_alive) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(sticky_error(context));
}

Context& usable_context() {
  Context& context = current_context();
  check(context.sticky_error);
  return context;
}

Context& exact_context_of(CUcontext handle) {
  if (handle == nullptr) return exact_current_context();
  Context* const context = contexts().find(handle);
  if (context == nullptr) fail(CUDA_ERROR_INVALID_CONTEXT);
  if (!context->is_alive) fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return *context;
}

Context& context_of(CUcontext handle) {
  return owner_of(exact_context_of(handle));
}

void set_sticky_error(Context& context, CUresult error) {
  CUresult& kept = owner_of(context).sticky_error;
  if (kept == CUDA_SUCCESS) kept = error;
}

std::uint64_t thread_ordinal() {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t ordinal = ++last;
  return ordinal;
}

}  // namespace softgpu
