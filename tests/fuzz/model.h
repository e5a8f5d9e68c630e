// SPDX-License-Identifier: Apache-2.0
// What CUDA promises about the order of a program's steps, as happens-before sets. A step is
// accepted only when it is legal and touches memory without a race, so that what an accepted
// program observes does not depend on timing. Where the documentation leaves an order open, none is
// assumed. One object a program; no driver calls.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "tests/fuzz/program.h"

namespace fuzz {

// Two bits a step: its host call, and the device work it submitted.
using Bits = std::bitset<2 * kMaxSteps>;
inline std::size_t host_bit(int step) {
  return static_cast<std::size_t>(step) * 2;
}
inline std::size_t device_bit(int step) {
  return static_cast<std::size_t>(step) * 2 + 1;
}

enum class Mode : std::uint8_t { kRead, kWrite, kAdd };  // additions commute

struct Access {
  int buffer;
  Mode mode;
  int life = 0;  // of the slot, filled in by the model
};

// A slot that programs create, share between threads and destroy.
struct Object {
  bool is_alive = false;
  int life = 0;  // counts creations
  int context = -1;
  int changed = -1;  // step of the last exclusive call
  Bits uses;         // host calls since then
};

// What everything submitted to a context from some step on waits for.
struct ContextWait {
  int step;
  Bits order;
};

struct ContextModel : Object {
  int how = 0;
  bool is_broken = false;
  std::vector<ContextWait> waits;
};

struct StreamModel : Object {
  bool is_blocking = false;
  int uid = 0;
  int capture = -1;                // index into captures, or -1
  std::uint64_t capture_tail = 0;  // nodes that the next one depends on
};

struct EventModel : Object {
  enum State : std::uint8_t { kNew, kRecorded, kCaptured };
  State state = kNew;
  bool has_timing = true;
  Bits order;  // what a wait for it is behind
  int capture = -1;
  std::uint64_t capture_tail = 0;
};

struct BufferModel : Object {
  int memory = kDeviceMemory;
  bool is_pool = false;
  int last_write = -1;  // bit, or -1
  Bits reads, adds;     // since the last write
  Bits foreign;         // device work of other contexts
  int value_step = -1;  // value_write whose value word 0 holds, or -1
  int value = 0, value_bits = 32;
};

struct ModuleModel : Object {
  int image = kBaseImage;
  bool is_library = false;
  std::array<int, kKernelCount> shared_limit{};
};

struct NodeModel {
  enum Type : std::uint8_t { kKernel, kMemset, kCopy, kHost, kEmptyNode, kChild };
  Type type = kEmptyNode;
  std::uint64_t after = 0;   // direct
  std::uint64_t before = 0;  // all predecessors and itself
  std::vector<Access> accesses;
  int module = -1, module_life = 0, kernel = 0;
  int memory = 0;                   // of a copy: kinds of both ends
  std::vector<NodeModel> children;  // of an embedded graph
};

struct GraphModel : Object {
  std::vector<NodeModel> nodes;
  bool has_handles = false;  // built node by node, not captured or cloned
  bool is_spoiled = false;   // a capture into it failed: it can only be destroyed
};

struct ExecModel : Object {
  std::vector<NodeModel> nodes;
  int graph = -1, graph_life = 0;  // made from
  bool may_launch = true;
};

struct CaptureModel {
  int origin = -1, uid = 0, thread = 0, mode = 0, context = 0;
  int into = -1;          // a graph that is there already
  std::size_t first = 0;  // of its own nodes
  bool is_active = true, is_invalid = false;
  std::vector<NodeModel> nodes;
};

// A stream as a call names it.
struct StreamRef {
  enum Class : std::uint8_t { kLegacy, kBlocking, kNonBlocking };
  int uid = 0, context = -1;
  Class order = kLegacy;
  int slot = -1;  // of a created stream
  int own = -1;   // of a per-thread one, among own_streams_
};

class Model {
 public:
  explicit Model(int threads, bool polls_memory);

  // Takes the step over if it is legal here; its number must be larger than those before.
  bool apply(const Step& step);

  // For choosing steps that will be accepted.
  bool resolve(int thread, int stream, StreamRef* ref) const;
  Bits before(int thread, const StreamRef& ref) const;
  bool can_access(const Bits& order, int buffer, Mode mode) const;
  bool can_use(const Object& object, int thread) const;
  int current(int thread) const;
  bool is_capturing(int thread) const;
  bool knows(int thread, int step) const { return known(thread).test(host_bit(step)); }

  std::vector<ContextModel> contexts{kContexts};
  std::vector<StreamModel> streams{kStreams};
  std::vector<EventModel> events{kEvents};
  std::vector<BufferModel> buffers{kBuffers};
  std::vector<ModuleModel> modules{kModules};
  std::vector<GraphModel> graphs{kGraphs};
  std::vector<ExecModel> execs{kExecs};
  std::vector<CaptureModel> captures;

 private:
  struct DeviceWork {
    int step, uid, context;
    StreamRef::Class order;
    Bits all;  // itself and what is before it
  };

  bool apply_kind(const Step& s);
  bool respects_captures(const Step& s) const;
  bool is_capture_safe(const Step& s) const;
  bool is_left_to_relaxed(const Step& s) const;

