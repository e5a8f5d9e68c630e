// SPDX-License-Identifier: Apache-2.0
// What a running program holds: driver handles by slot, and one actor per host thread that runs its
// steps and writes down what it saw. Which thread may touch which slot when is the model's
// business; only the context of a slot is read across threads.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fuzz/program.h"

namespace fuzz {

inline constexpr int kNames =
    kKernelCount + 1;  // kernels of a module: the last one is for spinning

struct ContextSlot {
  CUcontext handle = nullptr;
  CUdevice device = 0;
  int how = 0;
  bool is_open = false, is_broken = false;
};

struct Slot {
  std::atomic<int> context{-1};
};

struct StreamSlot : Slot {
  CUstream handle = nullptr;
};

struct EventSlot : Slot {
  CUevent handle = nullptr;
};

struct BufferSlot : Slot {
  CUdeviceptr address = 0;    // 0: none
  CUarray array = nullptr;    // of a grid or a line, which have no address
  unsigned* words = nullptr;  // where the host finds it, or null
  int memory = kDeviceMemory;
  int value = 0;  // what a value_write stored last
};

// All of one buffer to another, at least one of them an array.
CUDA_MEMCPY3D whole_copy(const BufferSlot& to, const BufferSlot& from);

struct ModuleSlot : Slot {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernels[kNames] = {};      // of a library
  CUfunction functions[kNames] = {};  // what is launched; of a library one of the kernel's handles
};

struct GraphSlot : Slot {
  CUgraph handle = nullptr;
  std::vector<CUgraphNode> nodes;  // as built, null where a call failed
  std::vector<KernelId> kernels;
  std::vector<int> modules;
};

struct ExecSlot : Slot {
  CUgraphExec handle = nullptr;
  int graph = -1;
  bool may_launch = false;
};

struct HostCall {
  unsigned* words;
  unsigned value;
};

// Contexts that outlive programs, made on first use.
struct SharedContext {
  CUcontext handle = nullptr;
  ModuleSlot module;
};

class World {
 public:
  ContextSlot contexts[kContexts];
  StreamSlot streams[kStreams];
  EventSlot events[kEvents];
  BufferSlot buffers[kBuffers];
  ModuleSlot modules[kModules];
  GraphSlot graphs[kGraphs];
  ExecSlot execs[kExecs];

  void signal(int token);
  void await(int token);
  std::vector<unsigned>& new_host_memory();  // lives as long as the world
  void add_green(int context, CUgreenCtx green);
  std::vector<CUgreenCtx> take_greens(int context);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool tokens_[kTokens] = {};
  std::deque<std::vector<unsigned>> host_memory_;
  std::vector<CUgreenCtx> greens_[kContexts];  // made from each
};

class Arguments;

// One host thread.
class Actor {
 public:
  explicit Actor(World& world) : world_(world) {}
  void run(const Step& step);
  const std::string& log() const { return log_; }

  // After all threads: what is left in memory, then everything is destroyed.
  void finish();

 private:
  void saw(long long value) { log_ += ' ' + std::to_string(value); }
  void saw_hash(const unsigned* words);
  bool failed(CUresult result);  // notes the result

  void run_context(const Step& s);
  void run_stream(const Step& s);
  void create_stream(const Step& s);
  CUgreenCtx new_green_context(int context);
  void destroy_green_contexts(int context);
  void run_event(const Step& s);
  void run_value(const Step& s);
  CUresult submit_value(const Step& s, CUdeviceptr address, cuuint32_t value);
  CUresult submit_values(int stream, std::vector<CUstreamBatchMemOpParams> list);
  void record_event(const Step& s);
  void run_context_event(const Step& s);
  void run_place(const Step& s);
  void run_memory(const Step& s);
  void run_memset(const Step& s);
  void run_copy(const Step& s);
  void run_line_copy(const Step& s);
  void run_copy_batch(const Step& s);
  void read_array(const BufferSlot& slot, unsigned* words);
  void run_code(const Step& s);
  void run_launch(const Step& s);
  void launch_with_attributes(const Step& s, unsigned rows, Arguments& arguments);
  void launch_grid(const Step& s, int rows, Arguments& arguments);
  void run_host_function(const Step& s);
  void run_spin(const Step& s);
  void run_capture(const Step& s);
  void begin_capture(const Step& s);
  void end_capture(const Step& s);
  void run_capture_info(const Step& s);
  void run_graph(const Step& s);
  void run_graph_node(const Step& s);
  void run_exec(const Step& s);
  void run_exec_set_kernel(const Step& s);
  void run_fault(const Step& s);
  void run_bad_launch(const Step& s);
  void run_bad_handle(const Step& s);
  void run_bad_copy(const Step& s);

