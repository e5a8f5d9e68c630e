// SPDX-License-Identifier: Apache-2.0
// What the parser knows while it reads: names and their scopes, and per function what the analyses
// need besides the code. Names point into the PTX text. Used by one thread, gone when Module::parse
// returns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/softgpu/ptx/cursor.h"
#include "tools/softgpu/ptx/ir.h"

namespace softgpu::ptx {

enum class SymbolKind : std::uint8_t {
  kVariable,    // index in Impl::variables
  kShared,      // index in RawModule::shared
  kFunction,    // index in Impl::functions
  kRegister,    // index = virtual register
  kPredicate,   // index = virtual predicate
  kVector,      // index = first of `size` virtual registers
  kLocal,       // index = offset among the frame's .local variables
  kFrameParam,  // index = offset among the frame's .param variables
  kEntryParam,  // index = offset in the parameter buffer
  kTable,       // index in Function::tables
  kPrototype,   // .callprototype and .calltargets: nothing to know
};

struct Symbol {
  SymbolKind kind = SymbolKind::kVariable;
  std::uint32_t index = 0;
  std::uint32_t size = 0;           // bytes, of .param variables
  std::uint32_t element_bytes = 1;  // of variables: what an index in `name[index]` counts
};

// `.reg .b32 %r<100>`: numbers are given to registers when they are first used.
struct RegisterRange {
  std::string_view prefix;
  Type type = Type::kNone;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> ids;  // id + 1, or 0
};

struct LabelUse {
  std::string_view name;
  std::uint32_t line = 0;
  std::uint32_t instruction = 0;  // of a bra, unless in_table
  bool in_table = false;
  std::uint32_t table = 0, position = 0;
};

struct NameScope {
  std::unordered_map<std::string_view, Symbol> names;
  std::vector<RegisterRange> ranges;
  std::unordered_map<std::string_view, std::uint32_t> labels;  // instruction index
  std::vector<LabelUse> uses;                                  // not resolved yet
};

struct SharedVariable {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t align = 1;
  bool external = false;     // dynamic: starts after all others
  std::uint32_t offset = 0;  // in the CTA's window, set by lay_out()
};

// While parsing, operands hold virtual registers; kFrame and kAtFrame operands have index 0 for
// .local and 1 for .param variables; shared addresses have index = shared variable + 1 and value =
// offset in it.
inline constexpr std::uint32_t kFrameLocals = 0;
inline constexpr std::uint32_t kFrameParams = 1;

// Besides Function.
struct FunctionInfo {
  bool weak = false;
  bool address_taken = false;
  bool calls_pointers = false;
  bool uses_reserved_shared = false;  // names %reserved_smem_offset_*
  std::uint32_t line = 0;
  std::vector<std::uint32_t> shared;               // variables named in the body
  std::vector<Type> registers;                     // virtual registers
  std::uint32_t predicates = 0;                    // virtual predicates
  std::uint32_t local_bytes = 0, param_bytes = 0;  // sizes of the two frame regions
  std::vector<std::uint32_t> call_lines;           // parallel to Function::calls
  unsigned register_words = 0;                     // most 32-bit words alive at once
};

struct RawModule {
  std::unique_ptr<Module::Impl> impl = std::make_unique<Module::Impl>();
  std::vector<FunctionInfo> info;  // parallel to impl->functions
  std::vector<SharedVariable> shared;
  std::unordered_map<std::string_view, Symbol> names;
  struct NameUse {
    std::string_view name;
    std::uint32_t line;
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> aliases;  // function, what it stands for
  std::vector<NameUse> initializer_names;  // checked at the end: they may be declared later
};

// Sizes above these are refused: the device could not hold them.
inline constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kMaxFrameBytes = 512 * 1024;
inline constexpr std::uint64_t kMaxParamBytes = 32764;
inline constexpr std::uint64_t kMaxSharedBytes = 48 * 1024;

// What %reserved_smem_offset_* name: cooperative groups keep barriers there. It lies right before
// dynamic shared memory, and only in kernels that use it.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;

}  // namespace softgpu::ptx
