// SPDX-License-Identifier: Apache-2.0
// Runs the splits of a warp: the interpreter loop, divergence, reconvergence, returns and exits.
// Owned by the thread that steps the grid. Allocates only when a warp diverges or calls deeper than
// before.
#include <algorithm>

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

// --- tokens and frames
// --------------------------------------------------------------------------------------------------

Token* new_token(Grid& grid) {
  if (grid.free_tokens.empty()) {
    grid.tokens.push_back(std::make_unique<Token>());
    return grid.tokens.back().get();
  }
  Token* token = grid.free_tokens.back();
  grid.free_tokens.pop_back();
  *token = Token{};
  return token;
}

Frame* new_frame(Grid& grid, const Code& code) {
  Frame* frame = nullptr;
  if (grid.free_frames.empty()) {
    grid.frames.push_back(std::make_unique<Frame>());
    frame = grid.frames.back().get();
  } else {
    frame = grid.free_frames.back();
    grid.free_frames.pop_back();
  }
  frame->code = &code;
  frame->caller = nullptr;
  frame->back = nullptr;
  frame->call = nullptr;
  frame->return_pc = 0;
  frame->lanes = 0;
  frame->carry = 0;
  frame->local_base = 0;
  frame->depth = 0;
  // Registers start at zero, so that a kernel that reads one before writing it does so
  // reproducibly.
  frame->rows.assign(code.rows, Row{});
  frame->predicates.assign(code.predicates, 0);
  return frame;
}

namespace {

void recycle(Grid& grid, Token* token) {
  grid.free_tokens.push_back(token);
}

void recycle(Grid& grid, Frame* frame) {
  grid.free_frames.push_back(frame);
}

bool meets(const Split& split) {
  return split.token != nullptr && split.token->frame == split.frame && split.token->pc == split.pc;
}

void complete(Warp& warp, Token* token);

void note_arrival(Warp& warp, Token* token, Mask lanes) {
  if (token->arrived == 0) {
    token->first_arrival = warp.executed;
    token->first_polls = warp.polls;
  }
  token->arrived |= lanes;
}

// Adds a split, unless it is where it must wait for others.
void place(Warp& warp, const Split& split) {
  if (!meets(split)) {
    warp.splits.push_back(split);
    return;
  }
  note_arrival(warp, split.token, split.mask);
  if (split.token->arrived == split.token->expected) complete(warp, split.token);
}

// Sends the lanes that arrived at `token` on their way; the token goes when nobody is expected any
// more.
void complete(Warp& warp, Token* token) {
  Grid& grid = *warp.cta->grid;
  Split split;
  split.mask = token->arrived;
  split.token = token->parent;
  split.frame = token->frame;
  split.pc = token->pc;
  token->expected &= ~token->arrived;
  token->arrived = 0;
  if (token->pc == kNoPc) {
    Frame* frame = token->frame;
    copy_results(warp, *frame, split.mask);
    split.pc = frame->return_pc;
    split.frame = frame->caller;
    frame->lanes &= ~split.mask;
    if (frame->lanes == 0) recycle(grid, frame);
  }
  if (token->expected == 0) recycle(grid, token);
  place(warp, split);
}

void remove_current(Warp& warp) {
  warp.splits.erase(warp.splits.begin() + static_cast<std::ptrdiff_t>(warp.current));
}

void save(const Exec& x) {
  Split& split = x.warp->splits[x.warp->current];
  split.mask = x.mask;
  split.pc = x.pc;
  split.frame = x.frame;
  split.token = x.token;
  split.state = SplitState::kReady;
}

// The current split loses `lanes`, and ends when none are left.
void drop_lanes(Exec& x, Mask lanes) {
  x.mask &= ~lanes;
  if (x.mask != 0) return;
  remove_current(*x.warp);
  x.event = Event::kSwitch;
}

// Lanes will not come to any token from `token` up to `end`. Only the innermost that still expects
// somebody can become complete by that: the lanes it expects have not arrived further out.
Token* forget_lanes(Exec& x, Token* token, const Token* end, Mask lanes) {
  Token* innermost = nullptr;
  while (token != end) {
    Token* parent = token->parent;
    token->expected &= ~lanes;
    if (token->expected == 0) {
      recycle(*x.grid, token);
    } else if (innermost == nullptr) {
      innermost = token;
    }
    token = parent;
  }
  return innermost;
}

}  // namespace

