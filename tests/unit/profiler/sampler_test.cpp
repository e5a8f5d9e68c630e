// SPDX-License-Identifier: Apache-2.0
// Samples lie in the code that used the CPU, with its callers; what waits is left alone, what is
// full drops, and signals that belong to somebody else are not touched.
#include "profiler/trace/sampler.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiler/clock.h"
#include "tests/unit/catch.h"

using namespace profiler;

namespace {

constexpr unsigned kRing = 4096;
// CPU time of one try, and tries: the kernel may take timers as rarely as its clock ticks.
constexpr unsigned kBurnMs = 10;
constexpr int kTries = 200;

struct Kept {
  std::uint32_t tid;
  std::uint32_t weight;
  std::uint64_t time_ns;
  std::vector<std::string> names;  // of the functions, innermost first; "" has none
};
using Samples = std::vector<Kept>;

std::string name_of(std::uintptr_t address) {
  Dl_info info;
  const bool is_named =
      dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr;
  return is_named ? info.dli_sname : "";
}

Samples drain() {
  Samples samples;
  drain_samples(
      [](void* context, const HostSample& sample) {
        Kept kept{sample.tid, sample.weight, sample.time_ns, {}};
        for (std::size_t i = 0; i < sample.stack.depth; ++i) {
          kept.names.push_back(name_of(sample.stack.addresses[i] - (i == 0 ? 0 : 1)));
        }
        static_cast<Samples*>(context)->push_back(kept);
      },
      &samples);
  return samples;
}

class Library {
 public:
  explicit Library(const char* name) {
    handle_ = dlopen((std::string(CAJETA_TEST_LIBRARIES) + name).c_str(), RTLD_NOW);
    REQUIRE(handle_ != nullptr);
  }
  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;  // stays open: samples name its functions
};

const Library& with_tables() {
  static const Library library("/libsampled_tables.so");
  return library;
}
const Library& with_frames() {
  static const Library library("/libsampled_frames.so");
  return library;
}

using Burn = std::uint64_t(unsigned);

Burn* burner() {
  return with_tables().find<Burn>("sampled_burn");
}

// A thread that does what it is told until it is told to stop.
class Worker {
 public:
  explicit Worker(std::function<void()> work) : work_(std::move(work)), thread_([this] { run(); }) {
    started_.get_future().wait();
  }
  ~Worker() {
    is_stopped_ = true;
    thread_.join();
  }
  std::uint32_t tid() const { return tid_; }
  int rounds() const { return rounds_; }

 private:
  void run() {
    tid_ = static_cast<std::uint32_t>(gettid());
    started_.set_value();
    while (!is_stopped_) {
      work_();
      ++rounds_;
    }
  }

  std::function<void()> work_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<std::uint32_t> tid_{0};
  std::atomic<int> rounds_{0};
  std::promise<void> started_;
  std::thread thread_;
};

class Sampling {
 public:
  explicit Sampling(std::uint32_t ring = kRing) {
    if (g_clock.start_ns == 0) start_clock();
    is_on_ = start_sampler(1000, ring);
  }
  ~Sampling() {
    stop_sampler();
    drain();
  }
  bool is_on() const { return is_on_; }

