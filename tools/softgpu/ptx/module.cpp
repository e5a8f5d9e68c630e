// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/module.h"

#include <cstring>
#include <exception>
#include <utility>

#include "tools/softgpu/ptx/control_flow.h"
#include "tools/softgpu/ptx/ir.h"
#include "tools/softgpu/ptx/layout.h"
#include "tools/softgpu/ptx/liveness.h"
#include "tools/softgpu/ptx/memory.h"
#include "tools/softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

void analyse(RawModule* raw) {
  for (std::size_t f = 0; f < raw->info.size(); ++f) {
    Function& function = *raw->impl->functions[f];
    if (!function.defined) continue;
    const ControlFlow flow = build_control_flow(function);
    set_reconvergence(flow, &function);
    const SlotAssignment slots = assign_slots(function, raw->info[f], flow);
    apply_slots(slots, &function);
    raw->info[f].register_words = slots.words;
  }
  lay_out(raw);
}

}  // namespace

Module::Module() = default;
Module::~Module() = default;

std::unique_ptr<Module> Module::parse(std::string_view text, int device_cc, ParseError* error) {
  try {
    RawModule raw = parse_text(text, device_cc);
    analyse(&raw);
    std::unique_ptr<Module> module(new Module);
    module->impl_ = std::move(raw.impl);
    return module;
  } catch (const SyntaxError& syntax) {
    error->message = "ptx:" + std::to_string(syntax.line) + ": " + syntax.message;
    error->unsupported_version = syntax.unsupported_version;
    error->unsupported_target = syntax.unsupported_target;
  } catch (const std::exception& failure) {  // out of memory
    error->message = std::string("ptx: ") + failure.what();
  }
  return nullptr;
}

const std::vector<Kernel>& Module::kernels() const {
  return impl_->kernels;
}
const std::vector<Variable>& Module::variables() const {
  return impl_->variables;
}

const Kernel* Module::find_kernel(std::string_view name) const {
  for (const Kernel& kernel : impl_->kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

const Variable* Module::find_variable(std::string_view name) const {
  for (const Variable& variable : impl_->variables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

bool Module::place(
    const std::function<std::uint64_t(const Variable&)>& allocate,
    const std::function<void(const Variable&, const std::vector<std::byte>&)>& write) {
  for (Variable& variable : impl_->variables) {
    variable.address = allocate(variable);
    if (variable.address == 0) return false;
  }
  const auto address_of = [this](const std::string& name) -> std::uint64_t {
    if (const Variable* variable = find_variable(name)) return variable->address;
    for (const auto& function : impl_->functions) {
      if (function->name == name) return kCodeWindow + function->index;
    }
    return 0;
  };
  for (const Variable& variable : impl_->variables) {
    std::vector<std::byte> bytes = variable.initial;
    bytes.resize(variable.size);
    for (const Variable::Relocation& relocation : variable.relocations) {
      const std::uint64_t value =
          (address_of(relocation.symbol) + static_cast<std::uint64_t>(relocation.addend)) >>
          relocation.shift;
      std::memcpy(bytes.data() + relocation.offset, &value, relocation.size);
    }
    write(variable, bytes);
  }
  return true;
}

}  // namespace softgpu::ptx
