// SPDX-License-Identifier: Apache-2.0
// A parsed and analysed PTX module: what the driver side needs to know of it. The instruction form
// that the executor runs is in ir.h. A Module is immutable after load() except for variable
// addresses; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

struct Function;  // ir.h: body, register slots, control flow

// One .param of an entry, by the PTX layout rules (natural alignment, declaration order).
struct Parameter {
  std::size_t offset = 0;  // bytes from the start of the parameter buffer
  std::size_t size = 0;    // bytes
  std::size_t align = 1;
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t static_shared_bytes = 0;  // .shared variables the entry reaches, calls followed
  std::size_t local_bytes = 0;          // per thread
  std::size_t const_bytes = 0;
  unsigned registers = 0;                    // a plausible figure for occupancy, at most 255
  unsigned max_threads[3] = {0, 0, 0};       // .maxntid, 0 = not given
  unsigned required_threads[3] = {0, 0, 0};  // .reqntid
  unsigned min_blocks = 0;                   // .minnctapersm
  unsigned max_registers = 0;                // .maxnreg
  const Function* function = nullptr;
};

enum class VariableSpace { kGlobal, kConst };

// A module-scope .global or .const variable.
struct Variable {
  std::string name;
  VariableSpace space = VariableSpace::kGlobal;
  std::size_t size = 0;  // bytes
  std::size_t align = 1;
  std::vector<std::byte> initial;  // at most size bytes; the rest is zero
  // Words of `initial` that hold an address: filled in by place().
  struct Relocation {
    std::size_t offset;  // where in the variable
    std::string symbol;  // variable or function named
    std::int64_t addend;
    std::size_t size;    // bytes written: 8, or less for a part of the address
    bool generic;        // generic(symbol)
    unsigned shift = 0;  // mask(symbol): the address is shifted right by this first
  };
  std::vector<Relocation> relocations;
  bool managed = false;       // .attribute(.managed)
  bool external = false;      // .extern
  std::uint64_t address = 0;  // device address, set by place()
};

struct ParseError {
  std::string message;               // one line: "ptx:12: unknown instruction 'foo.bar'"
  bool unsupported_version = false;  // .version newer than we know
  bool unsupported_target = false;   // .target newer than the device
};

class Module {
 public:
  // Parses and analyses `text` (NUL at the end optional). `device_cc` is 80 for 8.0. On failure
  // returns null and fills `error`. Unknown instructions are an error here, not at run time.
  static std::unique_ptr<Module> parse(std::string_view text, int device_cc, ParseError* error);
  ~Module();

  const std::vector<Kernel>& kernels() const;
  const Kernel* find_kernel(std::string_view name) const;
  // Module-scope variables in declaration order.
  const std::vector<Variable>& variables() const;
  const Variable* find_variable(std::string_view name) const;

  // Gives every variable its device address through `allocate` (called once per variable, returns 0
  // when out of memory), then hands out the initial bytes with addresses filled in through `write`.
  // False: out of memory.
  bool place(const std::function<std::uint64_t(const Variable&)>& allocate,
             const std::function<void(const Variable&, const std::vector<std::byte>&)>& write);

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  Module();
  std::unique_ptr<Impl> impl_;
};

}  // namespace softgpu::ptx
