// SPDX-License-Identifier: Apache-2.0
// The set of pending operations and the order policies that choose among them. Every member
// function is called with the driver lock held; those that run operations or wait drop it
// meanwhile. Never destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/state.h"

namespace softgpu {

class Engine {
 public:
  using Clock = std::chrono::steady_clock;
  using OperationPtr = std::shared_ptr<Operation>;

  static Engine& get();

  // Makes `operation` pending; its `dependencies` may hold done ones.
  void add(const OperationPtr& operation);
  // After add(): what the policy does at once. `operations` are in an order that respects their
  // dependencies.
  void added(const std::vector<OperationPtr>& operations);

  // Runs and waits until `goal` is done, or `deadline` has passed.
  void wait(const OperationPtr& goal, Clock::time_point deadline = Clock::time_point::max());
  void query(const OperationPtr& goal, unsigned& polls);
  // A few pieces of whatever is ready, as random order grants to every API call.
  void make_random_progress();

  bool is_quiet() const { return pending_.empty(); }
  // Pending operations of one context and its green ones, or of all (null).
  std::vector<OperationPtr> pending(const Context* context) const;

  // A host function, or whatever else blocked an operation, is done: look again.
  void notify() { changed_.notify_all(); }

  // Child of a fork: no thread of the engine exists here.
  void forget_threads();

 private:
  enum class Piece { kFinished, kProgressed, kBlocked };

  Engine();
  void complete(const OperationPtr& operation);
  void make_ready(const OperationPtr& operation);
  Piece run_piece(const OperationPtr& operation);
  // Any ready operation but `except`; null if there is none.
  OperationPtr choose_ready(const Operation* except);
  // Its unfinished ancestors and itself, in enqueue order.
  static std::vector<OperationPtr> ancestry(const OperationPtr& goal);

  void run_in_order(const OperationPtr& goal, Clock::time_point deadline);
  void run_one(const OperationPtr& operation, Clock::time_point deadline);
  void run_at_random(const OperationPtr& goal, Clock::time_point deadline);
  void wait_for_workers(const OperationPtr& goal, Clock::time_point deadline);
  void pause();

  void start_progress_thread();
  void start_workers();
  void progress_loop();
  void worker_loop();
  bool is_host_idle() const;

  const Order order_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, OperationPtr> pending_;  // by enqueue order
  std::vector<OperationPtr> ready_;                // dependencies done, not running
  std::uint64_t next_ = 1;
  std::condition_variable changed_;  // an operation finished, became ready or unblocked
  Clock::time_point last_activity_{};
  bool has_progress_thread_ = false;
  unsigned workers_ = 0, idle_workers_ = 0;
  unsigned turn_ = 0;  // fair choice among ready operations
};

}  // namespace softgpu
