// SPDX-License-Identifier: Apache-2.0
// The state of a running grid: CTAs, warps, splits (lanes of a warp that run together), call frames
// and the tokens at which splits wait for each other. Owned by one KernelRun and touched only by
// the thread that steps it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/softgpu/ptx/code.h"
#include "tools/softgpu/ptx/kernel_run.h"
#include "tools/softgpu/ptx/lanes.h"
#include "tools/softgpu/ptx/memory.h"

namespace softgpu::ptx {

// Where %envreg1:%envreg2 point in a cooperative launch: the words that cooperative groups count
// grid barriers in.
inline constexpr std::uint64_t kGridWorkspace = 0x0000'7400'0000'0000ull;
inline constexpr std::uint64_t kGridWorkspaceBytes = 64;

// The multiprocessors we claim, as the driver's attributes say, and what one of them holds.
inline constexpr unsigned kSmCount = 108;
inline constexpr unsigned kSmThreads = 2048;
inline constexpr unsigned kSmCtas = 32;

inline constexpr std::uint32_t kNoPc = 0xffffffffu;
inline constexpr unsigned kBarriers = 16;

struct Frame;
struct Warp;
struct Cta;
struct Grid;

// Where diverged lanes meet again: instruction `pc` of `frame`, or the return of `frame` (pc ==
// kNoPc). Complete when all of `expected` arrived. Waiting here is an optimisation, not a promise:
// when lanes of the warp could otherwise not make progress, those that arrived go on alone
// (release_early).
struct Token {
  std::uint32_t pc = kNoPc;
  Mask expected = 0;
  Mask arrived = 0;
  Token* parent = nullptr;
  Frame* frame = nullptr;
  std::uint64_t first_arrival = 0;  // Warp::executed then
  std::uint64_t first_polls = 0;    // Warp::polls then
};

// One activation of a function by some lanes of a warp.
struct Frame {
  const Code* code = nullptr;
  Frame* caller = nullptr;
  Token* back = nullptr;         // the token of the return; null in the entry
  const Op* call = nullptr;      // in the caller
  std::uint32_t return_pc = 0;   // in the caller
  Mask lanes = 0;                // still inside
  Mask carry = 0;                // condition code of add.cc and friends
  std::uint32_t local_base = 0;  // of its local memory, in each thread's stack
  std::uint32_t depth = 0;
  std::vector<Row> rows;
  std::vector<Mask> predicates;
};

enum class SplitState : std::uint8_t { kReady, kAtBarrier, kAtWarpSync };

struct Split {
  Mask mask = 0;
  std::uint32_t pc = 0;
  Frame* frame = nullptr;
  Token* token = nullptr;
  SplitState state = SplitState::kReady;
  const Op* waiting = nullptr;  // the barrier or warp operation it waits in
  Mask executing = 0;           // lanes of it that take part (guard applied)
  Mask wanted = 0;              // kAtWarpSync: lanes named by the member mask
  std::uint32_t barrier = 0;    // kAtBarrier
};

struct Warp {
  Cta* cta = nullptr;
  unsigned index = 0;
  Mask launched = 0;  // lanes that exist (the last warp of a block may be partial)
  Mask alive = 0;
  std::vector<Split> splits;
  std::size_t current = 0;
  bool merge = false;            // splits were released together: look for equal ones
  std::uint64_t executed = 0;    // warp instructions
  std::uint64_t polls = 0;       // atomics and loads that may see another thread's progress
  std::vector<std::byte> local;  // kLanes * local_stride
  std::uint32_t local_stride = 0;
};

struct Barrier {
  std::uint32_t threads = 0;  // that must arrive; 0: all of the CTA that have not exited
  std::uint32_t arrived = 0;  // by bar.arrive, counted in threads
};

struct Cta {
  Grid* grid = nullptr;
  Dim3 index;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  std::byte* shared_start = nullptr;
  Barrier barriers[kBarriers];
  unsigned alive = 0;                // threads
  unsigned waiting[kBarriers] = {};  // threads blocked in each barrier
  std::size_t current = 0;           // warp
  std::uint64_t quantum_left = 0;    // of that warp
};

// The last range that an instruction hit.
struct RangeCache {
  std::uint64_t base = 0, size = 0;
  std::byte* backing = nullptr;
  bool writable = false;
};
inline constexpr unsigned kRangeCaches =
    64;  // by instruction: most instructions stay in one allocation

struct Grid {
  Grid(LaunchConfig launch, GlobalMemory& global, Device& owner);

