// SPDX-License-Identifier: Apache-2.0
// The order policies: early (run at enqueue), late (run what a wait needs), random (any ready
// piece), free (worker threads); and the thread that keeps the device going while the host is
// silent. Driver lock held on entry everywhere.

#include <algorithm>
#include <unordered_set>

#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/own_thread.h"

namespace softgpu {
namespace {

using namespace std::chrono_literals;

// Early order runs an operation inside the call that enqueues it. One that needs longer may be
// waiting for its host (a persistent kernel), so it goes on in the background. Smaller: more calls
// of slow kernels return early.
constexpr auto kInlineBudget = 50ms;
// The same for an operation that has nothing to do before somebody else acts. Smaller: host
// functions, which another thread runs, would often end after the call that enqueued them.
constexpr auto kInlineBlockedBudget = 2ms;
// An operation that runs alone for so long may be waiting for another one: from then on others get
// turns.
constexpr auto kAloneBudget = 20ms;
// A silent host may be polling memory. Smaller: late and random order would depend on scheduling
// noise.
constexpr auto kHostIdle = 20ms;
// Between two operations released to a silent host.
constexpr auto kIdleStep = 500us;
// Nothing can run: look again for values that the host writes without telling.
constexpr auto kBlockedPause = 200us;
// NOT_READY answers in a row about one object before its work is run.
constexpr unsigned kMaxPolls = 8;
constexpr unsigned kMaxWorkers = 8;

}  // namespace

void Engine::added(const std::vector<OperationPtr>& operations) {
  switch (order_) {
    case Order::kEarly: {
      const auto deadline = Clock::now() + kInlineBudget;
      for (const OperationPtr& operation : operations) {
        // What is not ready now waits for work that was left to the background.
        if (operation->state_ == Operation::State::kReady) run_one(operation, deadline);
      }
      if (!operations.back()->done) start_progress_thread();
      return;
    }
    case Order::kLate:
    case Order::kRandom:
      last_activity_ = Clock::now();
      start_progress_thread();
      return;
    case Order::kFree:
      start_workers();
      changed_.notify_all();
      return;
  }
}

void Engine::wait(const OperationPtr& goal, Clock::time_point deadline) {
  if (goal->done) return;
  last_activity_ = Clock::now();
  if (order_ == Order::kFree) {
    wait_for_workers(goal, deadline);
  } else if (order_ == Order::kRandom) {
    run_at_random(goal, deadline);
  } else {
    run_in_order(goal, deadline);
  }
  last_activity_ = Clock::now();
}

void Engine::query(const OperationPtr& goal, unsigned& polls) {
  last_activity_ = Clock::now();
  if (order_ == Order::kRandom) make_random_progress();
  if (goal->done) {
    polls = 0;
  } else if (++polls > kMaxPolls && (order_ == Order::kLate || order_ == Order::kRandom)) {
    polls = 0;
    wait(goal, Clock::now() + kInlineBudget);
  }
}

std::vector<Engine::OperationPtr> Engine::ancestry(const OperationPtr& goal) {
  std::vector<OperationPtr> found{goal};
  std::unordered_set<const Operation*> seen{goal.get()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const OperationPtr current = found[i];
    for (const OperationPtr& dependency : current->dependencies) {
      if (!dependency->done && seen.insert(dependency.get()).second) found.push_back(dependency);
    }
  }
  std::sort(found.begin(), found.end(), [](const OperationPtr& a, const OperationPtr& b) {
    return a->enqueued_ < b->enqueued_;
  });
  return found;
}

void Engine::run_in_order(const OperationPtr& goal, Clock::time_point deadline) {
  if (goal->state_ == Operation::State::kReady) return run_one(goal, deadline);
  for (const OperationPtr& operation : ancestry(goal)) {
    run_one(operation, deadline);
    if (!operation->done) return;  // the deadline has passed
  }
}

void Engine::run_one(const OperationPtr& operation, Clock::time_point deadline) {
  Clock::time_point start{};  // read once the first piece was not enough
  while (!operation->done) {
    Piece piece = Piece::kBlocked;
    if (operation->state_ == Operation::State::kReady) piece = run_piece(operation);
    if (operation->done) return;
    const auto now = Clock::now();
    if (start == Clock::time_point{}) start = now;
    if (now > deadline) return;
    const bool is_bounded = deadline != Clock::time_point::max();
    if (is_bounded && piece == Piece::kBlocked && now - start > kInlineBlockedBudget) return;
    if (piece != Piece::kBlocked && now - start < kAloneBudget) continue;
    if (operation->state_ == Operation::State::kRunning) {  // by another thread
      pause();
      continue;
    }
    const OperationPtr other = choose_ready(operation.get());
    if (other == nullptr || run_piece(other) == Piece::kBlocked) {
      if (piece == Piece::kBlocked) pause();
    }
  }
}

void Engine::run_at_random(const OperationPtr& goal, Clock::time_point deadline) {
  std::size_t blocked = 0;  // choices in a row that could do nothing
  while (!goal->done && Clock::now() < deadline) {
    if (blocked >= ready_.size()) {
      blocked = 0;
      pause();
      continue;
    }
    const OperationPtr chosen = ready_[random_() % ready_.size()];
    blocked = run_piece(chosen) == Piece::kBlocked ? blocked + 1 : 0;
  }
}

void Engine::make_random_progress() {
  // Heuristic: a third of the calls release nothing, so that work piles up now and then.
  for (auto pieces = random_() % 3; pieces > 0 && !ready_.empty(); --pieces) {
    run_piece(OperationPtr(ready_[random_() % ready_.size()]));
  }
}

void Engine::wait_for_workers(const OperationPtr& goal, Clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(driver_mutex(), std::adopt_lock);
  if (deadline == Clock::time_point::max()) {
    changed_.wait(lock, [&] { return goal->done; });
  } else {
    changed_.wait_until(lock, deadline, [&] { return goal->done; });
  }
  lock.release();
}

Engine::OperationPtr Engine::choose_ready(const Operation* except) {
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const OperationPtr& candidate = ready_[turn_++ % ready_.size()];
    if (candidate.get() != except) return candidate;
  }
  return nullptr;
}

