// SPDX-License-Identifier: Apache-2.0
// The planner's frame: the start of a program, choosing slots, and which piece comes next.
#include "tests/fuzz/planner.h"

#include <algorithm>

namespace fuzz {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

}  // namespace

Planner::Planner(Random& random, Program& program)
    : random_(random),
      program_(program),
      model_(program.threads, program.polls_memory),
      plans_(at(program.threads)) {}

Step Planner::make(int thread, Kind kind, std::initializer_list<int> arguments) {
  Step step;
  step.kind = kind;
  step.thread = thread;
  std::copy(arguments.begin(), arguments.end(), step.at.begin());
  return step;
}

bool Planner::now(int thread, Kind kind, std::initializer_list<int> arguments) {
  Step step = make(thread, kind, arguments);
  step.number = static_cast<int>(program_.steps.size());
  if (!model_.apply(step)) return false;
  program_.steps.push_back(step);
  return true;
}

void Planner::later(int thread, Kind kind, std::initializer_list<int> arguments) {
  plans_[at(thread)].push_back(make(thread, kind, arguments));
}

void Planner::advance(int thread) {
  std::deque<Step>& plan_of_thread = plans_[at(thread)];
  if (plan_of_thread.empty()) plan(thread);
  if (plan_of_thread.empty()) return;
  Step step = plan_of_thread.front();
  plan_of_thread.pop_front();
  step.number = static_cast<int>(program_.steps.size());
  if (step.number < kMaxSteps && model_.apply(step)) program_.steps.push_back(step);
}

void Planner::open_context(int context, int how) {
  now(0, Kind::k_context_open, {context, how});
  now(0, Kind::k_context_set, {context});
  const int streams = random_.between(1, 2);
  for (int i = 0; i < streams; ++i) {
    const int slot = free_slot(model_.streams, 0);
    if (slot >= 0) now(0, Kind::k_stream_create, {slot, any_stream_flags(how), -random_.below(3)});
  }
  const int slot = free_slot(model_.events, 0);
  if (slot >= 0) now(0, Kind::k_event_create, {slot, 2 * random_.below(2)});
  const int buffers = random_.between(2, 4);
  for (int i = 0; i <= buffers; ++i) {
    const int memory = i < buffers ? kDeviceMemory : kPinnedMemory + random_.below(2);
    const int buffer = free_slot(model_.buffers, 0);
    if (buffer >= 0) now(0, Kind::k_alloc, {buffer, memory});
  }
}

int Planner::any_stream_flags(int how) {
  return how == 2 && random_.percent(40) ? 2 : random_.below(2);
}

void Planner::begin() {
  const int percent = random_.below(100);
  const int contexts = percent < 65 ? 1 : percent < 90 ? 2 : 3;
  for (int context = 0; context < contexts; ++context) {
    const int chance = random_.below(100);
    open_context(context, chance < 55 ? 0 : chance < 82 ? 1 : 2);
  }
  if (random_.percent(60)) now(0, Kind::k_alloc, {free_slot(model_.buffers, 0), kPageableMemory});
  for (int thread = 1; thread < program_.threads; ++thread) {
    const int token = next_token_++;
    now(0, Kind::k_signal, {token});
    now(thread, Kind::k_await, {token});
    now(thread, Kind::k_context_set, {random_.below(contexts)});
    if (random_.percent(25)) now(thread, Kind::k_thread_mode, {random_.between(1, 2)});
  }
}

// A capture that is left open would forbid what the end of the program does.
void Planner::end() {
  for (const CaptureModel& capture : std::vector<CaptureModel>(model_.captures)) {
    if (capture.is_active) now(capture.thread, Kind::k_capture_end, {capture.origin, kNoGraph});
  }
}

template <typename Slots>
int Planner::live_slot(const Slots& slots, int thread, int context) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(slots.size()); ++i) {
    if (slots[at(i)].context == context && model_.can_use(slots[at(i)], thread)) found.push_back(i);
  }
  return found.empty() ? -1 : random_.pick(found);
}

template <typename Slots>
int Planner::free_slot(const Slots& slots, int thread, int first) {
  std::vector<int> found;
  for (int i = first; i < static_cast<int>(slots.size()); ++i) {
    const auto& slot = slots[at(i)];
    if (!slot.is_alive && (slot.changed < 0 || model_.knows(thread, slot.changed)))
      found.push_back(i);
  }
  // The first one mostly, so that a slot (and a driver's handle) soon has another life.
  if (found.empty()) return -1;
  return random_.percent(60) ? found.front() : random_.pick(found);
}

