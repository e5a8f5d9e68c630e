// SPDX-License-Identifier: Apache-2.0
// The grid: admits CTAs, gives them turns and reports how it ended. Owned by the thread that steps
// it.
#include "tools/softgpu/ptx/kernel_run.h"

#include <algorithm>
#include <atomic>

#include "tools/softgpu/ptx/machine.h"

namespace softgpu::ptx {

namespace {

// CTAs alive at once in the beginning. More spreads the working set over the caches; fewer makes
// the next rule act often.
constexpr std::uint64_t kResidentCtas = 16;
// Rounds in which no CTA ended before more are admitted, as far as the device would hold them:
// kernels with their own grid barriers wait for CTAs that have not started. Fewer gives long
// kernels a larger working set, more makes those wait.
constexpr std::uint64_t kFruitlessRounds = 8;
// Warp instructions of one CTA before the next one's turn: large against a CTA switch, small
// against a spinning CTA.
constexpr std::uint64_t kCtaTurn = 8192;

std::uint64_t next_grid_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void index_threads(Grid& grid) {
  const Dim3& block = grid.config.block;
  Dim3 at{0, 0, 0};
  for (auto& rows : grid.thread_index) rows.assign(grid.block_warps, Row{});
  for (unsigned thread = 0; thread < grid.block_threads; ++thread) {
    const unsigned warp = thread / kLanes;
    const unsigned lane = thread % kLanes;
    grid.thread_index[0][warp].lane[lane] = at.x;
    grid.thread_index[1][warp].lane[lane] = at.y;
    grid.thread_index[2][warp].lane[lane] = at.z;
    if (++at.x < block.x) continue;
    at.x = 0;
    if (++at.y < block.y) continue;
    at.y = 0;
    ++at.z;
  }
}

std::uint64_t device_capacity(const Grid& grid) {
  const std::uint64_t by_threads = kSmThreads / std::max(grid.block_threads, 1u);
  return kSmCount * std::clamp<std::uint64_t>(by_threads, 1, kSmCtas);
}

void admit(Grid& grid) {
  while (grid.resident.size() < grid.resident_limit && grid.next_cta < grid.cta_count)
    grid.resident.push_back(make_cta(grid, grid.next_cta++));
}

// The next CTA's turn; more CTAs when those that are resident get nowhere.
void next_turn(Grid& grid) {
  grid.current = (grid.current + 1) % grid.resident.size();
  grid.turn_left = kCtaTurn;
  if (++grid.fruitless_turns < kFruitlessRounds * grid.resident.size()) return;
  grid.fruitless_turns = 0;
  if (grid.resident_limit >= device_capacity(grid)) return;
  grid.resident_limit += kResidentCtas;
  admit(grid);
}

void retire_current(Grid& grid) {
  grid.fruitless_turns = 0;
  grid.turn_left = kCtaTurn;
  if (grid.next_cta < grid.cta_count) {
    grid.resident[grid.current] = make_cta(grid, grid.next_cta++);
  } else {
    grid.resident.erase(grid.resident.begin() + static_cast<std::ptrdiff_t>(grid.current));
    if (grid.current >= grid.resident.size()) grid.current = 0;
  }
}

void report_deadlock(Grid& grid, const Cta& cta) {
  grid.fault = Fault::kTrap;
  const char* what = "waits for lanes that cannot come";
  for (const Warp& warp : cta.warps) {
    for (const Split& split : warp.splits) {
      if (split.state == SplitState::kAtBarrier) what = "barrier that not all threads reach";
      if (split.mask == 0) continue;
      grid.fault_message =
          describe_thread(warp, static_cast<unsigned>(std::countr_zero(split.mask))) +
          ": deadlock: " + what;
    }
  }
}

}  // namespace

Grid::Grid(LaunchConfig launch, GlobalMemory& global, Device& owner)
    : config(std::move(launch)),
      memory(global),
      device(owner),
      translation(Translation::of(*config.module)),
      entry(translation.code(config.kernel->function->index)) {
  block_threads = config.block.x * config.block.y * config.block.z;
  block_warps = (block_threads + kLanes - 1) / kLanes;
  cta_count = std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  shared_bytes = static_cast<std::uint32_t>(config.kernel->static_shared_bytes);
  if (config.dynamic_shared_bytes > 0) {
    shared_bytes = entry.function->dynamic_shared_offset + config.dynamic_shared_bytes;
  }
  resident_limit = config.cooperative ? cta_count : kResidentCtas;
  number = next_grid_number();
  index_threads(*this);
}

void refresh_ranges(Grid& grid) {
  std::shared_ptr<const RangeTable> ranges = grid.memory.snapshot();
  if (ranges == grid.ranges) return;
  grid.ranges = std::move(ranges);
  std::fill(std::begin(grid.caches), std::end(grid.caches), RangeCache{});
}

std::string describe_thread(const Warp& warp, unsigned lane) {
  const Grid& grid = *warp.cta->grid;
  const auto text = [](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  const Dim3& block = warp.cta->index;
  return "kernel " + grid.config.kernel->name + " block " + text(block.x, block.y, block.z) +
         " thread " +
         text(grid.thread_index[0][warp.index].lane[lane],
              grid.thread_index[1][warp.index].lane[lane],
              grid.thread_index[2][warp.index].lane[lane]);
}

void Exec::fail(Fault fault, unsigned lane, const std::string& what) {
  event = Event::kFault;
  if (grid->fault != Fault::kNone) return;
  grid->fault = fault;
  grid->fault_message = describe_thread(*warp, lane) + ": " + what;
}

struct KernelRun::Impl {
  Impl(LaunchConfig config, GlobalMemory& memory, Device& device)
      : grid(std::move(config), memory, device) {}
  Grid grid;
};

KernelRun::KernelRun(LaunchConfig config, GlobalMemory& memory, Device& device)
    : impl_(std::make_unique<Impl>(std::move(config), memory, device)) {}

KernelRun::~KernelRun() = default;

KernelRun::Status KernelRun::step(std::uint64_t warp_instructions) {
  Grid& grid = impl_->grid;
  if (grid.fault != Fault::kNone) return Status::kFault;
  refresh_ranges(grid);
  admit(grid);
  while (warp_instructions > 0 && !grid.resident.empty()) {
    if (grid.turn_left == 0) next_turn(grid);
    Cta& cta = *grid.resident[grid.current];
    std::uint64_t budget = std::min(warp_instructions, grid.turn_left);
    const std::uint64_t given = budget;
    const CtaState state = run_cta(cta, &budget);
    warp_instructions -= given - budget;
    grid.turn_left -= given - budget;
    if (state == CtaState::kDeadlock) report_deadlock(grid, cta);
    if (grid.fault != Fault::kNone) return Status::kFault;
    if (state == CtaState::kDone) retire_current(grid);
  }
  return grid.resident.empty() ? Status::kDone : Status::kRunning;
}

Fault KernelRun::fault() const {
  return impl_->grid.fault;
}

const std::string& KernelRun::fault_message() const {
  return impl_->grid.fault_message;
}

}  // namespace softgpu::ptx
