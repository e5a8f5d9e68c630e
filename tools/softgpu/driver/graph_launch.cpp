// SPDX-License-Identifier: Apache-2.0
// Graph launches: an exec becomes one group of operations with fresh copies of its parameters, so
// later updates of the exec reach later launches only. Driver lock held.
#include "tools/softgpu/driver/graph_launch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/capture.h"
#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/module_objects.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/driver/twin.h"

namespace softgpu {
namespace {

using OperationPtr = std::shared_ptr<Operation>;

// An empty or disabled node, or an upload. Unlike the operation that make_operation() would give it
// leaves no log line.
class Nothing : public Operation {
 public:
  bool step() override { return true; }
};

// Keeps the user objects and the conditions of an exec until a launch has finished.
class HoldObjects : public Operation {
 public:
  explicit HoldObjects(const GraphExec& exec)
      : references_(exec.user_objects), conditions_(exec.conditions) {}
  bool step() override { return true; }
  void finish() override {
    references_.reset();
    conditions_.clear();
  }
  bool is_skipped_on_error() const override { return false; }

 private:
  std::shared_ptr<const UserObjectRefs> references_;
  std::vector<std::shared_ptr<Condition>> conditions_;
};

// Before all nodes of a launch: conditions that have a default begin with it.
class AssignDefaults : public Operation {
 public:
  explicit AssignDefaults(std::vector<std::shared_ptr<Condition>> conditions)
      : conditions_(std::move(conditions)) {}
  bool step() override {
    for (const auto& condition : conditions_) {
      if (condition->assigns_default) condition->value = condition->default_value;
    }
    return true;
  }

 private:
  const std::vector<std::shared_ptr<Condition>> conditions_;
};

Context& context_of_work(const Work& work, Stream& stream) {
  if (const auto* kernel = std::get_if<KernelWork>(&work)) return *kernel->function->context;
  if (const auto* copy = std::get_if<CopyWork>(&work)) return *copy->context;
  if (const auto* set = std::get_if<MemsetWork>(&work)) return *set->context;
  if (const auto* node = std::get_if<ConditionalWork>(&work)) return *node->condition->context;
  return *stream.context;
}

// A node that does nothing takes no sequence number: the log of a graph reads like that of its
// launches one by one. Event nodes bind as they are made: a record is the event's latest from now
// on, a wait is for the latest record.
OperationPtr make_step(const ExecStep& step, Stream& stream) {
  const Work& work = step.node->work;
  Context& context = context_of_work(work, stream);
  Context& where = covers(context, *stream.context) ? *stream.context : context;
  if (!step.node->enabled || std::holds_alternative<EmptyWork>(work))
    return std::make_shared<Nothing>();
  return make_operation(work, where, stream.ordinal, stream.sequence++);
}

std::vector<OperationPtr> make_steps(const GraphExec& exec, Stream& stream) {
  std::vector<OperationPtr> operations;
  operations.reserve(exec.order.size() + 1);
  for (const ExecStep& step : exec.order) {
    operations.push_back(make_step(step, stream));
    for (const std::uint32_t position : step.before) {
      operations.back()->dependencies.push_back(operations[position]);
    }
  }
  return operations;
}

// In front of those that wait for no other node.
void add_defaults(const GraphExec& exec, Stream& stream, std::vector<OperationPtr>* operations) {
  auto defaults = std::make_shared<AssignDefaults>(exec.conditions);
  defaults->context = stream.context;
  for (std::size_t i = 0; i < exec.order.size(); ++i) {
    if (exec.order[i].before.empty()) (*operations)[i]->dependencies.push_back(defaults);
  }
  operations->insert(operations->begin(), std::move(defaults));
}

// What is left of the exec's last launch, replaced by `next`.
std::vector<OperationPtr> exchange_last_launch(GraphExec& exec, std::vector<OperationPtr> next) {
  std::vector<OperationPtr> previous = std::exchange(exec.last_launch, std::move(next));
  previous.erase(std::remove_if(previous.begin(), previous.end(),
                                [](const OperationPtr& operation) {
                                  return operation->done && operation->trace == nullptr;
                                }),
                 previous.end());
  return previous;
}

}  // namespace

CUresult launch(GraphExec& exec, Stream& stream) {
  charge_nodes(exec.order.size());
  if (exec.only_kernels && can_skip_kernels(stream) && exec.user_objects->empty()) {
    stream.sequence += exec.enabled_kernels;
    return CUDA_SUCCESS;
  }
  if (is_capturing(stream)) {
    // It would be a child graph node.
    if (has_conditional_nodes(*exec.snapshot)) return capture_forbids_uncapturable(stream);
    auto child = copy_graph(*exec.snapshot, true);
    child->embedded = true;
    return capture_work(stream, ChildGraphWork{std::move(child)});
  }
  if (stream.kind == StreamKind::kLegacy) {
    if (const CUresult code = capture_forbids_legacy(*stream.context); code != CUDA_SUCCESS)
      return code;
  }
  std::vector<OperationPtr> operations = make_steps(exec, stream);
  std::vector<OperationPtr> exits;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (exec.order[i].is_exit) exits.push_back(operations[i]);
  }
  // Without nodes the launch still has its place between what is before and what is behind it.
  if (operations.empty()) operations.push_back(exits.emplace_back(std::make_shared<Nothing>()));
  if (!exec.conditions.empty()) add_defaults(exec, stream, &operations);
  if (!exec.user_objects->empty() || !exec.conditions.empty()) {
    auto hold = std::make_shared<HoldObjects>(exec);
    hold->dependencies = exits;
    hold->context = stream.context;
    exits.assign(1, hold);
    operations.push_back(std::move(hold));
  }
  const std::vector<OperationPtr> previous = exchange_last_launch(exec, std::move(exits));
  enqueue_group(stream, std::move(operations),
                previous);  // may drop the lock: `exec` is not used after this
  return CUDA_SUCCESS;
}

CUresult upload(GraphExec& exec, Stream& stream) {
  if (can_skip_kernels(stream)) return CUDA_SUCCESS;
  if (const CUresult code = capture_forbids_uncapturable(stream); code != CUDA_SUCCESS) return code;
  auto operation = std::make_shared<Nothing>();
  const std::vector<OperationPtr> previous = exchange_last_launch(exec, {operation});
  enqueue_group(stream, {std::move(operation)}, previous);
  return CUDA_SUCCESS;
}

}  // namespace softgpu

using namespace softgpu;  // NOLINT: entries are C functions outside any namespace

SOFTGPU_TWIN_ENTRY(cuGraphLaunch, cuGraphLaunch_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
                   { return launch(exec_of(hGraphExec), resolve_stream(hStream, kPerThread)); })

SOFTGPU_TWIN_ENTRY(cuGraphUpload, cuGraphUpload_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
                   { return upload(exec_of(hGraphExec), resolve_stream(hStream, kPerThread)); })