template int Planner::live_slot(const std::vector<StreamModel>&, int, int);
template int Planner::live_slot(const std::vector<EventModel>&, int, int);
template int Planner::live_slot(const std::vector<GraphModel>&, int, int);
template int Planner::live_slot(const std::vector<ExecModel>&, int, int);
template int Planner::live_slot(const std::vector<ModuleModel>&, int, int);
template int Planner::free_slot(const std::vector<StreamModel>&, int, int);
template int Planner::free_slot(const std::vector<EventModel>&, int, int);
template int Planner::free_slot(const std::vector<BufferModel>&, int, int);
template int Planner::free_slot(const std::vector<GraphModel>&, int, int);
template int Planner::free_slot(const std::vector<ExecModel>&, int, int);
template int Planner::free_slot(const std::vector<ModuleModel>&, int, int);
template int Planner::free_slot(const std::vector<ContextModel>&, int, int);

bool Planner::some_capture_is_open() const {
  return std::any_of(model_.captures.begin(), model_.captures.end(),
                     [](const CaptureModel& capture) { return capture.is_active; });
}

bool Planner::is_idle_stream(int slot, int thread) const {
  return model_.can_use(model_.streams[at(slot)], thread) && model_.streams[at(slot)].capture < 0;
}

int Planner::any_stream(int thread, bool only_created) {
  std::vector<int> created;
  for (int i = 0; i < kStreams; ++i) {
    if (is_idle_stream(i, thread) && model_.streams[at(i)].context == model_.current(thread)) {
      created.push_back(i);
    }
  }
  if (!created.empty() && (only_created || some_capture_is_open() || random_.percent(70))) {
    return random_.pick(created);
  }
  if (only_created) return -1;
  const int percent = random_.below(100);
  return percent < 50   ? kNullStream
         : percent < 65 ? kLegacyStream
         : percent < 85 ? kPerThreadStream
                        : kPtszStream;
}

int Planner::any_event(int thread) {
  return live_slot(model_.events, thread, model_.current(thread));
}

int Planner::any_module(int thread) {
  return live_slot(model_.modules, thread, model_.current(thread));
}

int Planner::any_buffer(int thread, int stream, Mode mode, bool is_node) {
  StreamRef ref;
  if (!model_.resolve(thread, stream, &ref)) return -1;
  const Bits order = model_.before(thread, ref);
  std::vector<int> found;
  for (int i = 0; i < kBuffers; ++i) {
    const BufferModel& buffer = model_.buffers[at(i)];
    if (is_node && is_array(buffer.memory)) continue;
    const bool is_here = buffer.context == ref.context || (!is_node && buffer.context < 0);
    if (is_here && model_.can_access(order, i, mode)) found.push_back(i);
  }
  return found.empty() ? -1 : random_.pick(found);
}

int Planner::any_array(int thread, int stream, Mode mode) {
  StreamRef ref;
  if (!model_.resolve(thread, stream, &ref)) return -1;
  const Bits order = model_.before(thread, ref);
  std::vector<int> found;
  for (int i = 0; i < kBuffers; ++i) {
    const BufferModel& buffer = model_.buffers[at(i)];
    if (!is_array(buffer.memory) || buffer.context != ref.context) continue;
    if (model_.can_access(order, i, mode)) found.push_back(i);
  }
  return found.empty() ? -1 : random_.pick(found);
}

int Planner::any_host_buffer(int thread, int stream, bool with_pageable) {
  StreamRef ref;
  if (!model_.resolve(thread, stream, &ref)) return -1;
  const Bits order = model_.before(thread, ref);
  std::vector<int> found;
  for (int i = 0; i < kBuffers; ++i) {
    const BufferModel& buffer = model_.buffers[at(i)];
    if (buffer.memory == kDeviceMemory || is_array(buffer.memory)) continue;
    const bool is_here = buffer.context == ref.context || (with_pageable && buffer.context < 0);
    if (is_here && model_.can_access(order, i, Mode::kWrite)) found.push_back(i);
  }
  return found.empty() ? -1 : random_.pick(found);
}

void Planner::plan(int thread) {
  struct Piece {
    int weight;
    void (Planner::*plan)(int);
  };
  static constexpr Piece kPieces[] = {
      {34, &Planner::plan_loop},         {7, &Planner::plan_observation},
      {10, &Planner::plan_copy},         {5, &Planner::plan_memset},
      {6, &Planner::plan_array_copy},    {3, &Planner::plan_copy_batch},
      {4, &Planner::plan_host_function}, {4, &Planner::plan_value},
      {7, &Planner::plan_memory},        {5, &Planner::plan_pool},
      {2, &Planner::plan_place},         {6, &Planner::plan_stream_life},
      {8, &Planner::plan_event},         {8, &Planner::plan_thread_handover},
      {5, &Planner::plan_context},       {6, &Planner::plan_code},
      {8, &Planner::plan_capture},       {6, &Planner::plan_graph},
      {4, &Planner::plan_exec},          {5, &Planner::plan_error},
      {2, &Planner::plan_fault},         {2, &Planner::plan_spin},
      {4, &Planner::plan_context_end},
  };
  int total = 0;
  for (const Piece& piece : kPieces) total += piece.weight;
  int choice = random_.below(total);
  for (const Piece& piece : kPieces) {
    choice -= piece.weight;
    if (choice < 0) return (this->*piece.plan)(thread);
  }
}

}  // namespace fuzz
