// SPDX-License-Identifier: Apache-2.0
// Plans pieces of a program for each host thread, and appends to the program what the model
// accepts. Plans look at the model as it is when they are made; what has become illegal since is
// dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <random>
#include <vector>

#include "tests/fuzz/model.h"

namespace fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Own reductions: the standard distributions differ between libraries.
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool percent(int chance) { return below(100) < chance; }
  template <typename T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

class Planner {
 public:
  Planner(Random& random, Program& program);

  void begin();              // contexts, streams, events, memory; then all threads go
  void advance(int thread);  // one step further with the thread's plan
  void end();                // closes captures

 private:
  struct Launch {
    int how, module, kernel, stream, grid, block, shared, b0, b1, b2;
  };

  static Step make(int thread, Kind kind, std::initializer_list<int> arguments);
  bool now(int thread, Kind kind, std::initializer_list<int> arguments);
  void later(int thread, Kind kind, std::initializer_list<int> arguments);
  void open_context(int context, int how);
  int any_stream_flags(int how);  // of a context of that kind
  void plan(int thread);

  // Slots; -1 when there is none.
  int any_stream(int thread, bool only_created = false);
  int capturable_stream(int thread);  // kNullStream when there is none
  int any_event(int thread);
  int any_module(int thread);
  int any_buffer(int thread, int stream, Mode mode, bool is_node = true);
  int any_array(int thread, int stream, Mode mode);
  int any_host_buffer(int thread, int stream, bool with_pageable);
  template <typename Slots>
  int live_slot(const Slots& slots, int thread, int context);
  template <typename Slots>
  int free_slot(const Slots& slots, int thread, int first = 0);
  bool is_idle_stream(int slot, int thread) const;
  bool some_capture_is_open() const;

  bool choose_launch(int thread, int stream, Launch* launch);
  void choose_image(Launch* launch);
  void reshape(Launch* launch);
  int any_launch_how();
  void plan_launch(int thread, const Launch& launch, int key);
  int key() { return random_.below(1 << 20); }

  void plan_loop(int thread);
  void plan_cut(int thread, int stream);
  void plan_observation(int thread);
  void plan_copy(int thread);
  void plan_array(int thread, int stream);
  void plan_array_copy(int thread);
  void plan_copy_batch(int thread);
  void plan_memset(int thread);
  void plan_host_function(int thread);
  void plan_value(int thread);
  void plan_memory(int thread);
  void plan_pool(int thread);
  void plan_place(int thread);
  void plan_stream_life(int thread);
  void plan_event(int thread);
  void plan_context_event(int thread, int event, int from, int to);
  void plan_thread_handover(int thread);
  void plan_context(int thread);
  void plan_code(int thread);
  void plan_attribute(int thread, int module);
  void plan_capture(int thread);
  int plan_capture_target(int thread, int stream, int* graph);
  void plan_captured_work(int thread, int stream, int count);
  void plan_graph(int thread);
  bool plan_graph_nodes(int thread, int graph, int stream);
  int plan_graph_use(int thread, int graph, int stream, int nodes);  // the exec's slot
  void plan_twin(int thread, int stream, int graph, int exec, std::vector<Step> steps);
  void plan_exec(int thread);
  void plan_error(int thread);
  void plan_fault(int thread);
  void plan_spin(int thread);
  void plan_context_end(int thread);

  Random& random_;
  Program& program_;
  Model model_;
  std::vector<std::deque<Step>> plans_;
  int next_token_ = 0;
};

}  // namespace fuzz