 private:
  bool is_on_;
};

// Drains while `work` runs, until a sample of its thread fits.
bool finds(std::function<void()> work, const std::function<bool(const Kept&)>& fits) {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const Worker worker(std::move(work));
  for (int attempt = 0; attempt < kTries; ++attempt) {
    burner()(kBurnMs);
    for (const Kept& sample : drain()) {
      if (sample.tid == worker.tid() && fits(sample)) return true;
    }
  }
  return false;
}

int count(const Kept& sample, const char* name) {
  int found = 0;
  for (const std::string& each : sample.names) found += each == name ? 1 : 0;
  return found;
}

// sampled_work, directly called by sampled_burn, and that by what is named.
bool is_called_by(const Kept& sample, const char* name) {
  return sample.names.size() >= 3 && sample.names[0] == "sampled_work" &&
         sample.names[1] == "sampled_burn" && sample.names[2] == name;
}

struct SignalKeeper {
  explicit SignalKeeper(int number) : signal(number) { sigaction(signal, nullptr, &before); }
  ~SignalKeeper() { sigaction(signal, &before, nullptr); }
  int signal;
  struct sigaction before;
};

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void (*handler_of(int signal))(int) {
  struct sigaction action;
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

void do_nothing(int) {}

}  // namespace

TEST_CASE("a thread that uses the CPU is sampled where it does") {
  const std::uint64_t before_ns = monotonic_ns();
  bool is_timed = false;
  CHECK(finds([] { burner()(kBurnMs); },
              [&](const Kept& sample) {
                is_timed = sample.time_ns > before_ns && sample.time_ns <= monotonic_ns();
                return sample.weight >= 1 && !sample.names.empty() &&
                       sample.names[0] == "sampled_work";
              }));
  CHECK(is_timed);
}

TEST_CASE("its callers are found by unwind tables and by frame pointers") {
  for (const Library* library : {&with_tables(), &with_frames()}) {
    CAPTURE(library == &with_frames());
    auto* caller = library->find<Burn>("sampled_caller");
    CHECK(finds([caller] { caller(kBurnMs); },
                [](const Kept& sample) { return is_called_by(sample, "sampled_caller"); }));
    auto* recursion = library->find<std::uint64_t(unsigned, unsigned)>("sampled_recursion");
    CHECK(finds([recursion] { recursion(9, kBurnMs); },
                [](const Kept& sample) {
                  return is_called_by(sample, "sampled_recursion") &&
                         count(sample, "sampled_recursion") == 9;
                }));
  }
}

TEST_CASE("a stack is kept as deep as a sample is") {
  auto* recursion = with_tables().find<std::uint64_t(unsigned, unsigned)>("sampled_recursion");
  CHECK(finds([recursion] { recursion(100, kBurnMs); },
              [](const Kept& sample) { return sample.names.size() == kTraceDepth; }));
}

#if defined(__x86_64__)
TEST_CASE("frames that are aligned or large are left too") {
  auto* aligned = with_tables().find<std::uint64_t(unsigned, unsigned)>("sampled_aligned");
  auto* large = with_tables().find<Burn>("sampled_large_frame");
  CHECK(finds([aligned] { aligned(kBurnMs, 100); },
              [](const Kept& sample) {
                return is_called_by(sample, "sampled_aligned") && sample.names.size() > 4;
              }));
  CHECK(finds([large] { large(kBurnMs); },
              [](const Kept& sample) {
                return is_called_by(sample, "sampled_large_frame") && sample.names.size() > 4;
              }));
}

TEST_CASE("a frame pointer that is none costs frames and nothing else") {
  auto* bogus = with_frames().find<void(std::uintptr_t)>("sampled_bogus_frame");
  std::uintptr_t here = reinterpret_cast<std::uintptr_t>(&bogus) & ~std::uintptr_t{15};
  const std::uintptr_t frames[] = {0,        8,           here + 1,        here + (1u << 30),
                                   here - 1, ~0ull - 15u, ~0ull << 47 | 8, here};
  for (const std::uintptr_t frame : frames) {
    CAPTURE(frame);
    CHECK(finds([=] { bogus(frame); },
                [](const Kept& sample) { return sample.names[0] == "sampled_bogus_frame"; }));
  }
}

// The thread sanitizer calls handlers itself, later.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HANDLERS_ARE_DELAYED
#endif
#endif

#if !defined(HANDLERS_ARE_DELAYED)
TEST_CASE("the stack goes on behind a handler of the program") {
  const SignalKeeper keeper(SIGUSR1);
  struct sigaction action {};
  action.sa_handler = [](int) { burner()(kBurnMs); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  auto* raiser = with_tables().find<std::uint64_t(int)>("sampled_raise");
  const auto is_whole = [](const Kept& sample) {
    return count(sample, "sampled_work") == 1 && count(sample, "sampled_burn") == 1 &&
           count(sample, "sampled_raise") == 1;
  };
  CHECK(finds([raiser] { raiser(SIGUSR1); }, is_whole));
  std::vector<char> memory(256 * 1024);
  CHECK(finds(
      [&] {
        const stack_t stack{memory.data(), 0, memory.size()};
        sigaltstack(&stack, nullptr);
        raiser(SIGUSR1);
        const stack_t none{nullptr, SS_DISABLE, 0};
        sigaltstack(&none, nullptr);
      },
      is_whole));
}
#endif
#endif

TEST_CASE("a full ring drops and counts") {
  const Sampling sampling(1);
  REQUIRE(sampling.is_on());
  const SampleCounts before = sample_counts();
  const Worker worker([] { burner()(kBurnMs); });
  for (int attempt = 0; attempt < kTries && sample_counts().kept == before.kept; ++attempt) {
    drain();
    burner()(kBurnMs);
  }
  REQUIRE(sample_counts().kept > before.kept);
  // Nothing is drained any more, and the thread goes on.
  const int rounds = worker.rounds();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (sample_counts().dropped > before.dropped && worker.rounds() > rounds) break;
    burner()(kBurnMs);
  }
  CHECK(sample_counts().dropped > before.dropped);
  CHECK(worker.rounds() > rounds);
  CHECK(sample_counts().handler_ns > before.handler_ns);
  const SampleCounts counts = sample_counts();
  CHECK(drain().size() <= 2);  // one, and one more that was written while it was drained
  CHECK(counts.kept - before.kept >= 1);
}

TEST_CASE("what a thread left is handed over after its end") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  bool is_found = false;
  for (int attempt = 0; attempt < kTries && !is_found; ++attempt) {
    std::promise<void> armed;
    std::atomic<pid_t> tid{0};
    std::thread thread([&] {
      tid = gettid();
      armed.get_future().wait();
      burner()(kBurnMs);
    });
    while (tid == 0) sched_yield();
    drain();
    armed.set_value();
    thread.join();
    for (const Kept& sample : drain()) {
      is_found = is_found || sample.tid == static_cast<std::uint32_t>(tid);
    }
  }
  CHECK(is_found);
}