  LaunchConfig config;
  GlobalMemory& memory;
  Device& device;
  Translation& translation;
  const Code& entry;
  std::shared_ptr<const RangeTable> ranges;
  RangeCache caches[kRangeCaches];
  std::vector<Row> thread_index[3];  // %tid.x, y, z for each warp of a block
  unsigned block_threads = 0;
  unsigned block_warps = 0;
  std::uint32_t shared_bytes = 0;
  std::uint64_t executed = 0;  // warp instructions, the device clock
  std::uint64_t next_cta = 0;
  std::uint64_t cta_count = 0;
  std::vector<std::unique_ptr<Cta>> resident;
  std::size_t current = 0;      // resident CTA
  std::uint64_t turn_left = 0;  // warp instructions before the next one's turn
  std::uint64_t resident_limit = 0;
  std::uint64_t fruitless_turns = 0;  // since a CTA last ended
  std::uint64_t number = 0;           // %gridid
  alignas(8) std::byte workspace[kGridWorkspaceBytes] = {};
  // All that were ever made, and those not in use.
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::unique_ptr<Token>> tokens;
  std::vector<Frame*> free_frames;
  std::vector<Token*> free_tokens;
  Fault fault = Fault::kNone;
  std::string fault_message;
};

// What a handler may ask of the interpreter loop.
enum class Event : std::uint8_t {
  kNone,
  kSwitch,  // the current split blocked, ended or changed: take its state from the warp again
  kYield,   // give others a turn
  kFault,
};

// The split that runs, with what every instruction needs at hand. pc is already past the
// instruction that runs.
struct Exec {
  Row* rows = nullptr;
  const Row* constants = nullptr;
  Mask* predicates = nullptr;
  Mask mask = 0;
  std::uint32_t pc = 0;
  std::uint32_t meet = kNoPc;  // pc of the token if it is in this frame
  Event event = Event::kNone;
  Frame* frame = nullptr;
  Token* token = nullptr;
  Warp* warp = nullptr;
  Cta* cta = nullptr;
  Grid* grid = nullptr;

  Row& dst(Ref ref) { return rows[ref]; }
  const Row& src(Ref ref) const { return ref >= 0 ? rows[ref] : constants[~ref]; }
  Mask predicate(Ref ref) const { return predicates[ref >> 1] ^ (ref & 1 ? kFullMask : 0); }
  void set_predicate(Ref ref, Mask active, Mask value) {
    Mask& slot = predicates[ref >> 1];
    slot = (slot & ~active) | (value & active);
  }

  // Stops the grid. `what` goes after the thread: "illegal address 0x10 (4-byte load)".
  void fail(Fault fault, unsigned lane, const std::string& what);
};

// warp.cpp: divergence and the interpreter loop.
struct Slice {
  std::uint64_t used = 0;
  bool stopped = false;  // blocked, yielded, ended or faulted before the budget was used
};
void start_warp(Warp& warp);
Slice run_warp(Warp& warp, std::uint64_t budget);
bool has_ready_split(const Warp& warp);
// End of a quantum: the next split gets its turn, lanes that met by chance run together again.
void rotate_splits(Warp& warp);
// Lets lanes that wait at a token go on without the others. False when none wait.
bool release_early(Warp& warp);
struct Group {
  Mask mask;
  std::uint32_t pc;
};
// The current split becomes `count` splits that meet again at `reconverge` (the end of the code:
// they do not).
void diverge(Exec& x, const Group* groups, unsigned count, std::uint32_t reconverge);
// Makes `lanes` the whole current split; the others wait for them at the next instruction.
void separate(Exec& x, Mask lanes);
// Writes the current split back to the warp, to be blocked; the loop picks another.
Split& suspend(Exec& x);
void exit_lanes(Exec& x, Mask lanes);
void return_lanes(Exec& x, Mask lanes);
void merge_splits(Warp& warp);
// Takes state from a frame into `x`.
void enter_frame(Exec& x, Frame* frame, Token* token, std::uint32_t pc);
Token* new_token(Grid& grid);
Frame* new_frame(Grid& grid, const Code& code);

// calls.cpp: what a returning split needs.
void copy_results(Warp& warp, const Frame& callee, Mask lanes);
// Makes room for `bytes` of local memory per thread; false: over the stack limit.
bool reserve_local(Warp& warp, std::uint64_t bytes);

// collective.cpp: warp-wide operations that wait for lanes.
void finish_warp_syncs(Warp& warp);

// cta.cpp: barriers and admission.
std::unique_ptr<Cta> make_cta(Grid& grid, std::uint64_t number);
// Called when lanes exit or arrive: completes what can be completed.
void finish_barriers(Cta& cta);
enum class CtaState : std::uint8_t { kRunning, kDone, kDeadlock };
CtaState run_cta(Cta& cta, std::uint64_t* budget);

// Takes the current range table from the GlobalMemory.
void refresh_ranges(Grid& grid);

// Where a thread is, for messages: "kernel k block (0,0,0) thread (3,0,0)".
std::string describe_thread(const Warp& warp, unsigned lane);

}  // namespace softgpu::ptx
