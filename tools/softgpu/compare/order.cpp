// SPDX-License-Identifier: Apache-2.0
// Computes clocks in one pass over the events of a trace.
#include "tools/softgpu/compare/order.h"

#include <algorithm>
#include <unordered_map>

namespace softgpu::compare {

namespace {

void join(Clock* into, const Clock& from) {
  if (into->size() < from.size()) into->resize(from.size());
  for (std::size_t chain = 0; chain < from.size(); ++chain) {
    (*into)[chain] = std::max((*into)[chain], from[chain]);
  }
}

}  // namespace

// A chain whose end comes before: preferably that of a direct predecessor.
std::uint32_t Order::choose_chain(const Clock& clock, const Operation& operation) const {
  for (const OperationIndex before : operation.after) {
    if (position_[before] == chains_[chain_[before]].size()) return chain_[before];
  }
  for (std::uint32_t chain = 0; chain < clock.size(); ++chain) {
    if (clock[chain] == chains_[chain].size()) return chain;
  }
  return static_cast<std::uint32_t>(chains_.size());
}

void Order::submit(OperationIndex index, const Operation& operation, const Clock& host) {
  Clock clock = host;
  for (const OperationIndex before : operation.after) join(&clock, clocks_[before]);
  const std::uint32_t chain = choose_chain(clock, operation);
  if (chain == chains_.size()) chains_.emplace_back();
  if (clock.size() <= chain) clock.resize(chain + 1);
  chains_[chain].push_back(index);
  chain_[index] = chain;
  position_[index] = clock[chain] = static_cast<std::uint32_t>(chains_[chain].size());
  clocks_[index] = std::move(clock);
}

Order::Order(const Trace& trace, Reading reading, const std::vector<bool>& void_queries)
    : clocks_(trace.operations.size()),
      seen_(trace.waits.size()),
      chain_(trace.operations.size()),
      position_(trace.operations.size()) {
  const bool is_own = reading == Reading::kOwn;
  // By thread; those that the reading does not tell apart are all under 0.
  std::unordered_map<std::uint64_t, Clock> known;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Clock>> submitted;
  const auto known_to = [&](std::uint64_t thread) -> Clock& {
    return known[reading == Reading::kLiberal ? 0 : thread];
  };
  const auto in_context = [&](std::uint64_t context, std::uint64_t thread) -> Clock& {
    return submitted[context][is_own ? thread : 0];
  };
  const auto add_goals = [&](Clock* clock, const Wait& wait) {
    for (const std::uint64_t context : wait.contexts) {
      join(clock, in_context(context, wait.thread));
    }
    for (const OperationIndex goal : wait.goals) {
      if (is_own && trace.operations[goal].thread != wait.thread) continue;
      join(clock, clocks_[goal]);
    }
  };
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::kSubmit) {
      const Operation& operation = trace.operations[event.index];
      submit(event.index, operation, known_to(operation.thread));
      join(&in_context(operation.context, operation.thread), clocks_[event.index]);
      continue;
    }
    const Wait& wait = trace.waits[event.index];
    Clock& seen = seen_[event.index];
    // The goals are those of the beginning: others may have been submitted while it waited.
    if (event.kind != Event::Kind::kEndWait) add_goals(&seen, wait);
    if (event.kind == Event::Kind::kBeginWait) continue;
    Clock& thread = known_to(wait.thread);
    const bool is_void = !void_queries.empty() && void_queries[event.index];
    if (wait.is_over && !is_void) join(&thread, seen);
    if (reading == Reading::kLiberal) join(&seen, thread);
  }
}

}  // namespace softgpu::compare
