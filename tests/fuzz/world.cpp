// SPDX-License-Identifier: Apache-2.0
// Runs a program: its threads, contexts, streams, events and code.
#include "tests/fuzz/world.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

extern "C" const char kScenarioPtx[];
extern "C" const char kVariantPtx[];
extern "C" const char kClusterPtx[];

namespace fuzz {
namespace {

const char* const kNamesOfKernels[kNames] = {"affine",   "mix",   "wide",     "narrow",
                                             "by_value", "shape", "count_up", "publish",
                                             "empty",    "relay", "where",    "raise"};

const char* text_of(int image) {
  return image == kBaseImage ? kScenarioPtx : image == kVariantImage ? kVariantPtx : kClusterPtx;
}

SharedContext& shared_context(int slot) {
  static SharedContext shared[kContexts];
  return shared[slot];
}

// Two on the first device, one on the last.
CUdevice device_of(int slot) {
  int devices = 1;
  if (cuDeviceGetCount(&devices) != CUDA_SUCCESS) devices = 1;
  return slot == kContexts - 1 ? devices - 1 : 0;
}

CUdevice last_device() {
  return device_of(kContexts - 1);
}

void copy_module(ModuleSlot& to, const ModuleSlot& from) {
  to.module = from.module;
  to.library = from.library;
  for (int i = 0; i < kNames; ++i) {
    to.kernels[i] = from.kernels[i];
    to.functions[i] = from.functions[i];
  }
}

// A function of a library as programs get at it: the kernel itself, the function made of it, or
// that of the library's module. Null where a call failed.
CUfunction handle_of(const ModuleSlot& slot, int name, int way) {
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  if (way == 1) {
    cuKernelGetFunction(&function, slot.kernels[name]);
  } else if (way == 2) {
    if (cuLibraryGetModule(&module, slot.library) == CUDA_SUCCESS) {
      cuModuleGetFunction(&function, module, kNamesOfKernels[name]);
    }
  } else {
    function = reinterpret_cast<CUfunction>(slot.kernels[name]);
  }
  return function;
}

}  // namespace

void World::signal(int token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tokens_[token] = true;
  changed_.notify_all();
}

void World::await(int token) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return tokens_[token]; });
}

std::vector<unsigned>& World::new_host_memory() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return host_memory_.emplace_back(kWords);
}

void World::add_green(int context, CUgreenCtx green) {
  const std::lock_guard<std::mutex> lock(mutex_);
  greens_[context].push_back(green);
}

std::vector<CUgreenCtx> World::take_greens(int context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(greens_[context], {});
}

bool Actor::failed(CUresult result) {
  log_ += ' ' + std::to_string(static_cast<int>(result));
  return result != CUDA_SUCCESS;
}

void Actor::saw_hash(const unsigned* words) {
  std::uint64_t value = 0xcbf29ce484222325ULL;
  for (int i = 0; i < kWords; ++i) value = (value ^ words[i]) * 0x100000001b3ULL;
  char text[24];
  std::snprintf(text, sizeof text, " %016llx", static_cast<unsigned long long>(value));
  log_ += text;
}

CUstream Actor::stream_of(int stream) const {
  if (stream >= 0) return world_.streams[stream].handle;
  if (stream == kLegacyStream) return CU_STREAM_LEGACY;
  return stream == kPerThreadStream ? CU_STREAM_PER_THREAD : nullptr;
}

void Actor::load_module(ModuleSlot& slot, int image, bool as_library, int first) {
  const char* const text = text_of(image);
  for (CUfunction& function : slot.functions) function = nullptr;
  if (!as_library) {
    slot.library = nullptr;
    if (failed(cuModuleLoadData(&slot.module, text))) slot.module = nullptr;
    for (int turn = 0; slot.module != nullptr && turn < kNames; ++turn) {
      const int i = (first + turn) % kNames;
      if (!has_kernel(image, i)) continue;
      if (cuModuleGetFunction(&slot.functions[i], slot.module, kNamesOfKernels[i]) != CUDA_SUCCESS)
        saw(i);
    }
    return;
  }
  slot.module = nullptr;
  if (failed(cuLibraryLoadData(&slot.library, text, nullptr, nullptr, 0, nullptr, nullptr, 0))) {
    slot.library = nullptr;
  }
  for (int turn = 0; slot.library != nullptr && turn < kNames; ++turn) {
    const int i = (first + turn) % kNames;
    if (!has_kernel(image, i)) continue;
    slot.kernels[i] = nullptr;
    if (cuLibraryGetKernel(&slot.kernels[i], slot.library, kNamesOfKernels[i]) != CUDA_SUCCESS) {
      saw(i);
    }
    slot.functions[i] = handle_of(slot, i, (first + i) % 4);
    if (slot.functions[i] == nullptr) saw(i);
  }
}

