// SPDX-License-Identifier: Apache-2.0
// A scripted driver in the slots of runtime::real: no device, but streams, functions and graphs
// with CUDA's rules for what a call submits. Every launch, alone or inside a graph, becomes one
// entry of the log with the values it ran with.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/launch_attributes.h"

namespace fake {

struct Ran {
  CUstream stream;
  CUfunction function;
  unsigned grid_x;
  std::vector<unsigned char> arguments;
  bool in_graph;
  runtime::LaunchAttributes attributes{};

  bool operator==(const Ran& other) const {
    return stream == other.stream && function == other.function && grid_x == other.grid_x &&
           arguments == other.arguments &&
           runtime::launch_key(nullptr, attributes) ==
               runtime::launch_key(nullptr, other.attributes);
  }
};

struct Node {
  CUfunction function;
  unsigned grid_x;
  std::vector<unsigned char> arguments;
  runtime::LaunchAttributes attributes{};
};

// One at a time. Thread-safe.
class Driver {
 public:
  Driver();   // fills the slots
  ~Driver();  // empties them again

  // A function with parameters of these sizes, naturally aligned.
  CUfunction add_function(std::vector<std::size_t> parameter_sizes,
                          CUmodule module = default_module());
  static CUmodule default_module() { return reinterpret_cast<CUmodule>(0x77); }
  static CUcontext context(int index = 1) {
    return reinterpret_cast<CUcontext>(std::uintptr_t(index) << 8);
  }
  CUstream add_stream(unsigned flags, CUcontext owner = context());

  std::vector<Ran> log() const;
  int calls(const std::string& entry) const;

  // The n-th coming call of the entry (0 = the next) fails with this result; -1: every call.
  void fail(const std::string& entry, CUresult result, int nth = 0);
  // Entries this driver lacks.
  void remove(const std::string& entry) { missing_.push_back(entry); }

  // Used by the slots.
  CUresult enter(const char* entry);
  std::vector<std::size_t> layout(CUfunction function) const;  // offsets, then sizes
  std::vector<unsigned char> pack(CUfunction function, void** params, void** extra) const;
  void run(CUstream stream, const Node& node, bool in_graph);

  mutable std::mutex mutex;
  CUcontext current = context();
  struct Function {
    std::vector<std::size_t> offsets, sizes;
    CUmodule module;
  };
  std::map<CUfunction, Function> functions;
  struct Stream {
    unsigned flags;
    CUcontext owner;
  };
  std::map<CUstream, Stream> streams;
  std::map<CUgraph, std::vector<Node>> graphs;
  std::map<CUgraphExec, std::vector<Node>> execs;
  int max_dynamic_shared = 48 * 1024;
  int multiprocessors = 4;
  int active_blocks = 2;  // a multiprocessor
  int active_clusters = 1;
  bool has_clusters = true;
  // Of the calling thread; building graphs in another mode can invalidate a capture elsewhere.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

 private:
  struct Fault {
    CUresult result;
    int nth;
  };
  std::map<std::string, int> calls_;
  std::map<std::string, Fault> faults_;
  std::vector<std::string> missing_;
  std::vector<Ran> log_;
  std::uintptr_t next_handle_ = 0x10000;
};

}  // namespace fake