TEST_CASE("memory of threads that ended serves later ones") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const auto mapped_bytes = [] {
    std::array<char, 64> text{};
    FILE* file = fopen("/proc/self/statm", "r");
    REQUIRE(file != nullptr);
    REQUIRE(fgets(text.data(), text.size(), file) != nullptr);
    fclose(file);
    return std::strtoul(text.data(), nullptr, 10) * 4096;
  };
  std::size_t first = 0;
  for (int round = 0; round < 40; ++round) {
    std::promise<void> ready, drained;
    std::thread thread([&] {
      ready.set_value();
      drained.get_future().wait();
    });
    ready.get_future().wait();
    drain();
    drained.set_value();
    thread.join();
    drain();
    if (round == 1) first = mapped_bytes();
  }
  // A ring is a megabyte.
  CHECK(mapped_bytes() < first + 10'000'000);
}

TEST_CASE("a thread that waits is not interrupted") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  std::atomic<int> interruptions{0};
  {
    const Worker poller([&] {
      if (poll(nullptr, 0, 5) < 0 && errno == EINTR) ++interruptions;
    });
    const Worker sleeper([&] {
      const timespec wait{0, 5'000'000};
      if (nanosleep(&wait, nullptr) != 0 && errno == EINTR) ++interruptions;
    });
    const Worker busy([] { burner()(kBurnMs); });
    bool is_busy_sampled = false;
    for (int attempt = 0; attempt < kTries && !is_busy_sampled; ++attempt) {
      burner()(kBurnMs);
      for (const Kept& sample : drain()) is_busy_sampled |= sample.tid == busy.tid();
    }
    CHECK(is_busy_sampled);
    burner()(5 * kBurnMs);
  }
  CHECK(interruptions == 0);
}

TEST_CASE("a thread that blocks the signal is left out, until it does not") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  std::atomic<bool> blocks{true};
  std::atomic<bool> is_pending{false};
  std::promise<void> blocked;
  bool is_first = true;
  const Worker worker([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &all, nullptr);
    if (is_first) blocked.set_value();
    is_first = false;
    burner()(kBurnMs);
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGPROF) != 0) is_pending = true;
  });
  blocked.get_future().wait();
  for (int round = 0; round < 5; ++round) {
    burner()(kBurnMs);
    for (const Kept& sample : drain()) CHECK(sample.tid != worker.tid());
  }
  CHECK_FALSE(is_pending);
  blocks = false;
  bool is_found = false;
  for (int attempt = 0; attempt < kTries && !is_found; ++attempt) {
    burner()(kBurnMs);
    for (const Kept& sample : drain()) is_found |= sample.tid == worker.tid();
  }
  CHECK(is_found);
}

