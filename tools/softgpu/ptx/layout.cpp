// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/layout.h"

#include <algorithm>
#include <set>

#include "tools/softgpu/ptx/declaration.h"

namespace softgpu::ptx {
namespace {

constexpr unsigned kMaxReportedRegisters = 255;
// A guess at what the hardware adds to the program's own values: addresses, the stack pointer,
// temporaries.
constexpr unsigned kExtraRegisters = 8;

Builtin builtin_of(std::string_view name) {
  if (name == "vprintf") return Builtin::kVprintf;
  if (name == "__assertfail") return Builtin::kAssertfail;
  if (name == "malloc") return Builtin::kMalloc;
  if (name == "free") return Builtin::kFree;
  if (name == "cudaGraphSetConditional") return Builtin::kSetConditional;
  return Builtin::kNone;
}

struct BuiltinShape {
  std::size_t parameters, results;
};

BuiltinShape shape_of(Builtin builtin) {
  switch (builtin) {
    case Builtin::kVprintf:
      return {2, 1};
    case Builtin::kAssertfail:
      return {5, 0};
    case Builtin::kMalloc:
      return {1, 1};
    case Builtin::kSetConditional:
      return {2, 0};
    default:
      return {1, 0};
  }
}

class Layout {
 public:
  explicit Layout(RawModule* raw)
      : raw_(*raw), functions_(raw->impl->functions), reach_(functions_.size()) {}

  void run() {
    resolve_aliases();
    check_initializers();
    for (std::uint32_t f = 0; f < functions_.size(); ++f) {
      if (!functions_[f]->defined) functions_[f]->builtin = builtin_of(functions_[f]->name);
      place_frame(functions_[f].get(), raw_.info[f]);
    }
    for (std::uint32_t f = 0; f < functions_.size(); ++f) check_calls(f);
    for (std::uint32_t f = 0; f < functions_.size(); ++f) find_reach(f);
    place_shared();
    for (auto& function : functions_) patch_shared(function.get());
    for (Kernel& kernel : raw_.impl->kernels) describe(&kernel);
  }

 private:
  void resolve_aliases() {
    for (const auto& [name, target] : raw_.aliases) {
      if (functions_[name]->defined || !functions_[target]->defined) continue;
      Function copy = *functions_[target];
      copy.name = functions_[name]->name;
      copy.index = name;
      *functions_[name] = std::move(copy);
      const bool address_taken = raw_.info[name].address_taken;
      raw_.info[name] = raw_.info[target];
      raw_.info[name].address_taken = address_taken;
    }
  }

  void check_initializers() {
    for (const RawModule::NameUse& use : raw_.initializer_names) {
      const auto found = raw_.names.find(use.name);
      const bool known =
          found != raw_.names.end() && (found->second.kind == SymbolKind::kVariable ||
                                        found->second.kind == SymbolKind::kFunction);
      if (!known) throw SyntaxError{use.line, "unknown symbol '" + std::string(use.name) + "'"};
      if (found->second.kind == SymbolKind::kFunction) {
        raw_.info[found->second.index].address_taken = true;
      }
    }
  }

  // .local variables first, then .param variables.
  void place_frame(Function* function, const FunctionInfo& info) {
    const std::uint64_t params = round_up(info.local_bytes, function->frame_align);
    const auto patch = [&](Operand* operand) {
      const bool in_frame =
          operand->kind == OperandKind::kFrame || operand->kind == OperandKind::kAtFrame;
      if (!in_frame || operand->index != kFrameParams) return;
      operand->index = 0;
      operand->value += params;
    };
    for (Operand& operand : function->operands) patch(&operand);
    for (Call& call : function->calls) {
      for (CallOperand& argument : call.arguments) patch(&argument.place);
      for (CallOperand& result : call.results) patch(&result.place);
    }
    for (Formal& formal : function->parameters) patch(&formal.place);
    for (Formal& formal : function->results) patch(&formal.place);
    function->frame_bytes =
        static_cast<std::uint32_t>(round_up(params + info.param_bytes, function->frame_align));
  }

