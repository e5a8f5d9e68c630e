// SPDX-License-Identifier: Apache-2.0
// The pieces of a program that concern captures and graphs: captured or built node by node,
// updated, embedded, launched between other launches.
#include "tests/fuzz/planner.h"

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

constexpr int kNoStream = kNullStream;  // which no capture begins in

}  // namespace

void Planner::plan_captured_work(int thread, int stream, int count) {
  for (int i = 0; i < count; ++i) {
    const int percent = random_.below(100);
    Launch launch;
    if (percent < 70 && choose_launch(thread, stream, &launch)) {
      plan_launch(thread, launch, key());
    } else if (percent < 78) {
      const int buffer = any_buffer(thread, stream, Mode::kWrite);
      if (buffer >= 0)
        later(thread, Kind::k_memset, {random_.below(kMemsetHowCount), 1, buffer, key(), stream});
    } else if (percent < 82) {
      plan_array(thread, stream);
    } else if (percent < 88) {
      const int to = any_buffer(thread, stream, Mode::kWrite),
                from = any_buffer(thread, stream, Mode::kRead);
      if (to >= 0 && from >= 0)
        later(thread, Kind::k_copy, {kGenericAsync, to, from, 0, kWords, stream});
    } else if (percent < 94) {
      const int buffer = any_host_buffer(thread, stream, false);
      if (buffer >= 0) later(thread, Kind::k_host_function, {0, stream, buffer, key()});
    } else {
      const int exec = live_slot(model_.execs, thread, model_.current(thread));
      if (exec >= 0) later(thread, Kind::k_exec_launch, {exec, stream});
    }
  }
}

int Planner::capturable_stream(int thread) {
  if (random_.percent(20)) return random_.percent(50) ? kPerThreadStream : kPtszStream;
  const int created = any_stream(thread, true);
  return created >= 0 ? created : kNoStream;
}

// A graph for a capture to go on with: one that is there, or a new one in the slot. Returns the
// nodes to begin behind.
int Planner::plan_capture_target(int thread, int stream, int* graph) {
  const int built = live_slot(model_.graphs, thread, model_.current(thread));
  if (built >= 0 && model_.graphs[at(built)].has_handles) {
    *graph = built;
    const auto nodes = static_cast<int>(model_.graphs[at(built)].nodes.size());
    if (nodes == 0) return 0;
    return random_.percent(70) ? 1 << (nodes - 1) : random_.below(1 << nodes);
  }
  later(thread, Kind::k_graph_create, {*graph});
  return plan_graph_nodes(thread, *graph, stream) ? random_.below(2) : 0;
}