void Actor::unload_module(ModuleSlot& slot) {
  if (slot.module != nullptr) failed(cuModuleUnload(slot.module));
  if (slot.library != nullptr) failed(cuLibraryUnload(slot.library));
  slot.module = nullptr;
  slot.library = nullptr;
  slot.context = -1;
}

// Leaves the thread's current context as it was.
void Actor::open_context(int context, int how) {
  ContextSlot& slot = world_.contexts[context];
  slot.how = how;
  slot.is_broken = false;
  ModuleSlot& module = world_.modules[context];
  SharedContext& shared = shared_context(context);
  slot.device = how == 2 ? last_device() : device_of(context);
  const bool is_ready = how == 0 && shared.handle != nullptr;
  if (is_ready) {
    slot.handle = shared.handle;
  } else if (how == 2) {
    if (failed(cuDevicePrimaryCtxRetain(&slot.handle, slot.device))) return;
    failed(cuCtxPushCurrent(slot.handle));
  } else if (failed(cuCtxCreate(&slot.handle, nullptr, 0, slot.device))) {
    return;
  }
  if (is_ready) {
    copy_module(module, shared.module);
  } else {
    CUcontext popped = nullptr;
    std::string before;
    before.swap(log_);
    load_module(module, kBaseImage, false);
    failed(cuCtxPopCurrent(&popped));
    // What the first program of a process has to do in addition is not part of what it observes.
    if (how == 0) log_.clear();
    log_.insert(0, before);
    if (how == 0) {
      shared.handle = slot.handle;
      copy_module(shared.module, module);
    }
  }
  module.context = context;
  slot.is_open = true;
}

// Handles of a context that is gone mean nothing any more.
void Actor::forget_context(int context) {
  const auto forget = [context](auto& slots, auto&& reset) {
    for (auto& slot : slots) {
      if (slot.context != context) continue;
      slot.context = -1;
      reset(slot);
    }
  };
  forget(world_.streams, [](StreamSlot& slot) { slot.handle = nullptr; });
  forget(world_.events, [](EventSlot& slot) { slot.handle = nullptr; });
  forget(world_.buffers, [](BufferSlot& slot) {
    slot.address = 0;
    slot.array = nullptr;
    slot.words = nullptr;
  });
  forget(world_.modules, [](ModuleSlot& slot) {
    slot.module = nullptr;
    if (slot.library != nullptr) cuLibraryUnload(slot.library);
    slot.library = nullptr;
  });
  // Graphs and their execs belong to no context: they stay until destroyed.
  forget(world_.graphs, [](GraphSlot& slot) {
    if (slot.handle != nullptr) cuGraphDestroy(slot.handle);
    slot.handle = nullptr;
  });
  forget(world_.execs, [](ExecSlot& slot) {
    if (slot.handle != nullptr) cuGraphExecDestroy(slot.handle);
    slot.handle = nullptr;
  });
}

void Actor::close_context(int context) {
  ContextSlot& slot = world_.contexts[context];
  if (!slot.is_open) return;
  destroy_green_contexts(context);
  if (slot.how == 1) failed(cuCtxDestroy(slot.handle));
  if (slot.how == 2) {
    CUcontext popped = nullptr;
    failed(cuCtxPopCurrent(&popped));
    failed(cuDevicePrimaryCtxRelease(slot.device));
  }
  forget_context(context);
  slot.is_open = false;
  if (!stack_.empty()) stack_.pop_back();
}

void Actor::run_context(const Step& s) {
  ContextSlot& slot = world_.contexts[s[0]];
  switch (s.kind) {
    case Kind::k_context_open:
      return open_context(s[0], s[1]);
    case Kind::k_context_close:
      return close_context(s[0]);
    case Kind::k_context_set:
      failed(cuCtxSetCurrent(slot.handle));
      if (!stack_.empty()) stack_.pop_back();
      stack_.push_back(s[0]);
      break;
    case Kind::k_context_push:
      failed(cuCtxPushCurrent(slot.handle));
      stack_.push_back(s[0]);
      break;
    case Kind::k_context_pop: {
      CUcontext popped = nullptr;
      failed(cuCtxPopCurrent(&popped));
      saw(popped == world_.contexts[stack_.back()].handle ? 1 : 0);
      stack_.pop_back();
      break;
    }
    case Kind::k_primary_reset:
      failed(cuDevicePrimaryCtxReset(slot.device));
      destroy_green_contexts(s[0]);
      failed(cuDevicePrimaryCtxRelease(slot.device));
      failed(cuDevicePrimaryCtxRetain(&slot.handle, slot.device));
      forget_context(s[0]);
      load_module(world_.modules[s[0]], kBaseImage, false);
      world_.modules[s[0]].context = s[0];
      break;
    default:
      failed(cuCtxSynchronize());
  }
}

