// SPDX-License-Identifier: Apache-2.0
// The form that runs: each Instruction becomes an Op with the function that executes it for a warp
// and operands as row numbers. Built once per function on first use and shared by all runs of the
// module; immutable after that.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/softgpu/ptx/ir.h"
#include "tools/softgpu/ptx/lanes.h"

namespace softgpu::ptx {

struct Exec;
struct Op;

// Executes `op` for the lanes of `mask`, which is not empty and already has the guard applied.
using Handler = void (*)(Exec& x, const Op& op, Mask mask);

// A register row (>= 0) or a constant row (< 0: ~index). Predicates: slot << 1 | negate.
using Ref = std::int32_t;

inline constexpr Ref kFalsePredicate = 0;      // slot 0 holds no lane
inline constexpr Ref kTruePredicate = 1;       // its negation
inline constexpr Ref kPredicateSink = 1 << 1;  // slots 1 and 2 take what nobody reads
inline constexpr Ref kSecondSink = 2 << 1;
inline constexpr std::uint32_t kFirstPredicate = 3;  // of the function's own

// Where the address of a memory operand comes from.
enum class Base : std::uint8_t { kRow, kFrame, kDynShared };

struct Op {
  Handler run = nullptr;
  Ref d = 0;                       // first destination
  Ref p = 0;                       // second destination where it is a predicate
  Ref a = 0, b = 0, c = 0, e = 0;  // sources in order
  Ref guard = kTruePredicate;
  std::uint32_t target = 0;
  std::uint32_t reconverge = 0;
  std::uint32_t list = 0;  // into Code::refs: destinations then sources, for vectors and calls
  Base base = Base::kRow;
  bool guarded = false;
  bool has_p = false;              // a second destination is wanted
  bool has_d = true;               // the first destination is not a sink
  std::uint64_t displacement = 0;  // added to an address
  const Instruction* source = nullptr;
};

struct Code {
  const Function* function = nullptr;
  std::vector<Op> ops;
  std::vector<Row> constants;
  std::vector<Ref> refs;
  std::vector<std::vector<std::uint32_t>> tables;  // brx.idx, as op indices
  std::uint32_t rows = 0;                          // register rows of a frame, scratch included
  std::uint32_t predicates = 0;                    // predicate masks of a frame
};

// All functions of one module in executable form, each made when it is first called. Any thread.
class Translation {
 public:
  explicit Translation(const Module::Impl& module);
  const Code& code(std::uint32_t function);
  const Module::Impl& module() const { return module_; }

  // The translation that belongs to `module`, made on first use.
  static Translation& of(const Module& module);

 private:
  struct Entry {
    std::once_flag once;
    std::unique_ptr<const Code> code;
  };
  const Module::Impl& module_;
  std::unique_ptr<Entry[]> entries_;
};

// One function per family of instructions; null when the form is not one of theirs.
Handler select_integer(const Instruction& i);
Handler select_float(const Instruction& i);
Handler select_half(const Instruction& i);
Handler select_compare(const Instruction& i);
Handler select_move(const Instruction& i);
Handler select_convert(const Instruction& i);
Handler select_memory(const Instruction& i);
Handler select_atomic(const Instruction& i);
Handler select_warp(const Instruction& i);
Handler select_control(const Instruction& i);

// Hidden operations that bring a special register, a frame address or the start of dynamic shared
// memory into a row. read_special: target is the Special, displacement its number.
void read_special(Exec& x, const Op& op, Mask mask);
void read_frame_address(Exec& x, const Op& op, Mask mask);
void read_dynamic_shared(Exec& x, const Op& op, Mask mask);
// For a form nobody executes: an illegal instruction fault that names it.
void run_unsupported(Exec& x, const Op& op, Mask mask);

}  // namespace softgpu::ptx
