// SPDX-License-Identifier: Apache-2.0
// A conditional node on the device. To the engine it is one operation, so that it keeps its place
// among all others; inside, the condition is looked at and the nodes of bodies run one after the
// other, in an order that respects their edges. Each of these steps has its log line under the
// number of the whole, and its trace record. step() runs without the driver lock and takes it
// between pieces of work.
#include <string>
#include <utility>
#include <vector>

#include "tools/softgpu/driver/conditional.h"
#include "tools/softgpu/driver/graph_exec.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/simple_operation.h"

namespace softgpu {
namespace {

constexpr std::size_t kNoBody = ~std::size_t{0};

// A conditional node that is being performed, and how far its body has come.
struct Level {
  const ConditionalWork* node = nullptr;
  std::vector<ExecStep> steps;
  std::size_t next = 0;
  bool has_begun = false;
};

// Which body a value stands for.
std::size_t chosen_body(const ConditionalWork& node, std::uint32_t value) {
  std::size_t body = kNoBody;
  switch (node.type) {
    case CU_GRAPH_COND_TYPE_IF:
      body = value != 0 ? 0 : 1;
      break;
    case CU_GRAPH_COND_TYPE_WHILE:
      body = value != 0 ? 0 : kNoBody;
      break;
    case CU_GRAPH_COND_TYPE_SWITCH:
      body = value;
      break;
  }
  return body < node.bodies.size() ? body : kNoBody;
}

class ConditionalOperation final : public SimpleOperation {
 public:
  ConditionalOperation(const ConditionalWork& work, std::uint64_t stream_ordinal,
                       std::uint64_t sequence)
      : SimpleOperation(stream_ordinal, sequence),
        root_(copy_work(work, false)),
        stream_ordinal_(stream_ordinal),
        sequence_(sequence) {
    if (is_logging()) set_log_text(describe(work));
    levels_.push_back({&std::get<ConditionalWork>(root_), {}, 0, false});
  }

  bool step() override {
    if (options().null_executor) return true;
    if (current_ == nullptr) {
      const DriverLock lock;
      return advance();
    }
    if (!current_->step()) return false;
    const DriverLock lock;
    current_->finish();
    note_step(current_->text(), current_->trace.get());
    current_.reset();
    return false;
  }

 private:
  // The next thing to do; true when nothing is left.
  bool advance() {
    if (sticky_error(*context) != CUDA_SUCCESS) {
      was_skipped = true;  // what is left of it
      return true;
    }
    Level& level = levels_.back();
    if (level.next < level.steps.size()) {
      begin(*level.steps[level.next++].node);
      return false;
    }
    const bool is_over = level.has_begun && level.node->type != CU_GRAPH_COND_TYPE_WHILE;
    if (is_over || !enter_body(level)) levels_.pop_back();
    return levels_.empty();
  }

  void begin(const GraphNode& node) {
    if (!node.enabled || std::holds_alternative<EmptyWork>(node.work)) return;
    if (const auto* inner = std::get_if<ConditionalWork>(&node.work)) {
      levels_.push_back({inner, {}, 0, false});
    } else {
      current_ = make_operation(node.work, *context, stream_ordinal_, sequence_);
    }
  }

  // False: no body runs for the value that the condition has now.
  bool enter_body(Level& level) {
    const std::uint32_t value = level.node->condition->value;
    const std::size_t body = chosen_body(*level.node, value);
    if (is_logging()) note_choice(*level.node, value, body);
    if (body == kNoBody) return false;
    level.steps = flatten(*level.node->bodies[body]);
    level.next = 0;
    level.has_begun = true;
    return true;
  }

  void note_choice(const ConditionalWork& node, std::uint32_t value, std::size_t body) {
    const std::string text = describe(node) + " value " + std::to_string(value) + " runs " +
                             (body == kNoBody ? "nothing" : "body " + std::to_string(body));
    log_operation(stream_ordinal_, sequence_, text);
    note_step(text, nullptr);
  }

  void note_step(std::string_view text, const OperationTrace* step) {
    if (trace == nullptr) return;
    static const ptx::Footprint kNothing;
    trace_step(*this, text, step == nullptr ? kNothing : step->footprint);
    if (step != nullptr) trace->footprint.add(step->footprint);
  }

  const Work root_;
  const std::uint64_t stream_ordinal_, sequence_;
  std::vector<Level> levels_;           // outermost first
  std::shared_ptr<Operation> current_;  // a body's node at work
};

}  // namespace

std::shared_ptr<Operation> make_conditional_operation(const ConditionalWork& work, Context& context,
                                                      std::uint64_t stream_ordinal,
                                                      std::uint64_t sequence) {
  auto operation = std::make_shared<ConditionalOperation>(work, stream_ordinal, sequence);
  operation->context = &context;
  return operation;
}

}  // namespace softgpu
