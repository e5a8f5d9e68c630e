// SPDX-License-Identifier: Apache-2.0
// Calls of functions that the device supplies: vprintf, __assertfail, malloc, free and
// cudaGraphSetConditional. They run to their end inside the call instruction, lane by lane, on the
// thread that steps the grid.
#pragma once

#include <cstdint>
#include <string>

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

// Arguments and result of one call of a builtin.
class BuiltinCall {
 public:
  BuiltinCall(Exec& x, const Call& call, const Function& callee)
      : x_(x), call_(call), callee_(callee) {}
  // Up to 8 bytes, zero-extended.
  std::uint64_t argument(unsigned index, unsigned lane) const;
  void set_result(unsigned lane, std::uint64_t value) const;

 private:
  void argument_bytes(unsigned index, unsigned lane, void* to, unsigned size) const;

  Exec& x_;
  const Call& call_;
  const Function& callee_;
};

void run_vprintf(Exec& x, const BuiltinCall& call, Mask lanes);
void run_assertfail(Exec& x, const BuiltinCall& call, Mask lanes);
void run_malloc(Exec& x, const BuiltinCall& call, Mask lanes);
void run_free(Exec& x, const BuiltinCall& call, Mask lanes);
void run_set_conditional(Exec& x, const BuiltinCall& call, Mask lanes);

Handler select_call(const Instruction& i, bool indirect);

}  // namespace softgpu::ptx