// --- what handlers use
// ----------------------------------------------------------------------------------------------------

void enter_frame(Exec& x, Frame* frame, Token* token, std::uint32_t pc) {
  x.frame = frame;
  x.token = token;
  x.pc = pc;
  x.rows = frame->rows.data();
  x.constants = frame->code->constants.data();
  x.predicates = frame->predicates.data();
  x.meet = token != nullptr && token->frame == frame ? token->pc : kNoPc;
}

Split& suspend(Exec& x) {
  save(x);
  x.event = Event::kSwitch;
  return x.warp->splits[x.warp->current];
}

void diverge(Exec& x, const Group* groups, unsigned count, std::uint32_t reconverge) {
  Warp& warp = *x.warp;
  Token* token = x.token;
  const bool meets_again = reconverge < x.frame->code->ops.size();
  if (meets_again && x.meet != reconverge) {
    token = new_token(*x.grid);
    token->pc = reconverge;
    token->expected = x.mask;
    token->parent = x.token;
    token->frame = x.frame;
  }
  bool placed = false;
  for (unsigned k = 0; k < count; ++k) {
    if (meets_again && groups[k].pc == reconverge) {
      note_arrival(warp, token, groups[k].mask);
    } else if (!placed) {
      placed = true;
      x.mask = groups[k].mask;
      enter_frame(x, x.frame, token, groups[k].pc);
    } else {
      Split split;
      split.mask = groups[k].mask;
      split.pc = groups[k].pc;
      split.frame = x.frame;
      split.token = token;
      warp.splits.push_back(split);
    }
  }
}

void separate(Exec& x, Mask lanes) {
  const Mask rest = x.mask & ~lanes;
  if (rest == 0) return;
  Token* token = new_token(*x.grid);
  token->pc = x.pc;
  token->expected = x.mask;
  token->parent = x.token;
  token->frame = x.frame;
  note_arrival(*x.warp, token, rest);
  x.mask = lanes;
  x.token = token;
  x.meet = token->pc;
}

void exit_lanes(Exec& x, Mask lanes) {
  Warp& warp = *x.warp;
  warp.alive &= ~lanes;
  x.cta->alive -= static_cast<unsigned>(std::popcount(lanes));
  Token* token = x.token;
  Frame* frame = x.frame;
  drop_lanes(x, lanes);
  Token* innermost = forget_lanes(x, token, nullptr, lanes);
  while (frame != nullptr) {
    Frame* caller = frame->caller;
    frame->lanes &= ~lanes;
    if (frame->lanes == 0) recycle(*x.grid, frame);
    frame = caller;
  }
  if (innermost != nullptr && innermost->arrived == innermost->expected) complete(warp, innermost);
  finish_warp_syncs(warp);
  finish_barriers(*x.cta);
}

void return_lanes(Exec& x, Mask lanes) {
  Token* back = x.frame->back;
  if (back == nullptr) {
    exit_lanes(x, lanes);
    return;
  }
  Warp& warp = *x.warp;
  Token* token = x.token;
  drop_lanes(x, lanes);
  Token* innermost = forget_lanes(x, token, back, lanes);
  note_arrival(warp, back, lanes);
  Token* candidate = innermost != nullptr ? innermost : back;
  if (candidate->arrived == candidate->expected) complete(warp, candidate);
}

void merge_splits(Warp& warp) {
  std::vector<Split>& splits = warp.splits;
  warp.merge = false;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].state != SplitState::kReady) continue;
    for (std::size_t k = splits.size() - 1; k > i; --k) {
      const Split& other = splits[k];
      if (other.state != SplitState::kReady || other.frame != splits[i].frame ||
          other.pc != splits[i].pc || other.token != splits[i].token) {
        continue;
      }
      splits[i].mask |= other.mask;
      splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
}

bool has_ready_split(const Warp& warp) {
  return std::any_of(warp.splits.begin(), warp.splits.end(),
                     [](const Split& s) { return s.state == SplitState::kReady; });
}

