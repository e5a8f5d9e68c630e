// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/signal_walk.h"

#include <ucontext.h>

#include "profiler/trace/own_memory.h"
#include "profiler/trace/records.h"
#include "runtime/driver.h"

namespace profiler {
namespace {

constexpr std::size_t kWord = sizeof(std::uintptr_t);
// Frames of ours on top of those that are kept: wrapper, timing, submission.
constexpr std::size_t kOwnFrames = 16;
constexpr std::size_t kMostFrames = kTraceDepth + kOwnFrames;
// Copies of the stack for one walk, at most: what bounds the time of a walk over large frames.
constexpr int kMostCopies = 6;
// Handlers of the program that were interrupted by one another.
constexpr int kMostSignalFrames = 4;

// Code that is looked up as one: smaller than most functions.
constexpr std::uintptr_t kBlockBytes = 64;

struct Registers {
  std::uintptr_t instruction = 0;
  std::uintptr_t stack = 0;
  std::uintptr_t frame = 0;
};

Registers registers_of(const mcontext_t& context) noexcept {
  Registers registers;
#if defined(__x86_64__)
  registers.instruction = static_cast<std::uintptr_t>(context.gregs[REG_RIP]);
  registers.stack = static_cast<std::uintptr_t>(context.gregs[REG_RSP]);
  registers.frame = static_cast<std::uintptr_t>(context.gregs[REG_RBP]);
#elif defined(__aarch64__)
  registers.instruction = context.pc;
  registers.stack = context.sp;
  registers.frame = context.regs[29];
#endif
  return registers;
}

// Memory that is mapped whatever happens: what is in use of a stack.
struct UsedStack {
  std::uintptr_t low = 0, high = 0;

  bool holds(std::uintptr_t from, std::size_t bytes) const noexcept {
    return from >= low && from < high && bytes <= high - from;
  }
};

UsedStack used_part(std::uintptr_t low, std::uintptr_t high, std::uintptr_t pointer) noexcept {
  return pointer >= low && pointer < high ? UsedStack{pointer, high} : UsedStack{};
}

UsedStack used_alternative(const stack_t& stack, std::uintptr_t pointer) noexcept {
  const auto low = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  return used_part(low, low + stack.ss_size, pointer);
}

class StackReader {
 public:
  StackReader(const UsedStack& own, const UsedStack& alternative, std::uint8_t* window) noexcept
      : own_(own), alternative_(alternative), window_(window) {}

  // The interrupted code of a handler is on the thread's own stack again.
  void enter(const ThreadStack& stack, std::uintptr_t pointer) noexcept {
    if (own_.high == 0) own_ = used_part(stack.low, stack.high, pointer);
  }

  bool read(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
    if (own_.holds(from, bytes) || alternative_.holds(from, bytes)) {
      copy_bytes(to, reinterpret_cast<const void*>(from), bytes);
      return true;
    }
    if (!holds(from, bytes) && !(copy_from(from) && holds(from, bytes))) return false;
    copy_bytes(to, window_ + (from - start_), bytes);
    return true;
  }
  bool word(std::uintptr_t from, std::uintptr_t* value) noexcept {
    return from % kWord == 0 && read(value, from, kWord);
  }

 private:
  bool holds(std::uintptr_t from, std::size_t bytes) const noexcept {
    return from >= start_ && size_ >= bytes && from - start_ <= size_ - bytes;
  }
  bool copy_from(std::uintptr_t from) noexcept {
    if (copies_ == kMostCopies) return false;
    // Where the stack is known, what lies elsewhere is none of it.
    if (own_.high != 0 || alternative_.high != 0) return false;
    if (!g_may_copy.load(std::memory_order_relaxed)) return false;
    ++copies_;
    start_ = from;
    size_ = copy_own_memory(window_, from, WalkMemory::kWindowBytes);
    return size_ != 0;
  }

  UsedStack own_, alternative_;
  std::uint8_t* window_;
  std::uintptr_t start_ = 0;
  std::size_t size_ = 0;
  int copies_ = 0;
};

std::size_t slot_of(std::uintptr_t value, std::size_t slots) noexcept {
  return (value * 0x9E3779B97F4A7C15u >> 32) % slots;
}

UnwindRule read_rule(const UnwindTable& table, std::uint32_t key, std::uintptr_t address,
                     WalkMemory& memory) noexcept {
  const std::uintptr_t block = address / kBlockBytes;
  WalkMemory::KnownFunction& known = memory.functions[slot_of(block, WalkMemory::kFunctions)];
  if (known.block != block || known.table != key || address < known.function.start ||
      address >= known.function.end) {
    known.block = 0;  // while it is not whole
    if (!find_unwind_function(table, address, &known.function)) return {};
    known.block = block;
    known.table = key;
  }
  return read_unwind_rule(known.function, address);
}

UnwindRule rule_for(std::uintptr_t address, WalkMemory& memory) noexcept {
  const UnwindTable table = find_unwind_table(address);
  if (table.header == 0) return {};
  WalkMemory::KnownRule& known = memory.rules[slot_of(address, WalkMemory::kRules)];
  const auto key = static_cast<std::uint32_t>(table.header);
  if (known.address != address || known.table != key) {
    known = {address, key, read_rule(table, key, address, memory)};
  }
  return known.rule;
}

class Walk {
 public:
  Walk(const ucontext_t& context, const ThreadStack& own, WalkMemory& memory) noexcept
      : now_(registers_of(context.uc_mcontext)),
        own_(own),
        memory_(memory),
        stack_(used_part(own.low, own.high, now_.stack),
               used_alternative(context.uc_stack, now_.stack), memory.window) {}