  void check_calls(std::uint32_t caller) {
    const Function& function = *functions_[caller];
    for (std::size_t c = 0; c < function.calls.size(); ++c) {
      const Call& call = function.calls[c];
      if (call.indirect) continue;
      check_call(call, *functions_[call.function], raw_.info[caller].call_lines[c]);
    }
  }

  static void check_call(const Call& call, const Function& callee, std::uint32_t line) {
    const auto fail = [&](const char* what) {
      throw SyntaxError{line, std::string(what) + " '" + callee.name + "'"};
    };
    if (callee.entry) fail("call of the entry");
    if (!callee.defined && callee.builtin == Builtin::kNone) fail("unresolved function");
    if (callee.builtin != Builtin::kNone) {
      const BuiltinShape shape = shape_of(callee.builtin);
      if (callee.parameters.size() != shape.parameters || callee.results.size() != shape.results) {
        fail("wrong declaration of");
      }
    }
    if (call.arguments.size() != callee.parameters.size()) fail("wrong number of arguments for");
    if (call.results.size() > callee.results.size()) fail("too many results of");
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      if (!fits(call.arguments[i], callee.parameters[i])) fail("wrong argument size for");
    }
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      if (!fits(call.results[i], callee.results[i])) fail("wrong result size of");
    }
  }

  static bool fits(const CallOperand& operand, const Formal& formal) {
    const bool operand_predicate = operand.place.kind == OperandKind::kPred;
    if (operand_predicate != (formal.place.kind == OperandKind::kPred)) {
      return operand.place.kind == OperandKind::kSink || operand.place.kind == OperandKind::kImm;
    }
    if (operand.place.kind == OperandKind::kFrame) return operand.size == formal.size;
    return formal.size <= 8;
  }

