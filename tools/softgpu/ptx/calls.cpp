// SPDX-License-Identifier: Apache-2.0
// Function calls of a warp: direct, through pointers with a target per lane, recursion, and the
// frames of local memory they need. Runs on the thread that steps the grid.
#include "tools/softgpu/ptx/calls.h"

#include <algorithm>
#include <cstdio>

namespace softgpu::ptx {

namespace {

// Per thread. More than any device grants by default (1 KiB) and enough for deep recursion in
// tests; a runaway recursion stops after 32 times this per warp.
constexpr std::uint64_t kStackLimit = 512 * 1024;
// What a frame without local variables costs at least: the return address and saved registers of
// real hardware.
constexpr std::uint64_t kLeastFrame = 64;

std::byte* frame_memory(Warp& warp, const Frame& frame, unsigned lane, std::uint64_t offset) {
  return warp.local.data() + std::size_t{lane} * warp.local_stride + frame.local_base + offset;
}

// An argument or result is at most this big in a register.
constexpr std::uint32_t kRegisterBytes = 8;

struct Place {
  Warp& warp;
  Frame& frame;
  const Operand& operand;
};

void read_place(const Place& from, unsigned lane, std::byte* to, std::uint32_t size) {
  switch (from.operand.kind) {
    case OperandKind::kFrame:
      std::memcpy(to, frame_memory(from.warp, from.frame, lane, from.operand.value), size);
      return;
    case OperandKind::kReg:
      std::memcpy(to, &from.frame.rows[from.operand.index].lane[lane],
                  std::min(size, kRegisterBytes));
      return;
    case OperandKind::kPred: {
      const Mask mask = from.frame.predicates[from.operand.index + kFirstPredicate];
      to[0] = static_cast<std::byte>(((mask >> lane) & 1) ^ (from.operand.negate ? 1 : 0));
      return;
    }
    case OperandKind::kImm:
      std::memcpy(to, &from.operand.value, std::min(size, kRegisterBytes));
      return;
    default:
      return;
  }
}

void write_place(const Place& to, unsigned lane, const std::byte* from, std::uint32_t size) {
  switch (to.operand.kind) {
    case OperandKind::kFrame:
      std::memcpy(frame_memory(to.warp, to.frame, lane, to.operand.value), from, size);
      return;
    case OperandKind::kReg: {
      std::uint64_t bits = 0;
      std::memcpy(&bits, from, std::min(size, kRegisterBytes));
      to.frame.rows[to.operand.index].lane[lane] = bits;
      return;
    }
    case OperandKind::kPred: {
      Mask& mask = to.frame.predicates[to.operand.index + kFirstPredicate];
      const Mask bit = Mask{1} << lane;
      mask = from[0] != std::byte{0} ? mask | bit : mask & ~bit;
      return;
    }
    default:
      return;
  }
}

void copy_value(const Place& from, const Place& to, Mask lanes, std::uint32_t size) {
  std::byte small[64];
  std::vector<std::byte> large;
  std::byte* buffer = small;
  if (size > sizeof small) {
    large.resize(size);
    buffer = large.data();
  }
  for_each_lane(lanes, [&](unsigned lane) {
    std::memset(buffer, 0, size);
    read_place(from, lane, buffer, size);
    write_place(to, lane, buffer, size);
  });
}

std::uint32_t value_size(const CallOperand& outer, const Formal& inner) {
  return std::max<std::uint32_t>(1,
                                 outer.size != 0 ? std::min(outer.size, inner.size) : inner.size);
}

const Call& call_of(const Frame& caller, const Op& op) {
  return caller.code->function->calls[op.source->target];
}

void copy_arguments(Warp& warp, Frame& caller, Frame& callee, const Call& call) {
  const auto& formals = callee.code->function->parameters;
  const std::size_t count = std::min(formals.size(), call.arguments.size());
  for (std::size_t k = 0; k < count; ++k) {
    copy_value({warp, caller, call.arguments[k].place}, {warp, callee, formals[k].place},
               callee.lanes, value_size(call.arguments[k], formals[k]));
  }
}

// A split of `lanes` about to run the first instruction of `code`; false after a fault.
bool enter_function(Exec& x, const Op& op, const Code& code, Mask lanes, Token* token,
                    Split* split) {
  Warp& warp = *x.warp;
  const Function& callee = *code.function;
  const Function& caller = *x.frame->code->function;
  const std::uint64_t align = std::max<std::uint32_t>(callee.frame_align, 16);
  const std::uint64_t used = std::max<std::uint64_t>(caller.frame_bytes, kLeastFrame);
  const std::uint64_t base = (x.frame->local_base + used + align - 1) / align * align;
  if (!reserve_local(warp, base + callee.frame_bytes)) {
    x.fail(Fault::kStackOverflow, static_cast<unsigned>(std::countr_zero(lanes)),
           "stack overflow calling '" + callee.name + "'");
    return false;
  }
  Frame* frame = new_frame(*x.grid, code);
  frame->caller = x.frame;
  frame->call = &op;
  frame->return_pc = x.pc;
  frame->lanes = lanes;
  frame->local_base = static_cast<std::uint32_t>(base);
  frame->depth = x.frame->depth + 1;
  frame->back = new_token(*x.grid);
  frame->back->expected = lanes;
  frame->back->parent = token;
  frame->back->frame = frame;
  copy_arguments(warp, *x.frame, *frame, call_of(*x.frame, op));
  split->mask = lanes;
  split->pc = 0;
  split->frame = frame;
  split->token = frame->back;
  return true;
}

void call_builtin(Exec& x, const Op& op, const Function& callee, Mask lanes) {
  const Call& call = call_of(*x.frame, op);
  BuiltinCall builtin(x, call, callee);
  switch (callee.builtin) {
    case Builtin::kVprintf:
      run_vprintf(x, builtin, lanes);
      return;
    case Builtin::kAssertfail:
      run_assertfail(x, builtin, lanes);
      return;
    case Builtin::kMalloc:
      run_malloc(x, builtin, lanes);
      return;
    case Builtin::kFree:
      run_free(x, builtin, lanes);
      return;
    case Builtin::kSetConditional:
      run_set_conditional(x, builtin, lanes);
      return;
    case Builtin::kNone:
      x.fail(Fault::kInvalidPc, static_cast<unsigned>(std::countr_zero(lanes)),
             "call of undefined function '" + callee.name + "'");
      return;
  }
}

void call_function(Exec& x, const Op& op, std::uint32_t index, Mask lanes) {
  Translation& translation = x.grid->translation;
  const Function& callee = *translation.module().functions[index];
  if (!callee.defined) {
    call_builtin(x, op, callee, lanes);
    return;
  }
  separate(x, lanes);
  Split split;
  if (!enter_function(x, op, translation.code(index), lanes, x.token, &split)) return;
  enter_frame(x, split.frame, split.token, 0);
}

// The function index a lane's pointer names, or a fault.
bool function_of(Exec& x, unsigned lane, std::uint64_t pointer, std::uint32_t* index) {
  const std::uint64_t offset = pointer - kCodeWindow;
  if (offset >= x.grid->translation.module().functions.size()) {
    char text[64];
    std::snprintf(text, sizeof text, "indirect call of 0x%llx, which is no function",
                  static_cast<unsigned long long>(pointer));
    x.fail(Fault::kInvalidPc, lane, text);
    return false;
  }
  *index = static_cast<std::uint32_t>(offset);
  return true;
}

void call_direct(Exec& x, const Op& op, Mask mask) {
  call_function(x, op, call_of(*x.frame, op).function, mask);
}

void call_indirect(Exec& x, const Op& op, Mask mask) {
  const Call& call = call_of(*x.frame, op);
  const Row& pointers = x.frame->rows[call.pointer.index];
  std::uint32_t targets[kLanes] = {};
  Mask left = mask;
  for_each_lane(mask, [&](unsigned lane) {
    if (x.event == Event::kNone && !function_of(x, lane, pointers.lane[lane], &targets[lane]))
      left = 0;
  });
  if (left == 0) return;
  const auto first = static_cast<unsigned>(std::countr_zero(mask));
  Mask same = 0;
  for_each_lane(mask, [&](unsigned lane) {
    if (targets[lane] == targets[first]) same |= Mask{1} << lane;
  });
  if (same == mask) {
    call_function(x, op, targets[first], mask);
    return;
  }
  // Several targets: the lanes of the first call now; the others repeat this instruction with those
  // done waiting.
  const std::uint32_t here = x.pc - 1;
  const Mask others = mask & ~same;
  separate(x, mask);
  const Group groups[2] = {{others, here}, {same, here}};
  diverge(x, groups, 2, x.pc);
}

void ret(Exec& x, const Op&, Mask mask) {
  return_lanes(x, mask);
}

}  // namespace

bool reserve_local(Warp& warp, std::uint64_t bytes) {
  if (bytes <= warp.local_stride) return true;
  const std::uint64_t own = warp.cta->grid->config.kernel->local_bytes;
  if (bytes > kStackLimit + own) return false;
  std::uint64_t stride = std::max<std::uint64_t>(bytes, 2ull * warp.local_stride);
  stride = (stride + 63) / 64 * 64;
  std::vector<std::byte> moved(stride * kLanes);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::copy_n(warp.local.data() + std::size_t{lane} * warp.local_stride, warp.local_stride,
                moved.data() + std::size_t{lane} * stride);
  }
  warp.local = std::move(moved);
  warp.local_stride = static_cast<std::uint32_t>(stride);
  return true;
}

