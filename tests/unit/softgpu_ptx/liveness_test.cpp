// SPDX-License-Identifier: Apache-2.0
#include "tools/softgpu/ptx/liveness.h"

#include <random>
#include <set>

#include "tests/unit/softgpu_ptx/ptx_text.h"
#include "tools/softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

using Values = std::set<std::pair<bool, std::uint32_t>>;

std::vector<std::uint32_t> next_instructions(const Function& function, std::uint32_t at) {
  const Instruction& inst = function.code[at];
  std::vector<std::uint32_t> next;
  const bool jumps = inst.op == Opcode::kBra || inst.op == Opcode::kBrx;
  const bool leaves =
      inst.op == Opcode::kRet || inst.op == Opcode::kExit || inst.op == Opcode::kTrap;
  if (inst.op == Opcode::kBra) next.push_back(inst.target);
  if (inst.op == Opcode::kBrx) next = function.tables[inst.target];
  if (inst.guard != kNoGuard || (!jumps && !leaves)) next.push_back(at + 1);
  return next;
}

// Straight from the definitions, instruction by instruction: what is alive after each one, among
// what some path wrote.
class Oracle {
 public:
  explicit Oracle(const Function& function)
      : function_(function), live_(function.code.size()), written_(function.code.size()) {
    const auto size = static_cast<std::uint32_t>(function.code.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t i = size; i-- > 0;) changed |= back(i);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t i = 0; i < size; ++i) changed |= forward(i);
    }
  }

  Values alive_after(std::uint32_t at) const {
    Values alive;
    const Values written = after(at);
    for (std::uint32_t n : next_instructions(function_, at)) {
      for (const auto& value : live_[n]) {
        if (written.count(value)) alive.insert(value);
      }
    }
    return alive;
  }

  std::vector<Access> accesses(std::uint32_t at) const {
    std::vector<Access> list;
    list_accesses(function_, function_.code[at], &list);
    return list;
  }

 private:
  bool back(std::uint32_t at) {
    Values in;
    for (std::uint32_t n : next_instructions(function_, at)) {
      in.insert(live_[n].begin(), live_[n].end());
    }
    for (const Access& a : accesses(at)) {
      if (a.is_write && function_.code[at].guard == kNoGuard) in.erase({a.is_predicate, a.index});
    }
    for (const Access& a : accesses(at)) {
      if (!a.is_write) in.insert({a.is_predicate, a.index});
    }
    const bool changed = in != live_[at];
    live_[at] = std::move(in);
    return changed;
  }

  Values after(std::uint32_t at) const {
    Values out = written_[at];
    for (const Access& a : accesses(at)) {
      if (a.is_write) out.insert({a.is_predicate, a.index});
    }
    return out;
  }

  bool forward(std::uint32_t at) {
    bool changed = false;
    const Values out = after(at);
    for (std::uint32_t n : next_instructions(function_, at)) {
      const std::size_t before = written_[n].size();
      written_[n].insert(out.begin(), out.end());
      changed |= written_[n].size() != before;
    }
    return changed;
  }

  const Function& function_;
  std::vector<Values> live_, written_;
};

void check_slots(const Function& function, const SlotAssignment& slots) {
  const Oracle oracle(function);
  const auto slot_of = [&](bool predicate, std::uint32_t index) {
    return predicate ? slots.predicates[index] : slots.registers[index];
  };
  for (std::uint32_t i = 0; i < function.code.size(); ++i) {
    Values together = oracle.alive_after(i);
    for (const Access& a : oracle.accesses(i)) together.insert({a.is_predicate, a.index});
    std::set<std::pair<bool, std::uint32_t>> taken;
    for (const auto& [predicate, index] : together) {
      const std::uint32_t slot = slot_of(predicate, index);
      REQUIRE(slot < (predicate ? slots.predicate_slots : slots.slots));
      CAPTURE(i, predicate, index, slot);
      REQUIRE(taken.insert({predicate, slot}).second);
    }
  }
}

struct Assigned {
  explicit Assigned(const std::string& text) : raw(parse_text(text, kTestDevice)) {}
  SlotAssignment slots(std::size_t function = 0) const {
    const Function& f = *raw.impl->functions[function];
    return assign_slots(f, raw.info[function], build_control_flow(f));
  }
  RawModule raw;
};

TEST_CASE("a chain of thousands of registers needs few slots", "[ptx][liveness]") {
  std::string body = ".reg .b32 %x<22001>;\nmov.u32 %x0, 1;\n";
  for (int i = 1; i <= 22000; ++i) {
    body += "add.u32 %x" + std::to_string(i) + ", %x" + std::to_string(i - 1) + ", 1;\n";
  }
  const auto module = parse(kernel_text(body + "st.global.u32 [%rd1], %x22000;"));
  CHECK(module->kernels()[0].function->slots <= 4);
}

