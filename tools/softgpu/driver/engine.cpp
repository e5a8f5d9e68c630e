// SPDX-License-Identifier: Apache-2.0
// Pending operations: becoming ready, running a piece, completing; and how streams order their
// work. The policies are in engine_policies.cpp. Driver lock held; run_piece drops it around
// step().

#include "tools/softgpu/driver/engine.h"

#include <algorithm>
#include <unordered_set>

#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/log.h"
#include "tools/softgpu/driver/stream.h"

namespace softgpu {
namespace {

// An operation that runs out of memory of ours fails like a kernel.
CUresult step_safely(Operation& operation, bool* is_finished) {
  try {
    *is_finished = operation.step();
    return CUDA_SUCCESS;
  } catch (...) {
    *is_finished = true;
    return result_of_exception();
  }
}

}  // namespace

Engine& Engine::get() {
  static Engine* const engine = new Engine();
  return *engine;
}

Engine::Engine() : order_(options().order), random_(options().seed) {}

void Engine::add(const OperationPtr& operation) {
  operation->enqueued_ = next_++;
  operation->state_ = Operation::State::kWaiting;
  if (operation->trace != nullptr) trace_submitted(*operation);
  std::erase_if(operation->dependencies, [](const OperationPtr& d) { return d->done; });
  operation->unmet_ = operation->dependencies.size();
  for (const OperationPtr& dependency : operation->dependencies) {
    dependency->dependents_.push_back(operation);
  }
  pending_.emplace_hint(pending_.end(), operation->enqueued_, operation);
  if (operation->unmet_ == 0) make_ready(operation);
}

void Engine::make_ready(const OperationPtr& operation) {
  operation->state_ = Operation::State::kReady;
  ready_.push_back(operation);
}

Engine::Piece Engine::run_piece(const OperationPtr& operation) {
  std::erase(ready_, operation);
  operation->state_ = Operation::State::kRunning;
  bool is_finished = true;
  if (operation->is_skipped_on_error() && operation->context != nullptr &&
      sticky_error(*operation->context) != CUDA_SUCCESS) {
    operation->was_skipped = true;
  } else {
    driver_mutex().unlock();
    const CUresult thrown = step_safely(*operation, &is_finished);
    driver_mutex().lock();
    if (thrown != CUDA_SUCCESS && operation->context != nullptr) {
      operation->was_skipped = true;
      set_sticky_error(*operation->context, thrown);
    }
  }
  if (is_finished) {
    complete(operation);
    return Piece::kFinished;
  }
  const bool is_blocked = operation->is_blocked();
  make_ready(operation);
  changed_.notify_all();
  return is_blocked ? Piece::kBlocked : Piece::kProgressed;
}

void Engine::complete(const OperationPtr& operation) {
  operation->finish();
  if (operation->trace != nullptr) trace_done(*operation);
  operation->done = true;
  operation->state_ = Operation::State::kDone;
  operation->dependencies.clear();
  for (const OperationPtr& dependent : operation->dependents_) {
    if (--dependent->unmet_ == 0) make_ready(dependent);
  }
  operation->dependents_.clear();
  pending_.erase(operation->enqueued_);
  changed_.notify_all();
}

std::vector<Engine::OperationPtr> Engine::pending(const Context* context) const {
  std::vector<OperationPtr> found;
  for (const auto& [order, operation] : pending_) {
    if (context == nullptr || covers(*context, *operation->context)) found.push_back(operation);
  }
  return found;
}

namespace {

// A launch into a full queue blocks the host until the oldest is done, as in NVIDIA's driver (about
// 1024 launches a stream). May drop the lock.
void await_room(Stream& stream) {
  const std::size_t depth = options().queue_depth;
  if (depth == 0) return;
  for (;;) {
    while (!stream.launches.empty() && stream.launches.front()->done) stream.launches.pop_front();
    if (stream.launches.size() < depth) return;
    Engine::get().wait(std::shared_ptr<Operation>(stream.launches.front()));
  }
}

void count_launch(Stream& stream, const std::shared_ptr<Operation>& operation) {
  if (options().queue_depth != 0) stream.launches.push_back(operation);
}

}  // namespace

std::shared_ptr<Operation> enqueue(Stream& stream, const Work& work) {
  const bool is_kernel = std::holds_alternative<KernelWork>(work);
  if (is_kernel) await_room(stream);
  std::shared_ptr<Operation> operation =
      make_operation(work, *stream.context, stream.ordinal, stream.sequence++);
  operation->context = stream.context;
  for (auto& dependency : stream_dependencies(stream)) {
    operation->dependencies.push_back(std::move(dependency));
  }
  Engine& engine = Engine::get();
  engine.add(operation);
  stream.tail.assign(1, operation);
  stream.retired.clear();
  if (is_kernel) count_launch(stream, operation);
  engine.added({operation});  // may drop the lock: `stream` is not used after this
  return operation;
}

CUresult submit(Stream& stream, Work work) {
  if (is_capturing(stream)) return capture_work(stream, std::move(work));
  if (stream.kind == StreamKind::kLegacy) {
    if (const CUresult code = capture_forbids_legacy(*stream.context); code != CUDA_SUCCESS) {
      return code;
    }
  }
  enqueue(stream, work);
  return CUDA_SUCCESS;
}

void enqueue_group(Stream& stream, std::vector<std::shared_ptr<Operation>> operations,
                   const std::vector<std::shared_ptr<Operation>>& after) {
  if (operations.empty()) return;
  await_room(stream);
  std::vector<std::shared_ptr<Operation>> before = stream_dependencies(stream);
  before.insert(before.end(), after.begin(), after.end());
  std::unordered_set<const Operation*> group, inner;
  for (const auto& operation : operations) group.insert(operation.get());
  for (const auto& operation : operations) {
    bool is_root = true;
    for (const auto& dependency : operation->dependencies) {
      if (group.count(dependency.get()) == 0) continue;
      is_root = false;
      inner.insert(dependency.get());
    }
    if (is_root) {
      operation->dependencies.insert(operation->dependencies.end(), before.begin(), before.end());
    }
    if (operation->context == nullptr) operation->context = stream.context;
  }
  stream.tail.clear();
  stream.retired.clear();
  Engine& engine = Engine::get();
  for (const auto& operation : operations) {
    engine.add(operation);
    if (inner.count(operation.get()) == 0) stream.tail.push_back(operation);
  }
  count_launch(stream, operations.back());
  engine.added(operations);
}

bool can_skip_kernels(const Stream& stream) {
  static const bool is_possible = options().null_executor && options().order == Order::kEarly &&
                                  !is_logging() && options().queue_depth == 0;
  return is_possible && Engine::get().is_quiet() && !is_capturing(stream) &&
         stream.context->active_captures == 0 && sticky_error(*stream.context) == CUDA_SUCCESS;
}

void progress_for_query(const std::shared_ptr<Operation>& operation, unsigned& polls) {
  Engine::get().query(operation, polls);
}

void wait_for(const std::shared_ptr<Operation>& operation) {
  const TracedWait traced(operation);
  Engine::get().wait(operation);
}

void wait_for_stream(Stream& stream) {
  const std::vector<std::shared_ptr<Operation>> tail =
      stream.kind == StreamKind::kLegacy ? stream_dependencies(stream) : stream.tail;
  const TracedWait traced(tail);
  for (const auto& operation : tail) Engine::get().wait(operation);
}

void wait_for_context(Context& context) {
  const TracedWait traced(context);
  for (const auto& operation : Engine::get().pending(&context)) Engine::get().wait(operation);
}

void wait_for_all() {
  for (const auto& operation : Engine::get().pending(nullptr)) Engine::get().wait(operation);
}

}  // namespace softgpu
