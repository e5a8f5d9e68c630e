// SPDX-License-Identifier: Apache-2.0
// Samples lie in the code that used the CPU, with its callers; what waits is left alone, what is
// full drops, and signals that belong to somebody else are not touched.
#include "profiler/trace/sampler.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
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
#include "profiler/trace/sample_signal.h"
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

// Past libc, which refuses the signal.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};
KernelAction kernel_action(const KernelAction* next = nullptr) {
  KernelAction before{};
  REQUIRE(syscall(SYS_rt_sigaction, kSampleSignal, next, &before, sizeof before.mask) == 0);
  return before;
}
void block_in_kernel(int how) {
  const std::uint64_t all = ~std::uint64_t{0};
  syscall(SYS_rt_sigprocmask, how, &all, nullptr, sizeof all);
}
bool is_pending_in_kernel() {
  std::uint64_t pending = 0;
  syscall(SYS_rt_sigpending, &pending, sizeof pending);
  return (pending >> (kSampleSignal - 1) & 1) != 0;
}
void send_to_self(sigval value) {
  siginfo_t info{};
  info.si_signo = kSampleSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_value = value;
  REQUIRE(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), kSampleSignal, &info) == 0);
}

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

TEST_CASE("a thread that blocks all that libc lets it block is sampled, and has nothing pending") {
  std::atomic<bool> is_pending{false};
  CHECK(finds(
      [&] {
        sigset_t all, pending;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        burner()(kBurnMs);
        sigpending(&pending);
        for (int signal = 1; signal < NSIG; ++signal) {
          if (sigismember(&pending, signal) == 1) is_pending = true;
        }
      },
      [](const Kept&) { return true; }));
  CHECK_FALSE(is_pending);
}

TEST_CASE("a thread that blocks the signal past libc is left out, until it does not") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  std::atomic<bool> blocks{true};
  std::atomic<bool> is_pending{false};
  std::promise<void> blocked;
  bool is_first = true;
  const Worker worker([&] {
    block_in_kernel(blocks ? SIG_BLOCK : SIG_UNBLOCK);
    if (is_first) blocked.set_value();
    is_first = false;
    burner()(kBurnMs);
    if (is_pending_in_kernel()) is_pending = true;
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

namespace {

// A thread whose stack lies in `memory`, which spins.
class SmallWorker {
 public:
  explicit SmallWorker(std::size_t bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
    REQUIRE(pthread_create(&thread_, &attributes, &run, this) == 0);
    pthread_attr_destroy(&attributes);
    while (tid_ == 0) sched_yield();
  }
  ~SmallWorker() {
    is_stopped_ = true;
    pthread_join(thread_, nullptr);
  }
  std::uint32_t tid() const { return tid_; }

 private:
  static void* run(void* self) {
    auto* worker = static_cast<SmallWorker*>(self);
    worker->tid_ = static_cast<std::uint32_t>(gettid());
    while (!worker->is_stopped_) {
    }
    return nullptr;
  }
  std::atomic<std::uint32_t> tid_{0};
  std::atomic<bool> is_stopped_{false};
  pthread_t thread_;
};

}  // namespace

TEST_CASE("a thread whose stack is small is left out and counted") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const std::uint64_t before = sample_counts().left_out;
  const SmallWorker small(PTHREAD_STACK_MIN), large(256 * 1024);
  int of_large = 0;
  for (int attempt = 0; attempt < kTries && of_large < 5; ++attempt) {
    for (const Kept& sample : drain()) {
      CHECK(sample.tid != small.tid());
      of_large += sample.tid == large.tid() ? 1 : 0;
    }
    burner()(kBurnMs);
  }
  CHECK(of_large >= 5);
  CHECK(sample_counts().left_out == before + 1);
}

TEST_CASE("a thread that comes near the end of its stack is not sampled any more") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const std::uint64_t before = sample_counts().left_out;
  std::promise<void> is_armed;
  std::atomic<bool> is_stopped{false};
  std::thread deep([&] {
    is_armed.get_future().wait();
    pthread_attr_t attributes;
    REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
    void* low = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    char here;
    const auto used = static_cast<std::size_t>(&here - static_cast<char*>(low)) - 9 * 1024;
    *static_cast<volatile char*>(__builtin_alloca(used)) = 1;
    while (!is_stopped) {
    }
  });
  drain();
  is_armed.set_value();
  for (int attempt = 0; attempt < kTries && sample_counts().left_out == before; ++attempt) {
    burner()(kBurnMs);
    drain();
  }
  CHECK(sample_counts().left_out == before + 1);
  is_stopped = true;
  deep.join();
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

namespace {
std::atomic<int> g_foreign_signals{0};
std::atomic<bool> g_was_blocked{false};

void count_foreign(int, siginfo_t*, void*) {
  ++g_foreign_signals;
  std::uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  g_was_blocked = (mask >> (SIGUSR1 - 1) & 1) != 0;
}
}  // namespace

TEST_CASE("no signal that a program can handle is taken") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0) {
      CHECK(action.sa_sigaction != kernel_action().handler);
    }
  }
}

TEST_CASE("a handler that was there first gets what is not ours, blocking what it asked for") {
  KernelAction before = kernel_action();
  KernelAction foreign = before;
  foreign.handler = &count_foreign;
  foreign.mask = 0;
  // The flags and the way back are those of libc's handler, or of ours.
  REQUIRE(foreign.restorer != nullptr);
  kernel_action(&foreign);
  {
    const Sampling sampling;
    REQUIRE(sampling.is_on());
    CHECK(kernel_action().handler != &count_foreign);
    g_foreign_signals = 0;
    send_to_self({});
    CHECK(g_foreign_signals == 1);
    CHECK_FALSE(g_was_blocked);
    const Worker worker([] { burner()(kBurnMs); });
    bool is_found = false;
    for (int attempt = 0; attempt < kTries && !is_found; ++attempt) {
      for (const Kept& sample : drain()) is_found |= sample.tid == worker.tid();
      burner()(kBurnMs);
    }
    CHECK(is_found);
    CHECK(g_foreign_signals == 1);
    // Another one comes and gets none of ours for longer than a look.
    kernel_action(&foreign);
    drain();
    CHECK(kernel_action().handler != &count_foreign);
  }
  kernel_action(&before);
}

TEST_CASE("a program that sets the default past libc ends the sampling") {
  const KernelAction before = kernel_action();
  {
    const Sampling sampling;
    REQUIRE(sampling.is_on());
    // No timer runs yet: the default would end the process.
    const KernelAction none{};
    kernel_action(&none);
    const Worker worker([] { burner()(kBurnMs); });
    drain();
    const int rounds = worker.rounds();
    while (worker.rounds() < rounds + 5) burner()(kBurnMs);
    CHECK(drain().empty());
    CHECK(kernel_action().handler == nullptr);
  }
  kernel_action(&before);
}

TEST_CASE("a signal that is not of our timers does nothing") {
  const Sampling sampling;
  REQUIRE(sampling.is_on());
  const SampleCounts before = sample_counts();
  sigval value;
  value.sival_ptr = &value;
  send_to_self(value);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = kSampleSignal;
  event.sigev_value.sival_ptr = &event;
  int timer = 0;
  REQUIRE(syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0);
  const itimerspec period{{0, 1'000'000}, {0, 1'000'000}};
  REQUIRE(syscall(SYS_timer_settime, timer, 0, &period, nullptr) == 0);
  burner()(2 * kBurnMs);
  syscall(SYS_timer_delete, timer);
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
    send_to_self({});
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