// Until something changes, or for a moment.
void Engine::pause() {
  std::unique_lock<std::mutex> lock(driver_mutex(), std::adopt_lock);
  changed_.wait_for(lock, kBlockedPause);
  lock.release();
}

bool Engine::is_host_idle() const {
  return order_ == Order::kEarly || Clock::now() - last_activity_ > kHostIdle;
}

void Engine::start_progress_thread() {
  if (!has_progress_thread_) {
    has_progress_thread_ = true;
    start_thread([this] { progress_loop(); });
  }
  changed_.notify_all();
}

void Engine::progress_loop() {
  std::unique_lock<std::mutex> lock(driver_mutex());
  for (;;) {
    changed_.wait(lock, [this] { return !pending_.empty(); });
    if (!is_host_idle() || ready_.empty()) {
      changed_.wait_for(lock, kIdleStep);
      continue;
    }
    const OperationPtr chosen = choose_ready(nullptr);
    const Piece piece = run_piece(chosen);
    const bool may_go_on = order_ == Order::kEarly || piece == Piece::kProgressed;
    if (piece == Piece::kBlocked || !may_go_on) changed_.wait_for(lock, kIdleStep);
  }
}

void Engine::start_workers() {
  while (workers_ < kMaxWorkers && idle_workers_ < ready_.size()) {
    ++workers_;
    ++idle_workers_;
    start_thread([this] { worker_loop(); });
  }
}

void Engine::worker_loop() {
  std::unique_lock<std::mutex> lock(driver_mutex());
  for (;;) {
    changed_.wait(lock, [this] { return !ready_.empty(); });
    --idle_workers_;
    const OperationPtr operation = ready_.front();
    const Piece piece = run_piece(operation);
    start_workers();  // what became ready
    if (piece == Piece::kBlocked) changed_.wait_for(lock, kBlockedPause);
    ++idle_workers_;
  }
}

void Engine::forget_threads() {
  has_progress_thread_ = false;
  workers_ = idle_workers_ = 0;
}

}  // namespace softgpu