  bool signal(const Step& s);
  bool await(const Step& s);
  bool context_open(const Step& s);
  bool context_close(const Step& s);
  bool context_set(const Step& s);
  bool context_push(const Step& s);
  bool context_pop(const Step& s);
  bool context_sync(const Step& s);
  bool primary_reset(const Step& s);
  bool fault(const Step& s);
  bool stream_create(const Step& s);
  bool stream_destroy(const Step& s);
  bool stream_sync(const Step& s);
  bool stream_attribute(const Step& s);
  bool stream_copy(const Step& s);
  bool event_create(const Step& s);
  bool event_destroy(const Step& s);
  bool event_record(const Step& s);
  bool event_wait(const Step& s);
  bool event_sync(const Step& s);
  bool event_elapsed(const Step& s);
  bool value_write(const Step& s);
  bool value_wait(const Step& s);
  bool value_batch(const Step& s);
  bool context_record(const Step& s);
  bool context_wait(const Step& s);
  bool alloc(const Step& s);
  bool free_memory(const Step& s);
  bool alloc_async(const Step& s);
  bool free_async(const Step& s);
  bool memset(const Step& s);
  bool copy(const Step& s);
  bool copy_batch(const Step& s);
  bool host_access(const Step& s, Mode mode);
  bool observe(const Step& s);
  bool prefetch(const Step& s);
  bool advise(const Step& s);
  bool module_load(const Step& s);
  bool module_unload(const Step& s);
  bool function_attribute(const Step& s);
  bool function_get(const Step& s);
  bool launch(const Step& s);
  bool host_function(const Step& s);
  bool spin(const Step& s);
  bool thread_mode(const Step& s);
  bool capture_begin(const Step& s);
  bool capture_end(const Step& s);
  bool capture_info(const Step& s);
  bool capture_break(const Step& s);
  bool graph_create(const Step& s);
  bool graph_node(const Step& s);
  bool graph_child(const Step& s);
  bool graph_clone(const Step& s);
  bool graph_destroy(const Step& s);
  bool exec_create(const Step& s);
  bool exec_update(const Step& s);
  bool exec_set_kernel(const Step& s);
  bool exec_launch(const Step& s);
  bool exec_upload(const Step& s);
  bool exec_destroy(const Step& s);
  bool bad_launch(const Step& s);
  bool bad_handle(const Step& s);
  bool bad_copy(const Step& s);

  Bits& known(int thread) { return known_[static_cast<std::size_t>(thread)]; }
  const Bits& known(int thread) const { return known_[static_cast<std::size_t>(thread)]; }
  void learn(int thread, const Bits& bits) { known(thread) |= bits; }

  bool can_create(const Object& object, int thread) const;
  bool can_change(const Object& object, int thread) const;
  void create(Object& object, const Step& s, int context);
  void change(Object& object, const Step& s);
  static void use(Object& object, const Step& s) { object.uses.set(host_bit(s.number)); }

  // Null for the legacy stream.
  StreamModel* model_of(const StreamRef& ref);
  const StreamModel* model_of(const StreamRef& ref) const;
  void use_stream(const StreamRef& ref, const Step& s);
  bool has_usable_context(int thread) const;
  bool is_usable(int context) const;
  // Work on a stream: into its capture, or onto the device. `extra` is order beyond the stream's.
  bool submit(const Step& s, int stream, NodeModel node, const Bits& extra = {});
  bool submit_node(const Step& s, const StreamRef& ref, NodeModel node);
  // The last work on a stream that `thread` has submitted, and all before it.
  Bits submitted(int thread, const StreamRef& ref) const;
  bool add_node(std::vector<NodeModel>& nodes, NodeModel node) const;
  bool accesses_are_ordered(const Bits& order, const std::vector<Access>& accesses) const;
  void touch(std::size_t bit, const std::vector<Access>& accesses, int context);
  bool fill_lives(std::vector<Access>& accesses) const;
  bool are_alive(const NodeModel& node) const;
  bool kernel_node(int thread, int module, int kernel, int grid, int block, int shared, int b0,
                   int b1, int b2, int context, NodeModel* node) const;
  bool is_node_memory(int buffer, int context) const;
  // The modules that nodes launch from: may this thread use them, and note that it does.
  bool can_use_modules(const std::vector<NodeModel>& nodes, int thread) const;
  void use_modules(const std::vector<NodeModel>& nodes, const Step& s);
  // A context with its first module and the streams of its threads.
  void start_context(const Step& s);
  void kill_context(int context);
  bool is_refused(const Step& launch) const;
  bool can_build_from(const GraphModel& graph, int thread) const;
  bool nobody_else_has(int context, int thread) const;
  bool all_work_is_known(int context, int thread) const;

  bool polls_memory_;
  std::vector<Bits> known_;
  std::vector<std::vector<int>> stacks_;  // of current contexts
  std::vector<StreamModel> own_streams_;  // by context, then by thread
  std::vector<int> thread_modes_;         // what cuThreadExchangeStreamCaptureMode left
  std::vector<DeviceWork> work_;
  std::vector<int> tokens_;  // step of the signal, or -1
  std::vector<Bits> token_bits_;
  std::vector<int> last_unsafe_;  // per thread: what a capture must not run beside
  Bits capture_ends_;
  int next_uid_ = 1000;
};

}  // namespace fuzz