TEST_CASE("registers alive together keep apart", "[ptx][liveness]") {
  std::string body = ".reg .b32 %x<100>;\n";
  for (int i = 0; i < 100; ++i) body += "mov.u32 %x" + std::to_string(i) + ", %tid.x;\n";
  for (int i = 0; i < 100; ++i) {
    body += "st.global.u32 [" + std::to_string(4 * i) + "], %x" + std::to_string(i) + ";\n";
  }
  const Assigned assigned(kernel_text(body));
  CHECK(assigned.slots().slots == 100);
  check_slots(*assigned.raw.impl->functions[0], assigned.slots());
}

TEST_CASE("a value carried around a loop keeps its slot", "[ptx][liveness]") {
  const Assigned assigned(
      kernel_text("mov.u32 %r1, 0; mov.u32 %r2, 7;\n"
                  "L: add.u32 %r3, %r1, 1; mul.lo.u32 %r4, %r3, %r3; st.global.u32 [%rd1], %r4;\n"
                  "mov.u32 %r1, %r3; setp.lt.u32 %p1, %r1, %r2; @%p1 bra L;\n"));
  check_slots(*assigned.raw.impl->functions[0], assigned.slots());
}

TEST_CASE("a guarded write does not end a life", "[ptx][liveness]") {
  const Assigned assigned(kernel_text(
      "mov.u32 %r1, 1; mov.u32 %r2, 2; st.global.u32 [0], %r2;\n"
      "@%p1 mov.u32 %r1, 3; mov.u32 %r3, 4; st.global.u32 [0], %r3; st.global.u32 [0], %r1;\n"));
  const SlotAssignment slots = assigned.slots();
  check_slots(*assigned.raw.impl->functions[0], slots);
  CHECK(slots.slots == 2);
}

TEST_CASE("pairs of guarded writes do not stay alive from the start", "[ptx][liveness]") {
  std::string body = ".reg .b32 %x<200>;\n";
  for (int i = 0; i < 200; ++i) {
    const std::string x = "%x" + std::to_string(i);
    body += "@%p1 ld.global.u32 " + x + ", [%rd1]; @!%p1 mov.u32 " + x +
            ", 0; st.global.u32 [%rd2], " + x + ";\n";
  }
  CHECK(parse(kernel_text(body))->kernels()[0].function->slots <= 4);
}

TEST_CASE("unused registers cost nothing", "[ptx][liveness]") {
  const auto module = parse(kernel_text("{ .reg .b32 temp_param_reg; } ret;"));
  CHECK(module->kernels()[0].function->slots == 0);
  CHECK(module->kernels()[0].function->predicates == 0);
}

TEST_CASE("register formals are alive from the first instruction to the last", "[ptx][liveness]") {
  const std::string text = module_text(
      ".func (.reg .b32 out) f(.reg .b32 x, .reg .b32 y)\n{ .reg .b32 %r<3>;\n"
      "mov.u32 %r1, 5; add.u32 out, x, %r1; add.u32 out, out, y; ret; }\n");
  const Assigned assigned(text);
  const SlotAssignment slots = assigned.slots();
  check_slots(*assigned.raw.impl->functions[0], slots);
  const auto module = parse(text);
  const Function& f = *module->impl().functions[0];
  REQUIRE(f.parameters.size() == 2);
  CHECK(f.parameters[0].place.kind == OperandKind::kReg);
  CHECK(f.parameters[0].place.index != f.parameters[1].place.index);
  CHECK(f.results[0].place.index < f.slots);
}

std::string random_body(std::mt19937& random) {
  const auto reg = [&] { return "%r" + std::to_string(random() % 12); };
  const auto pred = [&] { return "%p" + std::to_string(random() % 4); };
  const unsigned size = 5 + random() % 60;
  std::string body;
  for (unsigned i = 0; i < size; ++i) {
    body += "L" + std::to_string(i) + ": ";
    if (random() % 4 == 0) body += "@" + std::string(random() % 2 ? "!" : "") + pred() + " ";
    const std::string target = "L" + std::to_string(random() % size);
    switch (random() % 8) {
      case 0:
        body += "bra " + target;
        break;
      case 1:
        body += "setp.lt.u32 " + pred() + ", " + reg() + ", " + reg();
        break;
      case 2:
        body += "st.global.u32 [%rd1], " + reg();
        break;
      case 3:
        body += "mov.b64 {" + reg() + ", %r15}, %rd2";
        break;
      case 4:
        body += random() % 6 == 0 ? "ret" : "mov.u32 " + reg() + ", %tid.x";
        break;
      default:
        body += "add.u32 " + reg() + ", " + reg() + ", " + reg();
        break;
    }
    body += ";\n";
  }
  return body;
}

TEST_CASE("no two values alive together share a slot in random programs", "[ptx][liveness]") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string text = kernel_text(random_body(random));
    INFO(text);
    const Assigned assigned(text);
    check_slots(*assigned.raw.impl->functions[0], assigned.slots());
  }
}

}  // namespace
}  // namespace softgpu::ptx