void Actor::run_code(const Step& s) {
  ModuleSlot& slot = world_.modules[s[0]];
  if (s.kind == Kind::k_module_load) {
    load_module(slot, s[1], s[2] != 0, s.number);
    slot.context = stack_.back();
    return;
  }
  if (s.kind == Kind::k_module_unload) return unload_module(slot);
  const CUfunction function = function_of(s[0], s[1]);
  const CUkernel kernel = slot.kernels[s[1]];
  const CUdevice device = world_.contexts[stack_.back()].device;
  const bool is_same_handle = function == reinterpret_cast<CUfunction>(kernel);
  // Of a function with two handles, the one that is launched or the other.
  const bool is_kernel = slot.library != nullptr && (is_same_handle || s.number % 2 == 0);
  if (s.kind == Kind::k_function_get) {
    static constexpr CUfunction_attribute kAsked[] = {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES};
    int value = 0;
    failed(is_kernel ? cuKernelGetAttribute(&value, kAsked[s[2]], kernel, device)
                     : cuFuncGetAttribute(&value, kAsked[s[2]], function));
    saw(value);
    return;
  }
  if (s[2] == 2) {
    const auto config = static_cast<CUfunc_cache>(s[3] / 1024 % 4);
    failed(is_kernel ? cuKernelSetCacheConfig(kernel, config, device)
                     : cuFuncSetCacheConfig(function, config));
    return;
  }
  const CUfunction_attribute which = s[2] == 0 ? CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                                               : CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  const int value = s[2] == 0 ? s[3] : s[3] / 1024;
  failed(is_kernel ? cuKernelSetAttribute(which, value, kernel, device)
                   : cuFuncSetAttribute(function, which, value));
}

void Actor::run(const Step& s) {
  log_ += std::to_string(s.number) + ' ' + kKindInfo[static_cast<std::size_t>(s.kind)].name;
  switch (s.kind) {
    case Kind::k_signal:
      world_.signal(s[0]);
      break;
    case Kind::k_await:
      world_.await(s[0]);
      break;
    case Kind::k_context_open:
    case Kind::k_context_close:
    case Kind::k_context_set:
    case Kind::k_context_push:
    case Kind::k_context_pop:
    case Kind::k_primary_reset:
    case Kind::k_context_sync:
      run_context(s);
      break;
    case Kind::k_fault:
      run_fault(s);
      break;
    case Kind::k_stream_create:
    case Kind::k_stream_destroy:
    case Kind::k_stream_sync:
    case Kind::k_stream_query:
    case Kind::k_stream_attribute:
    case Kind::k_stream_copy:
      run_stream(s);
      break;
    case Kind::k_event_create:
    case Kind::k_event_destroy:
    case Kind::k_event_record:
    case Kind::k_event_wait:
    case Kind::k_event_sync:
    case Kind::k_event_query:
    case Kind::k_event_elapsed:
      run_event(s);
      break;
    case Kind::k_context_record:
    case Kind::k_context_wait:
      run_context_event(s);
      break;
    case Kind::k_value_write:
    case Kind::k_value_wait:
    case Kind::k_value_batch:
      run_value(s);
      break;
    case Kind::k_alloc:
    case Kind::k_free:
    case Kind::k_alloc_async:
    case Kind::k_free_async:
    case Kind::k_host_write:
    case Kind::k_host_read:
    case Kind::k_observe:
    case Kind::k_memory_info:
      run_memory(s);
      break;
    case Kind::k_prefetch:
    case Kind::k_advise:
      run_place(s);
      break;
    case Kind::k_memset:
      run_memset(s);
      break;
    case Kind::k_copy:
      run_copy(s);
      break;
    case Kind::k_copy_batch:
      run_copy_batch(s);
      break;
    case Kind::k_module_load:
    case Kind::k_module_unload:
    case Kind::k_function_attribute:
    case Kind::k_function_get:
      run_code(s);
      break;
    case Kind::k_launch:
      run_launch(s);
      break;
    case Kind::k_host_function:
      run_host_function(s);
      break;
    case Kind::k_spin:
      run_spin(s);
      break;
    case Kind::k_thread_mode:
    case Kind::k_capture_begin:
    case Kind::k_capture_into:
    case Kind::k_capture_end:
    case Kind::k_capture_info:
    case Kind::k_capture_break:
      run_capture(s);
      break;
    case Kind::k_graph_create:
    case Kind::k_graph_clone:
    case Kind::k_graph_destroy:
      run_graph(s);
      break;
    case Kind::k_graph_kernel:
    case Kind::k_graph_memset:
    case Kind::k_graph_copy:
    case Kind::k_graph_host:
    case Kind::k_graph_empty:
    case Kind::k_graph_child:
      run_graph_node(s);
      break;
    case Kind::k_exec_set_kernel:
      run_exec_set_kernel(s);
      break;
    case Kind::k_exec_create:
    case Kind::k_exec_update:
    case Kind::k_exec_launch:
    case Kind::k_exec_upload:
    case Kind::k_exec_destroy:
      run_exec(s);
      break;
    case Kind::k_bad_launch:
      run_bad_launch(s);
      break;
    case Kind::k_bad_handle:
      run_bad_handle(s);
      break;
    case Kind::k_bad_copy:
      run_bad_copy(s);
      break;
  }
  log_ += '\n';
}

