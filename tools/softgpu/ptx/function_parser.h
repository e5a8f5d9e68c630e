// SPDX-License-Identifier: Apache-2.0
// Reads one function body: declarations, labels, instructions, calls. Makes Function::code with
// virtual registers and labels resolved. Must not look at other functions' bodies.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/ptx/declaration.h"
#include "tools/softgpu/ptx/instructions.h"
#include "tools/softgpu/ptx/symbols.h"

namespace softgpu::ptx {

// Decoded suffixes by their spelling; one module repeats few of them.
using FormCache = std::unordered_map<std::string_view, Form>;

class FunctionParser {
 public:
  FunctionParser(Cursor& cursor, RawModule* raw, FormCache* forms, Function* function,
                 FunctionInfo* info)
      : cursor_(cursor), raw_(raw), forms_(forms), function_(function), info_(info) {}

  // After '{' of the body; reads to its '}'.
  void run(const std::vector<ParameterDeclaration>& results,
           const std::vector<ParameterDeclaration>& parameters);

 private:
  // Declarations (function_parser.cpp).
  Formal declare_formal(const ParameterDeclaration& parameter);
  void statement();
  void directive();
  void declare_registers();
  void declare_range(std::string_view name, const TypePrefix& prefix);
  std::uint32_t range_count();
  void declare_local();
  void declare_param();
  void declare_param(const Declarator& declarator, const TypePrefix& prefix);
  void label();
  void branch_targets(std::string_view name);
  void skip_prototype(std::string_view name);
  void declare(std::string_view name, Symbol symbol);
  void open_scope();
  void close_scope();
  std::uint32_t new_register(Type type);
  std::uint32_t new_predicate();

  // Instructions (function_parser.cpp).
  void guarded_instruction();
  void instruction(std::int32_t guard, bool negate);
  const Form& read_form();
  void read_operands(const char* plan, const Instruction& inst);
  void split_sum();
  void own_syntax();
  void emit();

  // Instructions with their own syntax (instruction_syntax.cpp).
  unsigned vector_ahead();
  void move();
  void move_vector();
  void load();
  void store();
  void atomic();
  void shuffle();
  void vote();
  void barrier();
  void branch();
  void indexed_branch();
  void call();
  std::vector<CallOperand> call_list(bool results);
  void call_target(Call* call);

  // Operands (operand_parser.cpp).
  const Symbol* find(std::string_view name);
  const Symbol* find_register(NameScope& scope, std::string_view name);
  Operand destination(Type type);
  Operand destination_predicate();
  Operand source(Type type);
  Operand source_word(Type type);
  Operand symbol_value(const Symbol& symbol);
  Operand source_predicate();
  bool special(std::string_view name, Operand* operand);
  bool reserved_shared(std::string_view name, Operand* operand);
  Operand address();
  void address_of(const Symbol& symbol, Operand* operand);
  void need_space(Space space);
  void append_index(std::uint32_t element_bytes, Operand* operand);
  void append_offset(Operand* operand);
  void note_shared(std::uint32_t index);
  Operand component(const Symbol& vector);
  bool whole_vector(unsigned count, std::vector<Operand>* operands);
  void destinations(Type type, unsigned count);
  void sources(Type type, unsigned count);
  void dst(const Operand& operand) { dsts_.push_back(operand); }
  void src(const Operand& operand) { srcs_.push_back(operand); }

  Cursor& cursor_;
  RawModule* raw_;
  FormCache* forms_;
  Function* function_;
  FunctionInfo* info_;

  std::vector<NameScope> scopes_;
  std::uint32_t local_top_ = 0;
  std::uint32_t param_top_ = 0;
  std::vector<std::uint32_t> param_marks_;  // param_top_ at the start of each scope
  Symbol range_symbol_;                     // what find_register() returns for a range
  std::deque<std::string> range_names_;     // of `.param .u64 %P<2>`: they are not in the text

  Instruction inst_;  // being read
  std::vector<Operand> dsts_, srcs_;
};

}  // namespace softgpu::ptx