void Planner::plan_capture(int thread) {
  const int stream = capturable_stream(thread);
  int graph = free_slot(model_.graphs, thread);
  if (stream == kNoStream) return plan_stream_life(thread);
  if (graph < 0) return plan_exec(thread);
  const int other = capturable_stream(thread);
  Launch beside;
  const bool has_beside = other != stream && choose_launch(thread, other, &beside);
  if (has_beside) plan_launch(thread, beside, key());
  const bool changes_mode = random_.percent(20);
  if (changes_mode) later(thread, Kind::k_thread_mode, {random_.percent(60) ? 2 : 1});
  const bool is_into = random_.percent(25);
  const int after = is_into ? plan_capture_target(thread, stream, &graph) : 0;
  const std::size_t first = plans_[at(thread)].size();
  const int mode = random_.below(3);
  if (is_into) {
    later(thread, Kind::k_capture_into, {stream, mode, graph, after});
  } else {
    later(thread, Kind::k_capture_begin, {stream, mode});
  }
  plan_captured_work(thread, stream, random_.between(1, 3));
  const int fork = any_event(thread), join = any_event(thread);
  const int percent = random_.below(100);
  if (percent < 30 && other != stream && fork >= 0 && join != fork) {
    later(thread, Kind::k_event_record, {fork, stream});
    later(thread, Kind::k_event_wait, {other, fork});
    plan_captured_work(thread, other, random_.between(1, 2));
    plan_captured_work(thread, stream, 1);
    later(thread, Kind::k_event_record, {join, other});
    if (random_.percent(90)) later(thread, Kind::k_event_wait, {stream, join});
  } else if (has_beside) {
    plan_launch(thread, beside, key());
    if (random_.percent(30)) later(thread, Kind::k_stream_sync, {other});
  }
  if (changes_mode && random_.percent(30)) {
    const int slot = free_slot(model_.streams, thread);
    if (slot >= 0) later(thread, Kind::k_stream_create, {slot, 1, 0});
  }
  if (percent >= 88 || (changes_mode && random_.percent(40))) {
    later(thread, Kind::k_capture_break, {stream, changes_mode ? 2 : random_.below(4)});
  }
  if (random_.percent(20)) later(thread, Kind::k_capture_info, {stream});
  plan_captured_work(thread, stream, 1);
  later(thread, Kind::k_capture_end, {stream, graph});
  if (changes_mode && random_.percent(80)) later(thread, Kind::k_thread_mode, {0});
  const std::vector<Step> steps(plans_[at(thread)].begin() + static_cast<std::ptrdiff_t>(first),
                                plans_[at(thread)].end());
  const int exec = plan_graph_use(thread, graph, stream, 0);
  if (!is_into && random_.percent(45)) plan_twin(thread, stream, graph, exec, steps);
}

// The same graph with other values, for an update of what was made from the first.
void Planner::plan_twin(int thread, int stream, int graph, int exec, std::vector<Step> steps) {
  int twin = free_slot(model_.graphs, thread);
  if (twin == graph) twin = (graph + 1) % kGraphs;
  if (twin < 0) return;
  for (Step& step : steps) {
    if (step.kind == Kind::k_capture_end) {
      step.at[1] = twin;
    } else if (step.kind == Kind::k_launch) {
      step.at[10] = key();
    } else if (step.kind >= Kind::k_graph_create && step.kind <= Kind::k_graph_child) {
      step.at[0] = twin;
      if (step.kind == Kind::k_graph_kernel) step.at[9] = key();
      if (step.kind == Kind::k_graph_memset) step.at[3] = key();
    }
    plans_[at(thread)].push_back(step);
  }
  later(thread, Kind::k_exec_update, {exec, twin});
  later(thread, Kind::k_exec_launch, {exec, stream});
  if (random_.percent(70))
    later(thread, Kind::k_graph_destroy, {random_.percent(50) ? twin : graph});
  later(thread, Kind::k_exec_launch, {exec, stream});
}

// Launches around those of the graph; updates between.
int Planner::plan_graph_use(int thread, int graph, int stream, int nodes) {
  int exec = free_slot(model_.execs, thread);
  if (exec < 0 || random_.percent(15)) {
    exec = random_.below(kExecs);
    later(thread, Kind::k_exec_update, {exec, graph});
  } else {
    later(thread, Kind::k_exec_create, {exec, graph});
  }
  Launch launch;
  const bool has_launch = choose_launch(thread, stream, &launch);
  const int rounds = random_.between(1, 4);
  for (int round = 0; round < rounds; ++round) {
    if (has_launch) {
      for (int i = random_.below(3); i > 0; --i) plan_launch(thread, launch, key());
    }
    if (nodes > 0 && random_.percent(50)) {
      const int b0 = any_buffer(thread, stream, Mode::kWrite);
      if (b0 >= 0)
        later(thread, Kind::k_exec_set_kernel, {exec, random_.below(nodes), b0, b0, b0, key()});
    }
    if (random_.percent(10)) later(thread, Kind::k_exec_upload, {exec, stream});
    later(thread, Kind::k_exec_launch, {exec, stream});
    if (has_launch && random_.percent(60)) plan_launch(thread, launch, key());
    if (random_.percent(60)) plan_cut(thread, stream);
  }
  if (random_.percent(25)) later(thread, Kind::k_graph_destroy, {graph});
  if (random_.percent(25)) later(thread, Kind::k_exec_destroy, {exec});
  return exec;
}