void Actor::destroy_objects(int context) {
  for (ExecSlot& slot : world_.execs) {
    if (slot.context == context && slot.handle != nullptr) failed(cuGraphExecDestroy(slot.handle));
  }
  for (GraphSlot& slot : world_.graphs) {
    if (slot.context == context && slot.handle != nullptr) failed(cuGraphDestroy(slot.handle));
  }
  for (EventSlot& slot : world_.events) {
    if (slot.context == context) failed(cuEventDestroy(slot.handle));
  }
  for (StreamSlot& slot : world_.streams) {
    if (slot.context == context) failed(cuStreamDestroy(slot.handle));
  }
  for (int i = kContexts; i < kModules; ++i) {
    if (world_.modules[i].context == context) unload_module(world_.modules[i]);
  }
  for (BufferSlot& slot : world_.buffers) {
    if (slot.context == context) free_buffer(slot);
  }
}

// Prints what is left in the memory of a context.
void Actor::read_all(int context) {
  for (BufferSlot& buffer : world_.buffers) {
    if (buffer.context != context || (buffer.address == 0 && buffer.array == nullptr)) continue;
    unsigned words[kWords] = {};
    if (buffer.array != nullptr) {
      read_array(buffer, words);
      saw_hash(words);
      continue;
    }
    if (buffer.words == nullptr) failed(cuMemcpyDtoH(words, buffer.address, sizeof words));
    saw_hash(buffer.words == nullptr ? words : buffer.words);
  }
}

void Actor::finish() {
  CUcontext popped = nullptr;
  while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS) {
  }
  stack_.clear();
  // The next program of the process starts with the mode that every thread has at first.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  failed(cuThreadExchangeStreamCaptureMode(&mode));
  // All work first: that of one context may touch memory of another.
  for (const bool only_waits : {true, false}) {
    for (int context = 0; context < kContexts; ++context) {
      ContextSlot& slot = world_.contexts[context];
      if (!slot.is_open || (only_waits && slot.is_broken)) continue;
      log_ += "end " + std::to_string(context);
      failed(cuCtxPushCurrent(slot.handle));
      stack_.assign(1, context);
      if (only_waits) {
        failed(cuCtxSynchronize());
      } else if (!slot.is_broken) {
        read_all(context);
        destroy_objects(context);
      }
      if (only_waits || slot.how == 0) {
        failed(cuCtxPopCurrent(&popped));
      } else {
        close_context(context);
      }
      log_ += '\n';
    }
  }
  for (const BufferSlot& buffer : world_.buffers) {
    if (buffer.memory == kPageableMemory && buffer.words != nullptr) saw_hash(buffer.words);
  }
  log_ += '\n';
}

void execute(const Program& program) {
  World world;
  std::vector<std::unique_ptr<Actor>> actors;
  std::vector<std::thread> threads;
  for (int i = 0; i < program.threads; ++i) actors.push_back(std::make_unique<Actor>(world));
  const auto run = [&](int thread) {
    for (const Step& step : program.steps) {
      if (step.thread == thread) actors[static_cast<std::size_t>(thread)]->run(step);
    }
  };
  for (int i = 1; i < program.threads; ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  actors[0]->finish();
  for (int i = program.threads - 1; i >= 0; --i) {
    std::printf("thread %d\n%s", i, actors[static_cast<std::size_t>(i)]->log().c_str());
  }
}

}  // namespace fuzz
