// SPDX-License-Identifier: Apache-2.0
// Wraps instructions in a module with plenty of registers, and looks at what the parser made of
// them.
#pragma once

#include <memory>
#include <string>

#include "tests/unit/catch.h"
#include "tools/softgpu/ptx/ir.h"

namespace softgpu::ptx {

inline constexpr int kTestDevice = 90;

inline std::string module_text(const std::string& declarations) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + declarations;
}

inline const char* const kRegisters =
    ".reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<20>; .reg .f64 %fd<9>; "
    ".reg .pred %p<9>;\n";

inline std::string kernel_text(const std::string& body, const std::string& declarations = "") {
  return module_text(declarations + ".visible .entry k(.param .u64 a, .param .u32 b)\n{\n" +
                     kRegisters + body + "\n}\n");
}

inline std::unique_ptr<Module> parse(const std::string& text) {
  ParseError error;
  std::unique_ptr<Module> module = Module::parse(text, kTestDevice, &error);
  INFO(text);
  CAPTURE(error.message);
  REQUIRE(module != nullptr);
  return module;
}

inline std::string parse_error(const std::string& text) {
  ParseError error;
  REQUIRE(Module::parse(text, kTestDevice, &error) == nullptr);
  REQUIRE(!error.message.empty());
  REQUIRE(error.message.find('\n') == std::string::npos);
  return error.message;
}

// A kernel of one instruction.
struct Single {
  explicit Single(const std::string& instruction, const std::string& declarations = "")
      : module(parse(kernel_text(instruction, declarations))),
        function(*module->kernels()[0].function),
        inst(function.code[0]) {}

  const Operand& dst(unsigned i = 0) const {
    REQUIRE(i < inst.dst_count);
    return function.dsts(inst)[i];
  }
  const Operand& src(unsigned i = 0) const {
    REQUIRE(i < inst.src_count);
    return function.srcs(inst)[i];
  }

  std::unique_ptr<Module> module;
  const Function& function;
  const Instruction& inst;
};

}  // namespace softgpu::ptx