void copy_results(Warp& warp, const Frame& callee, Mask lanes) {
  Frame& caller = *callee.caller;
  const Call& call = call_of(caller, *callee.call);
  const auto& results = callee.code->function->results;
  const std::size_t count = std::min(results.size(), call.results.size());
  for (std::size_t k = 0; k < count; ++k) {
    copy_value({warp, const_cast<Frame&>(callee), results[k].place},
               {warp, caller, call.results[k].place}, lanes,
               value_size(call.results[k], results[k]));
  }
}

void BuiltinCall::argument_bytes(unsigned index, unsigned lane, void* to, unsigned size) const {
  std::memset(to, 0, size);
  if (index >= call_.arguments.size()) return;
  const CallOperand& argument = call_.arguments[index];
  const std::uint32_t held = argument.size != 0 ? argument.size : size;
  read_place({*x_.warp, *x_.frame, argument.place}, lane, static_cast<std::byte*>(to),
             std::min<std::uint32_t>(held, size));
}

std::uint64_t BuiltinCall::argument(unsigned index, unsigned lane) const {
  std::uint64_t value = 0;
  argument_bytes(index, lane, &value, sizeof value);
  return value;
}

void BuiltinCall::set_result(unsigned lane, std::uint64_t value) const {
  if (call_.results.empty()) return;
  const CallOperand& result = call_.results[0];
  std::uint32_t size = result.size;
  if (size == 0) size = callee_.results.empty() ? 8 : callee_.results[0].size;
  std::byte bytes[8];
  std::memcpy(bytes, &value, sizeof bytes);
  write_place({*x_.warp, *x_.frame, result.place}, lane, bytes, std::min<std::uint32_t>(size, 8));
}

Handler select_call(const Instruction& i, bool indirect) {
  if (i.op == Opcode::kCall) return indirect ? call_indirect : call_direct;
  return i.op == Opcode::kRet ? ret : nullptr;
}

}  // namespace softgpu::ptx