namespace {

// The token at which lanes have waited longest.
Token* longest_waiting(const Warp& warp) {
  Token* found = nullptr;
  for (const Split& split : warp.splits) {
    for (Token* t = split.token; t != nullptr; t = t->parent) {
      if (t->arrived != 0 && (found == nullptr || t->first_arrival < found->first_arrival)) {
        found = t;
      }
    }
  }
  return found;
}

// Picks a ready split, the newest first, as a stack would. False when all are blocked.
bool pick(Exec& x) {
  Warp& warp = *x.warp;
  if (warp.merge) merge_splits(warp);
  for (std::size_t k = warp.splits.size(); k-- > 0;) {
    const Split& split = warp.splits[k];
    if (split.state != SplitState::kReady) continue;
    warp.current = k;
    x.mask = split.mask;
    enter_frame(x, split.frame, split.token, split.pc);
    return true;
  }
  return false;
}

bool resume(Exec& x) {
  Warp& warp = *x.warp;
  if (warp.merge || warp.current >= warp.splits.size() ||
      warp.splits[warp.current].state != SplitState::kReady) {
    return pick(x);
  }
  const Split& split = warp.splits[warp.current];
  x.mask = split.mask;
  enter_frame(x, split.frame, split.token, split.pc);
  return true;
}

// The current split is at the pc of its token. True when all came, and the split goes on as the
// union.
bool arrive(Exec& x) {
  Token* token = x.token;
  note_arrival(*x.warp, token, x.mask);
  if (token->arrived != token->expected) {
    remove_current(*x.warp);
    return pick(x);
  }
  x.mask = token->arrived;
  Token* parent = token->parent;
  recycle(*x.grid, token);
  enter_frame(x, x.frame, parent, x.pc);
  return true;
}

}  // namespace

bool release_early(Warp& warp) {
  Token* token = longest_waiting(warp);
  if (token == nullptr) return false;
  complete(warp, token);
  return true;
}

// Heuristic: lanes that run long and look at shared state often while others wait for them may be
// waiting for those others (a lock held by a lane of the same warp). Too low costs kernels with
// long divergent loops their reconvergence; too high costs that many instructions for each time a
// lock changes hands.
static bool seems_to_spin(const Warp& warp, const Token& token) {
  constexpr std::uint64_t kInstructions = 2048;
  constexpr std::uint64_t kPolls = 64;
  return warp.executed - token.first_arrival > kInstructions &&
         warp.polls - token.first_polls > kPolls;
}

void rotate_splits(Warp& warp) {
  if (warp.splits.empty()) return;
  const Token* token = longest_waiting(warp);
  if (token != nullptr && seems_to_spin(warp, *token)) release_early(warp);
  if (warp.splits.size() < 2) return;
  merge_splits(warp);
  const std::size_t count = warp.splits.size();
  for (std::size_t step = 1; step <= count; ++step) {
    const std::size_t k = (warp.current + step) % count;
    if (warp.splits[k].state != SplitState::kReady) continue;
    warp.current = k;
    return;
  }
}

void start_warp(Warp& warp) {
  Grid& grid = *warp.cta->grid;
  Frame* frame = new_frame(grid, grid.entry);
  frame->lanes = warp.launched;
  warp.alive = warp.launched;
  Split split;
  split.mask = warp.launched;
  split.frame = frame;
  warp.splits.push_back(split);
}

Slice run_warp(Warp& warp, std::uint64_t budget) {
  Exec x;
  x.warp = &warp;
  x.cta = warp.cta;
  x.grid = warp.cta->grid;
  Slice slice;
  if (!resume(x)) return {0, true};
  while (slice.used < budget) {
    while (x.pc == x.meet) {
      if (!arrive(x)) return {slice.used, true};
    }
    const Op& op = x.frame->code->ops[x.pc];
    ++x.pc;
    ++slice.used;
    ++warp.executed;
    ++x.grid->executed;
    Mask mask = x.mask;
    if (op.guarded) {
      mask &= x.predicate(op.guard);
      if (mask == 0) continue;
    }
    op.run(x, op, mask);
    if (x.event == Event::kNone) [[likely]]
      continue;
    const Event event = x.event;
    x.event = Event::kNone;
    if (event == Event::kFault) return {slice.used, true};
    if (event == Event::kYield) {
      save(x);
      return {slice.used, true};
    }
    if (!pick(x)) return {slice.used, true};
  }
  save(x);
  return slice;
}

}  // namespace softgpu::ptx