bool Planner::plan_graph_nodes(int thread, int graph, int stream) {
  const int count = random_.between(2, 5);
  for (int i = 0; i < count; ++i) {
    // A chain mostly; else branches, which the model refuses where they race.
    int after = i == 0 ? 0 : 1 << (i - 1);
    if (i > 1 && random_.percent(30)) after = random_.below(1 << i);
    const int percent = random_.below(100);
    Launch launch;
    const int buffer = any_buffer(thread, stream, Mode::kWrite);
    if (buffer < 0) return false;
    if (percent < 65 && choose_launch(thread, stream, &launch)) {
      later(thread, Kind::k_graph_kernel,
            {graph, after, launch.module, launch.kernel, launch.grid, launch.block, launch.b0,
             launch.b1, launch.b2, key()});
    } else if (percent < 75) {
      later(thread, Kind::k_graph_memset, {graph, after, buffer, key()});
    } else if (percent < 85) {
      const int from = any_buffer(thread, stream, Mode::kRead);
      const int array = any_array(thread, stream, Mode::kWrite);
      const bool is_to_array = array >= 0 && random_.percent(50);
      if (from >= 0) {
        later(thread, Kind::k_graph_copy, {graph, after, is_to_array ? array : buffer, from});
      }
    } else if (percent < 89) {
      const int host = any_host_buffer(thread, stream, false);
      if (host >= 0) later(thread, Kind::k_graph_host, {graph, after, host, key()});
    } else if (percent < 92) {
      later(thread, Kind::k_graph_empty, {graph, after});
    } else {
      const int child = live_slot(model_.graphs, thread, model_.current(thread));
      if (child >= 0) later(thread, Kind::k_graph_child, {graph, after, child});
    }
  }
  return true;
}

void Planner::plan_graph(int thread) {
  const int stream = any_stream(thread), graph = free_slot(model_.graphs, thread);
  if (graph < 0) return plan_exec(thread);
  const std::size_t first = plans_[at(thread)].size();
  later(thread, Kind::k_graph_create, {graph});
  if (!plan_graph_nodes(thread, graph, stream)) return;
  const std::vector<Step> steps(plans_[at(thread)].begin() + static_cast<std::ptrdiff_t>(first),
                                plans_[at(thread)].end());
  const int exec = plan_graph_use(thread, graph, stream, static_cast<int>(steps.size()) - 1);
  if (random_.percent(45)) plan_twin(thread, stream, graph, exec, steps);
}

void Planner::plan_exec(int thread) {
  const int context = model_.current(thread);
  const int graph = live_slot(model_.graphs, thread, context),
            exec = live_slot(model_.execs, thread, context);
  const int stream = any_stream(thread);
  const int percent = random_.below(100);
  if (graph >= 0 && percent < 25) {
    const int clone = free_slot(model_.graphs, thread);
    if (clone >= 0) later(thread, Kind::k_graph_clone, {clone, graph});
    return;
  }
  if (graph >= 0 && percent < 33) return later(thread, Kind::k_graph_destroy, {graph});
  if (exec < 0) {
    const int slot = free_slot(model_.execs, thread);
    if (graph < 0 || slot < 0) return plan_observation(thread);
    later(thread, Kind::k_exec_create, {slot, graph});
    return later(thread, Kind::k_exec_launch, {slot, stream});
  }
  if (percent < 42) return later(thread, Kind::k_exec_destroy, {exec});
  if (graph >= 0 && percent < 60) later(thread, Kind::k_exec_update, {exec, graph});
  Launch launch;
  if (choose_launch(thread, stream, &launch)) plan_launch(thread, launch, key());
  later(thread, Kind::k_exec_launch, {exec, stream});
  plan_cut(thread, stream);
}

}  // namespace fuzz