TEST_CASE("our own threads are not sampled") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  std::promise<void> named;
  bool is_first = true;
  const Worker ours([&] {
    if (is_first) pthread_setname_np(pthread_self(), "cajeta-test");
    if (is_first) named.set_value();
    is_first = false;
    burner()(kBurnMs);
  });
  named.get_future().wait();
  const Worker other([] { burner()(kBurnMs); });
  int others = 0;
  for (int attempt = 0; attempt < kTries && others < 10; ++attempt) {
    burner()(kBurnMs);
    for (const Kept& sample : drain()) {
      CHECK(sample.tid != ours.tid());
      others += sample.tid == other.tid() ? 1 : 0;
    }
  }
  CHECK(others >= 10);
}

TEST_CASE("a program's SIGPROF stays the program's") {
  const SignalKeeper keeper(SIGPROF), last(SIGRTMAX);
  set_handler(SIGPROF, do_nothing);
  CHECK(finds([] { burner()(kBurnMs); }, [](const Kept&) { return true; }));
  CHECK(handler_of(SIGPROF) == do_nothing);
  CHECK(handler_of(SIGRTMAX) != SIG_DFL);
}

TEST_CASE("without a free signal there is no sampling") {
  std::vector<std::unique_ptr<SignalKeeper>> keepers;
  keepers.push_back(std::make_unique<SignalKeeper>(SIGPROF));
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    keepers.push_back(std::make_unique<SignalKeeper>(signal));
  }
  for (const auto& keeper : keepers) set_handler(keeper->signal, do_nothing);
  CHECK_FALSE(start_sampler(1000, kRing));
  for (const auto& keeper : keepers) CHECK(handler_of(keeper->signal) == do_nothing);
}

namespace {
std::atomic<int> g_foreign_signals{0};
}

TEST_CASE("a program that takes the signal over ends the sampling") {
  const SignalKeeper keeper(SIGPROF);
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const Worker worker([] { burner()(kBurnMs); });
  drain();
  set_handler(SIGPROF, [](int) { ++g_foreign_signals; });
  drain();  // notices
  const int until_then = g_foreign_signals;
  const int rounds = worker.rounds();
  while (worker.rounds() < rounds + 5) burner()(kBurnMs);
  CHECK(g_foreign_signals == until_then);
  CHECK(drain().empty());
}

TEST_CASE("a signal that is not of our timers does nothing") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const SampleCounts before = sample_counts();
  raise(SIGPROF);
  sigval value;
  value.sival_ptr = &value;
  sigqueue(getpid(), SIGPROF, value);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_ptr = &event;
  timer_t timer;
  REQUIRE(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0);
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  REQUIRE(timer_settime(timer, 0, &period, nullptr) == 0);
  burner()(2 * kBurnMs);
  timer_delete(timer);
  CHECK(sample_counts().kept == before.kept);
  CHECK(sample_counts().dropped == before.dropped);
}

TEST_CASE("a forked child is not sampled and can end") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const Worker worker([] { burner()(kBurnMs); });
  drain();
  const pid_t child = fork();
  if (child == 0) {
    forget_sampler();
    const std::uint64_t before = sample_counts().kept;
    burner()(2 * kBurnMs);
    raise(SIGPROF);
    bool is_empty = true;
    drain_samples([](void* context, const HostSample&) { *static_cast<bool*>(context) = false; },
                  &is_empty);
    _exit(is_empty && sample_counts().kept == before ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("after the stop a thread runs on, and what it left can be drained") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const SampleCounts before = sample_counts();
  const Worker worker([] { burner()(kBurnMs); });
  for (int attempt = 0; attempt < kTries && sample_counts().kept == before.kept; ++attempt) {
    if (attempt == 0) drain();
    burner()(kBurnMs);
  }
  stop_sampler();
  CHECK_FALSE(drain().empty());
  const std::uint64_t kept = sample_counts().kept;
  const int rounds = worker.rounds();
  while (worker.rounds() < rounds + 3) burner()(kBurnMs);
  CHECK(sample_counts().kept == kept);
  CHECK(drain().empty());
  REQUIRE(start_sampler(1000, kRing));
}