  std::uintptr_t instruction() const noexcept { return now_.instruction; }
  // Whether the instruction is one that was interrupted: no call returns to it.
  bool is_interrupted() const noexcept { return is_interrupted_; }

  // To the caller. False: there is none, or it cannot be found.
  bool leave() noexcept {
    const std::uintptr_t inside = is_interrupted_ ? now_.instruction : now_.instruction - 1;
    const UnwindRule rule = rule_for(inside, memory_);
    Registers caller = now_;
    switch (rule.frame) {
      case UnwindRule::Frame::kOutermost:
        return false;
      case UnwindRule::Frame::kSignal:
        return leave_handler();
      case UnwindRule::Frame::kUnknown:
        if (!follow_frame_pointer(&caller)) return false;
        break;
      default:
        if (!apply(rule, &caller)) return false;
    }
    // Callers' frames lie higher: what does not climb is no frame.
    if (caller.instruction == 0 || caller.stack <= now_.stack) return false;
    now_ = caller;
    is_interrupted_ = false;
    return true;
  }

 private:
  bool apply(const UnwindRule& rule, Registers* caller) noexcept {
    const std::uintptr_t base = rule.is_from_frame_pointer ? now_.frame : now_.stack;
    std::uintptr_t frame = base + static_cast<std::uintptr_t>(std::intptr_t{rule.offset});
    if (rule.frame == UnwindRule::Frame::kLoaded) {
      if (!stack_.word(frame, &frame)) return false;
      frame += static_cast<std::uintptr_t>(std::intptr_t{rule.addend});
    }
    if (frame < now_.stack || !stack_.word(frame - kWord, &caller->instruction)) return false;
    caller->stack = frame;
    if (rule.frame_pointer == UnwindRule::FramePointer::kKept) return true;
    const bool is_at_frame = rule.frame_pointer == UnwindRule::FramePointer::kAtFrame;
    const std::uintptr_t saved = is_at_frame ? frame : now_.frame;
    // A frame pointer that cannot be read may not be needed: the callers may go without.
    if (!stack_.word(saved + static_cast<std::uintptr_t>(std::intptr_t{rule.frame_pointer_offset}),
                     &caller->frame)) {
      caller->frame = 0;
    }
    return true;
  }

  bool follow_frame_pointer(Registers* caller) noexcept {
    if (now_.frame < now_.stack) return false;
    if (!stack_.word(now_.frame, &caller->frame)) return false;
    if (!stack_.word(now_.frame + kWord, &caller->instruction)) return false;
    caller->stack = now_.frame + 2 * kWord;
    return true;
  }

  // From a handler of the program to what its signal interrupted, perhaps on another stack.
  bool leave_handler() noexcept {
    if (++signal_frames_ > kMostSignalFrames) return false;
    mcontext_t context;
    const std::uintptr_t at = now_.stack + offsetof(ucontext_t, uc_mcontext);
    if (!stack_.read(&context, at, sizeof context)) return false;
    now_ = registers_of(context);
    stack_.enter(own_, now_.stack);
    is_interrupted_ = true;
    return now_.instruction != 0;
  }

  Registers now_;
  const ThreadStack& own_;
  WalkMemory& memory_;
  StackReader stack_;
  bool is_interrupted_ = true;
  int signal_frames_ = 0;
};

bool is_ours(std::uintptr_t address) noexcept {
  return runtime::is_own_address(reinterpret_cast<const void*>(address));
}

// As return addresses are told apart from the first, interrupted one: whoever looks up a return
// address steps back into the call, so an interrupted instruction among them goes one forward; and
// a return address that comes first, because what was interrupted is ours, one back.
std::size_t leave_ours_out(const std::uintptr_t* raw, std::size_t count, std::uintptr_t* addresses,
                           std::size_t capacity) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count && kept < capacity; ++i) {
    if (is_ours(raw[i])) continue;
    addresses[kept] = kept == 0 && i != 0 ? raw[i] - 1 : raw[i];
    ++kept;
  }
  if (kept != 0) return kept;
  kept = count < capacity ? count : capacity;
  copy_bytes(addresses, raw, kept * sizeof *raw);
  return kept;
}

}  // namespace

std::uintptr_t interrupted_stack(const void* context) noexcept {
  return registers_of(static_cast<const ucontext_t*>(context)->uc_mcontext).stack;
}

std::size_t walk_interrupted(const void* context, const ThreadStack& own, WalkMemory& memory,
                             std::uintptr_t* addresses, std::size_t capacity) noexcept {
  Walk walk(*static_cast<const ucontext_t*>(context), own, memory);
  std::uintptr_t raw[kMostFrames];
  const std::size_t most =
      capacity + kOwnFrames < kMostFrames ? capacity + kOwnFrames : kMostFrames;
  std::size_t count = 0;
  do {
    raw[count] = walk.instruction() + (walk.is_interrupted() && count != 0 ? 1 : 0);
    ++count;
  } while (count < most && walk.leave());
  return leave_ours_out(raw, count, addresses, capacity);
}

}  // namespace profiler
