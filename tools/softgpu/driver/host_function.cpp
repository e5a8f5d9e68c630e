// SPDX-License-Identifier: Apache-2.0
// The thread of host functions and the operation that hands them over. Locks: the queue has its
// own; the driver lock is taken only to wake the engine.

#include "tools/softgpu/driver/host_function.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "tools/softgpu/driver/engine_core.h"
#include "tools/softgpu/driver/log.h"
#include "tools/softgpu/driver/own_thread.h"

namespace softgpu {
namespace {

thread_local bool t_is_in_host_function = false;

struct Job {
  std::function<void()> function;
  std::atomic<bool> is_done{false};
};

class HostThread {
 public:
  static HostThread& get() {
    static HostThread* const instance = new HostThread();
    return *instance;
  }

  void add(std::shared_ptr<Job> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!is_started_) {
      is_started_ = true;
      start_thread([this] { run(); });
    }
    changed_.notify_one();
  }

  void forget() { is_started_ = false; }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !jobs_.empty(); });
      const std::shared_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      t_is_in_host_function = true;
      job->function();
      t_is_in_host_function = false;
      job->is_done.store(true, std::memory_order_release);
      {
        DriverLock driver;
        Engine::get().notify();
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool is_started_ = false;
};

class HostOperation final : public Operation {
 public:
  HostOperation(std::function<void()> function, const char* text, std::uint64_t stream_ordinal,
                std::uint64_t sequence, bool runs_after_error)
      : job_(std::make_shared<Job>()),
        text_(text),
        stream_ordinal_(stream_ordinal),
        sequence_(sequence),
        runs_after_error_(runs_after_error) {
    job_->function = std::move(function);
  }

  bool step() override {
    if (!is_handed_over_) {
      is_handed_over_ = true;
      HostThread::get().add(job_);
    }
    return job_->is_done.load(std::memory_order_acquire);
  }
  bool is_blocked() const override { return true; }
  bool is_skipped_on_error() const override { return !runs_after_error_; }
  std::string_view text() const override { return text_; }
  void finish() override {
    if (!was_skipped && is_logging()) log_operation(stream_ordinal_, sequence_, text_);
  }

 private:
  const std::shared_ptr<Job> job_;
  const char* const text_;
  const std::uint64_t stream_ordinal_, sequence_;
  const bool runs_after_error_;
  bool is_handed_over_ = false;
};

}  // namespace

bool is_in_host_function() {
  return t_is_in_host_function;
}

std::shared_ptr<Operation> make_host_operation(std::function<void()> function, const char* text,
                                               std::uint64_t stream_ordinal, std::uint64_t sequence,
                                               bool runs_after_error) {
  return std::make_shared<HostOperation>(std::move(function), text, stream_ordinal, sequence,
                                         runs_after_error);
}

void forget_host_thread() {
  HostThread::get().forget();
}

}  // namespace softgpu