  // Functions that a call in `function` may enter.
  std::vector<std::uint32_t> callees(std::uint32_t function) const {
    std::vector<std::uint32_t> list;
    for (const Call& call : functions_[function]->calls) {
      if (!call.indirect) list.push_back(call.function);
    }
    if (raw_.info[function].calls_pointers) {
      for (std::uint32_t f = 0; f < functions_.size(); ++f) {
        if (raw_.info[f].address_taken) list.push_back(f);
      }
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  void find_reach(std::uint32_t from) {
    std::vector<std::uint32_t> todo = callees(from);
    std::vector<bool> seen(functions_.size(), false);
    while (!todo.empty()) {
      const std::uint32_t f = todo.back();
      todo.pop_back();
      if (seen[f]) continue;
      seen[f] = true;
      reach_[from].push_back(f);
      for (std::uint32_t callee : callees(f)) todo.push_back(callee);
    }
    functions_[from]->recursive = seen[from];
  }

  std::set<std::uint32_t> shared_of(std::uint32_t entry) const {
    std::set<std::uint32_t> used(raw_.info[entry].shared.begin(), raw_.info[entry].shared.end());
    for (std::uint32_t f : reach_[entry]) {
      used.insert(raw_.info[f].shared.begin(), raw_.info[f].shared.end());
    }
    return used;
  }

  // Offsets are fixed in the code, so a variable has one offset in all kernels; variables that no
  // kernel uses together may overlap. Those that most kernels use go lowest.
  void place_shared() {
    const std::size_t count = raw_.shared.size();
    std::vector<std::set<std::uint32_t>> users(count);  // kernels
    const auto& kernels = raw_.impl->kernels;
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      kernel_shared_.push_back(shared_of(kernels[k].function->index));
      for (std::uint32_t v : kernel_shared_.back()) users[v].insert(k);
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t v = 0; v < count; ++v) {
      if (!raw_.shared[v].external && !users[v].empty()) order.push_back(v);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return users[a].size() > users[b].size();
    });
    std::vector<std::uint64_t> top(kernels.size(), 0);
    for (std::uint32_t v : order) {
      std::uint64_t offset = 0;
      for (std::uint32_t k : users[v]) offset = std::max(offset, top[k]);
      offset = round_up(offset, raw_.shared[v].align);
      if (offset + raw_.shared[v].size > kMaxSharedBytes) too_much_shared(*users[v].begin());
      raw_.shared[v].offset = static_cast<std::uint32_t>(offset);
      for (std::uint32_t k : users[v]) top[k] = offset + raw_.shared[v].size;
    }
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      raw_.impl->kernels[k].static_shared_bytes = top[k];
      std::uint64_t align = 16;
      for (std::uint32_t v : kernel_shared_[k]) {
        if (raw_.shared[v].external) align = std::max<std::uint64_t>(align, raw_.shared[v].align);
      }
      const std::uint32_t entry = kernels[k].function->index;
      const std::uint64_t reserved = uses_reserved_shared(entry) ? kReservedSharedBytes : 0;
      functions_[entry]->dynamic_shared_offset =
          static_cast<std::uint32_t>(round_up(round_up(top[k], 16) + reserved, align));
    }
  }

  bool uses_reserved_shared(std::uint32_t entry) const {
    return raw_.info[entry].uses_reserved_shared ||
           std::any_of(reach_[entry].begin(), reach_[entry].end(),
                       [&](std::uint32_t f) { return raw_.info[f].uses_reserved_shared; });
  }

  void too_much_shared(std::uint32_t kernel) const {
    const Kernel& k = raw_.impl->kernels[kernel];
    throw SyntaxError{raw_.info[k.function->index].line,
                      "'" + k.name + "' uses more than 48 KB of static shared memory"};
  }

  void patch_shared(Function* function) {
    const auto patch = [&](Operand* operand) {
      const bool is_constant =
          operand->kind == OperandKind::kImm || operand->kind == OperandKind::kAtAbs;
      if (!is_constant || operand->index == 0) return;
      operand->value += raw_.shared[operand->index - 1].offset;
      operand->index = 0;
    };
    for (Operand& operand : function->operands) patch(&operand);
    for (Call& call : function->calls) {
      for (CallOperand& argument : call.arguments) patch(&argument.place);
    }
  }

  void describe(Kernel* kernel) {
    const std::uint32_t entry = kernel->function->index;
    kernel->local_bytes = deepest(entry, 0);
    for (const Variable& variable : raw_.impl->variables) {
      if (variable.space == VariableSpace::kConst) kernel->const_bytes += variable.size;
    }
    unsigned words = raw_.info[entry].register_words;
    for (std::uint32_t f : reach_[entry]) words = std::max(words, raw_.info[f].register_words);
    const unsigned limit =
        kernel->max_registers != 0 ? kernel->max_registers : kMaxReportedRegisters;
    kernel->registers = std::min({words + kExtraRegisters, limit, kMaxReportedRegisters});
  }

  // Frames of the longest call chain; one round of a recursion.
  std::uint64_t deepest(std::uint32_t function, std::size_t depth) {
    if (depth > kMaxCallDepth) return 0;
    const auto known = depth_bytes_.find(function);
    if (known != depth_bytes_.end()) return known->second;
    depth_bytes_[function] = 0;
    std::uint64_t most = 0;
    for (std::uint32_t callee : callees(function))
      most = std::max(most, deepest(callee, depth + 1));
    return depth_bytes_[function] = functions_[function]->frame_bytes + most;
  }

  static constexpr std::size_t kMaxCallDepth = 1000;

  RawModule& raw_;
  std::vector<std::unique_ptr<Function>>& functions_;
  std::vector<std::vector<std::uint32_t>>
      reach_;  // by function: all it can call, itself if recursive
  std::vector<std::set<std::uint32_t>> kernel_shared_;
  std::unordered_map<std::uint32_t, std::uint64_t> depth_bytes_;
};

}  // namespace

void lay_out(RawModule* raw) {
  Layout(raw).run();
}

}  // namespace softgpu::ptx