  void open_context(int context, int how);
  void close_context(int context);
  void forget_context(int context);
  // `first`: the kernel that is looked up first, so that handles come back as other kernels.
  void load_module(ModuleSlot& slot, int image, bool as_library, int first = 0);
  void unload_module(ModuleSlot& slot);
  void alloc(BufferSlot& slot, int memory);
  void free_buffer(BufferSlot& slot);
  void read_all(int context);
  void destroy_objects(int context);
  CUstream stream_of(int stream) const;
  // A step names three buffers, whatever its kernel uses: another thread may be changing the rest.
  __attribute__((no_sanitize("thread"))) CUdeviceptr address_of(int buffer) const {
    return world_.buffers[buffer].address;
  }
  CUfunction function_of(int module, int kernel) const {
    return world_.modules[module].functions[kernel];
  }
  HostCall* host_call(int buffer, int value);

  World& world_;
  std::vector<int> stack_;  // slots of this thread's contexts, the current one last
  std::string log_;
  std::deque<HostCall> host_calls_;
  int capture_into_ = kNoGraph;  // slot of the graph that this thread's capture goes to
};

// The arguments of a launch as the driver takes them, in memory that is overwritten afterwards.
class Arguments {
 public:
  Arguments(int kernel, CUdeviceptr b0, CUdeviceptr b1, CUdeviceptr b2, int key);
  void** parameters() { return parameters_; }
  void** extra() { return extra_; }
  void* bytes() { return bytes_; }
  unsigned size() const { return static_cast<unsigned>(size_); }
  void overwrite();

 private:
  template <typename T>
  void add(T value);

  alignas(16) unsigned char bytes_[192] = {};
  std::size_t size_ = 0;
  int count_ = 0;
  void* parameters_[10] = {};
  void* extra_[5] = {};
};

// Runs a program and prints what it observed.
void execute(const Program& program);

}  // namespace fuzz

// The entries that mean the per-thread default stream by 0; cuda.h declares them by other names.
extern "C" {
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void**, void**);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuMemcpy_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemcpyAtoH_v2_ptds(void*, CUarray, size_t, size_t);
CUresult cuMemcpyHtoA_v2_ptds(CUarray, size_t, const void*, size_t);
CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr, CUarray, size_t, size_t);
CUresult cuMemcpyDtoA_v2_ptds(CUarray, size_t, CUdeviceptr, size_t);
CUresult cuMemcpyAtoA_v2_ptds(CUarray, size_t, CUarray, size_t, size_t);
CUresult cuMemcpyAtoHAsync_v2_ptsz(void*, CUarray, size_t, size_t, CUstream);
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray, size_t, const void*, size_t, CUstream);
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr*, CUdeviceptr*, size_t*, size_t,
                                    CUmemcpyAttributes*, size_t*, size_t, CUstream);
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                                 size_t*, size_t, size_t*, CUstream);
// Of CUDA 12.8: cuda.h has a macro of that name.
CUresult older_batch(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*,
                     size_t, size_t*, CUstream) __asm__("cuMemcpyBatchAsync");
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH_v2_ptds(void*, CUdeviceptr, size_t);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void*, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void*, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyPeer_ptds(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D*);
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D*);
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D*, CUstream);
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D*);
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D*, CUstream);
CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER*);
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER*, CUstream);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr, unsigned, size_t);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuEventRecord_ptsz(CUevent, CUstream);
CUresult cuEventRecordWithFlags_ptsz(CUevent, CUstream, unsigned);
CUresult cuStreamWaitEvent_ptsz(CUstream, CUevent, unsigned);
CUresult cuStreamQuery_ptsz(CUstream);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream, CUgraph, const CUgraphNode*,
                                          const CUgraphEdgeData*, size_t, CUstreamCaptureMode);
CUresult cuStreamEndCapture_ptsz(CUstream, CUgraph*);
CUresult cuStreamIsCapturing_ptsz(CUstream, CUstreamCaptureStatus*);
CUresult cuStreamWriteValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult cuStreamWriteValue64_v2_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult cuStreamWaitValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult cuStreamWaitValue64_v2_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
CUresult cuLaunchHostFunc_ptsz(CUstream, CUhostFn, void*);
CUresult cuStreamAddCallback_ptsz(CUstream, CUstreamCallback, void*, unsigned);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr*, size_t, CUstream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**);
CUresult cuGraphUpload_ptsz(CUgraphExec, CUstream);
CUresult cuGraphLaunch_ptsz(CUgraphExec, CUstream);
}
