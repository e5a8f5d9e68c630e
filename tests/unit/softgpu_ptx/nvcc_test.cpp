// SPDX-License-Identifier: Apache-2.0
// What the installed nvcc makes of kernels/*.cu. The files are named in SOFTGPU_PTX_FILES,
// separated by ':'.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/unit/softgpu_ptx/ptx_text.h"

namespace softgpu::ptx {
namespace {

std::vector<std::pair<std::string, std::string>> compiled_files() {
  std::vector<std::pair<std::string, std::string>> files;
  const char* list = std::getenv("SOFTGPU_PTX_FILES");
  if (list == nullptr) return files;
  std::stringstream paths(list);
  for (std::string path; std::getline(paths, path, ':');) {
    std::ifstream file(path);
    REQUIRE(file.is_open());
    std::stringstream text;
    text << file.rdbuf();
    files.emplace_back(path, text.str());
  }
  return files;
}

void check_operand(const Module& module, const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kReg:
    case OperandKind::kAtReg:
      REQUIRE(operand.index < function.slots);
      break;
    case OperandKind::kPred:
      REQUIRE(operand.index < function.predicates);
      break;
    case OperandKind::kVariable:
    case OperandKind::kAtVariable:
      REQUIRE(operand.index < module.variables().size());
      break;
    case OperandKind::kFrame:
    case OperandKind::kAtFrame:
      REQUIRE(operand.value < function.frame_bytes);
      break;
    default:
      break;
  }
}

// Everything an executor would index with.
void check_function(const Module& module, const Function& function) {
  CAPTURE(function.name);
  for (const Operand& operand : function.operands) check_operand(module, function, operand);
  for (const Instruction& inst : function.code) {
    CAPTURE(inst.line);
    REQUIRE(inst.operands + inst.dst_count + inst.src_count <= function.operands.size());
    REQUIRE(inst.guard < static_cast<std::int32_t>(function.predicates));
    if (inst.op == Opcode::kBra) REQUIRE(inst.target < function.code.size());
    if (inst.op == Opcode::kBra || inst.op == Opcode::kBrx) {
      REQUIRE(inst.reconverge <= function.code.size());
    }
    if (inst.op == Opcode::kCall) REQUIRE(inst.target < function.calls.size());
  }
  const Instruction& last = function.code.back();
  CHECK((last.op == Opcode::kRet && last.guard == kNoGuard));
}

TEST_CASE("what nvcc writes can be read", "[ptx][nvcc]") {
  std::set<std::string> kernels;
  for (const auto& [path, text] : compiled_files()) {
    CAPTURE(path);
    const auto module = parse(text);
    for (const auto& function : module->impl().functions) {
      if (function->defined) check_function(*module, *function);
    }
    for (const Kernel& kernel : module->kernels()) kernels.insert(kernel.name);
  }
  if (std::getenv("SOFTGPU_PTX_FILES") != nullptr) CHECK(kernels.size() >= 5);
}

TEST_CASE("compiled layouts are the ones of the source", "[ptx][nvcc]") {
  for (const auto& [path, text] : compiled_files()) {
    if (path.find("language") == std::string::npos) continue;
    const auto module = parse(text);
    const Kernel* calls = nullptr;
    for (const Kernel& kernel : module->kernels()) {
      if (kernel.name.find("calls") != std::string::npos) calls = &kernel;
      if (kernel.name.find("integers") != std::string::npos) {
        CHECK(kernel.max_threads[0] == 128);
        CHECK(kernel.min_blocks == 2);
      }
    }
    REQUIRE(calls != nullptr);
    CHECK(calls->static_shared_bytes == 1024 + 24);
    REQUIRE(calls->parameters.size() == 3);
    CHECK(calls->parameters[2].offset == 16);
    CHECK(calls->parameters[2].size == 32);
    CHECK(calls->const_bytes >= 64);
    CHECK(module->find_variable("counter")->initial.size() == 4);
    CHECK(module->find_variable("managed")->managed);
    CHECK(module->find_variable("transforms")->relocations.size() == 2);
  }
}

}  // namespace
}  // namespace softgpu::ptx
