// SPDX-License-Identifier: Apache-2.0
// Whole kernels compiled by nvcc, run by the executor and compared with host C++: divergence,
// barriers, warp operations, atomics, calls and communication between CTAs. Each runs in one step
// and in many small ones.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu_ptx/machine_fixture.h"

using namespace softgpu::ptx;
using namespace softgpu::ptx::test;

namespace {

const std::string& kernel_text() {
  static const std::string text = [] {
    const char* path = std::getenv("SOFTGPU_EXECUTOR_KERNELS");  // kernels/executor.cu as PTX
    REQUIRE(path != nullptr);
    std::ifstream file(path);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }();
  return text;
}

struct Fixture {
  Machine machine;
  Program program{machine, kernel_text()};

  void expect_done(const Outcome& outcome) {
    INFO(outcome.message);
    REQUIRE(outcome.status == KernelRun::Status::kDone);
  }
};

// One long step, and slices that cut every quantum somewhere else.
const std::uint64_t kSlices[] = {1u << 20, 1, 7, 1000};

std::vector<int> numbers(std::size_t count, int low, int high, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(low, high);
  std::vector<int> values(count);
  for (int& v : values) v = pick(random);
  return values;
}

}  // namespace

TEST_CASE("vector add with a partial last block", "[executor]") {
  Fixture f;
  const int n = 1000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.5f * static_cast<float>(i);
    b[i] = 7.0f - static_cast<float>(i);
  }
  const auto da = f.machine.upload(a), db = f.machine.upload(b);
  for (const auto slice : kSlices) {
    const auto dc = f.machine.allocate(n * 4);
    f.expect_done(
        f.program.run("vector_add", {4, 1, 1}, {256, 1, 1}, Arguments(da, db, dc, n), slice));
    const auto c = f.machine.download<float>(dc, n);
    for (int i = 0; i < n; ++i) REQUIRE(c[i] == a[i] + b[i]);
  }
}

TEST_CASE("matrix multiplication with shared tiles", "[executor]") {
  Fixture f;
  const int n = 64;
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 7) * 0.3f;
    b[i] = static_cast<float>(i % 11) - 4.7f;
  }
  const auto da = f.machine.upload(a), db = f.machine.upload(b), dc = f.machine.allocate(n * n * 4);
  f.expect_done(
      f.program.run("matrix_multiply", {4, 4, 1}, {16, 16, 1}, Arguments(da, db, dc, n), 4096));
  const auto c = f.machine.download<float>(dc, n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum = std::fma(a[i * n + k], b[k * n + j], sum);
      REQUIRE(c[i * n + j] == sum);
    }
  }
}

TEST_CASE("reduction in dynamic shared memory", "[executor]") {
  Fixture f;
  for (const unsigned block : {1u, 31u, 32u, 33u, 100u, 256u}) {
    const unsigned grid = 20;
    const auto in = numbers(grid * block, -1000, 1000, block);
    const auto din = f.machine.upload(in), dout = f.machine.allocate(grid * 4);
    auto config =
        f.program.config("reduce_shared", {grid, 1, 1}, {block, 1, 1}, Arguments(din, dout));
    config.dynamic_shared_bytes = block * 4;
    f.expect_done(f.program.run(config, 333));
    const auto out = f.machine.download<int>(dout, grid);
    for (unsigned g = 0; g < grid; ++g)
      REQUIRE(out[g] == std::accumulate(in.begin() + g * block, in.begin() + (g + 1) * block, 0));
  }
}

TEST_CASE("nested branches and loops with data-dependent trip counts", "[executor]") {
  Fixture f;
  const int n = 500;
  const auto in = numbers(n, -100000, 100000);
  const auto din = f.machine.upload(in);
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(n * 4);
    f.expect_done(
        f.program.run("nested_branches", {4, 1, 1}, {128, 1, 1}, Arguments(din, dout, n), slice));
    const auto out = f.machine.download<int>(dout, n);
    for (int i = 0; i < n; ++i) {
      int v = in[i];
      if (v & 1) {
        if (v & 2) {
          v = v * 3 + 1;
          if (v % 5 == 0) v -= 7;
        } else {
          v = v / 2 - 4;
        }
        v ^= 0x55;
      } else if (v % 3 == 0) {
        v = -v;
      } else {
        // The limit follows the value, as in the kernel; only the low 32 bits count.
        for (int k = 0; k < (v & 7); ++k) v = static_cast<int>(std::int64_t{v} * (k + 1));
      }
      REQUIRE(out[i] == v + 1);
    }
  }
}

TEST_CASE("while loop with break and continue", "[executor]") {
  Fixture f;
  const int n = 300;
  std::vector<unsigned> in(n);
  std::iota(in.begin(), in.end(), 1u);
  const auto din = f.machine.upload(in);
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(n * 4);
    f.expect_done(f.program.run("collatz", {3, 1, 1}, {128, 1, 1}, Arguments(din, dout, n), slice));
    const auto out = f.machine.download<int>(dout, n);
    for (int i = 0; i < n; ++i) {
      unsigned v = in[i];
      int steps = 0;
      while (v != 1 && steps <= 300) {
        ++steps;
        v = v & 1 ? 3 * v + 1 : v / 2;
      }
      REQUIRE(out[i] == steps);
    }
  }
}

TEST_CASE("switch with fall-through", "[executor]") {
  Fixture f;
  const int n = 256;
  const auto in = numbers(n, -5000, 5000);
  const auto din = f.machine.upload(in), dout = f.machine.allocate(n * 4);
  f.expect_done(f.program.run("dispatch", {2, 1, 1}, {128, 1, 1}, Arguments(din, dout)));
  const auto out = f.machine.download<int>(dout, n);
  for (int i = 0; i < n; ++i) {
    const int v = in[i];
    const int expected[8] = {v + 100, v * 3 - 9, v - 9, v * v, ~v, v * 4, v + 10, -1};
    REQUIRE(out[i] == expected[v & 7]);
  }
}

TEST_CASE("threads that left do not hold barriers", "[executor]") {
  Fixture f;
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(128 * 4);
    f.expect_done(f.program.run("leave_early", {1, 1, 1}, {128, 1, 1}, Arguments(dout, 70), slice));
    const auto out = f.machine.download<int>(dout, 128);
    for (int t = 0; t < 128; ++t) REQUIRE(out[t] == (t < 70 && (t & 1) ? 0 : t % 3 == 0 ? 1 : 2));
  }
}

TEST_CASE("shuffles, votes, matches and reductions of a warp", "[executor]") {
  Fixture f;
  const int n = 128;
  const auto in = numbers(n, -1000, 1000);
  const auto din = f.machine.upload(in), dout = f.machine.allocate(n * 12 * 4);
  f.expect_done(f.program.run("warp_operations", {2, 1, 1}, {64, 1, 1}, Arguments(din, dout), 13));
  const auto out = f.machine.download<int>(dout, n * 12);
  for (int i = 0; i < n; ++i) {
    const int* warp = in.data() + i / 32 * 32;
    const int lane = i % 32;
    int sum = 0, prefix = 0, most = warp[0];
    unsigned ballot = 0, matched = 0, bits = 0, same = 0;
    for (int k = 0; k < 32; ++k) {
      sum += warp[k];
      if (k <= lane) prefix += warp[k];
      most = std::max(most, warp[k]);
      bits ^= static_cast<unsigned>(warp[k]);
      if (warp[k] & 1) ballot |= 1u << k;
      if ((warp[k] & 3) == (in[i] & 3)) matched |= 1u << k;
      if ((warp[k] & 0x40000000) == (warp[0] & 0x40000000)) same |= 1u << k;
    }
    const int* got = out.data() + i * 12;
    REQUIRE(got[0] == sum);
    REQUIRE(got[1] == sum);
    REQUIRE(got[2] == prefix);
    REQUIRE(got[3] == warp[lane / 8 * 8 + 3]);
    REQUIRE(static_cast<unsigned>(got[4]) == ballot);
    REQUIRE(static_cast<unsigned>(got[5]) == matched);
    REQUIRE(static_cast<unsigned>(got[6]) == (same == ~0u ? ~0u : 0u));
    REQUIRE(got[7] == (same == ~0u ? 1 : 0));
    REQUIRE(got[8] == sum);
    REQUIRE(got[9] == most);
    bool any = false;
    for (int k = 0; k < 32; ++k) any |= warp[k] == in[0];
    REQUIRE(got[10] == (any ? 3 : 1));
    REQUIRE(static_cast<unsigned>(got[11]) == bits);
  }
}

TEST_CASE("halves of a warp meet at different bar.warp.sync", "[executor]") {
  Fixture f;
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(32 * 4);
    f.expect_done(f.program.run("split_sync", {1, 1, 1}, {32, 1, 1}, Arguments(dout), slice));
    const auto out = f.machine.download<int>(dout, 32);
    for (int t = 0; t < 32; ++t) REQUIRE(out[t] == (t < 16 ? (t + 16) * 100 : (t - 16) * 10));
  }
}

TEST_CASE("warp operations on part of a warp", "[executor]") {
  Fixture f;
  const auto in = numbers(32, 0, 100);
  const auto din = f.machine.upload(in), dout = f.machine.allocate(32 * 4);
  f.expect_done(f.program.run("partial_masks", {1, 1, 1}, {32, 1, 1}, Arguments(din, dout)));
  const auto out = f.machine.download<int>(dout, 32);
  int sum = 0;
  for (int t = 0; t < 32; t += 4) sum += in[t];
  REQUIRE(out[0] == sum);
  for (int t = 0; t < 32; ++t)
    if (t % 4 != 0) REQUIRE(out[t] == 24);
}

TEST_CASE("histogram with shared and global atomics", "[executor]") {
  Fixture f;
  const int n = 5000;
  std::mt19937 random(3);
  std::vector<unsigned> in(n);
  std::vector<unsigned> expected(64, 0);
  for (unsigned& v : in) ++expected[(v = static_cast<unsigned>(random())) & 63];
  const auto din = f.machine.upload(in), dbins = f.machine.allocate(64 * 4);
  f.expect_done(f.program.run("histogram", {7, 1, 1}, {128, 1, 1}, Arguments(din, dbins, n), 500));
  REQUIRE(f.machine.download<unsigned>(dbins, 64) == expected);
}

TEST_CASE("every atomic operation", "[executor]") {
  Fixture f;
  const unsigned threads = 192;
  std::vector<unsigned> u{5, 100000, 1000, 3, 0, 0, ~0u, 0, 0};
  std::vector<int> s{0, 0};
  std::vector<unsigned long long> w{7, 0, 1};
  const auto du = f.machine.upload(u), ds = f.machine.upload(s), dw = f.machine.upload(w);
  const auto df = f.machine.allocate(4), dd = f.machine.allocate(8);
  f.expect_done(
      f.program.run("atomic_family", {2, 1, 1}, {96, 1, 1}, Arguments(du, ds, df, dd, dw), 99));
  unsigned inc = 0, dec = 0;
  for (unsigned t = 0; t < threads; ++t) {
    u[0] += t;
    u[1] -= t;
    u[2] = std::min(u[2], t ^ 0x2a);
    u[3] = std::max(u[3], t ^ 0x2a);
    inc = inc >= 9 ? 0 : inc + 1;
    dec = dec == 0 || dec > 9 ? 9 : dec - 1;
    u[6] &= ~(1u << (t & 31));
    u[7] |= 1u << (t & 31);
    u[8] ^= t * 2654435761u;
    s[0] = std::min(s[0], 50 - static_cast<int>(t));
    s[1] = std::max(s[1], static_cast<int>(t) - 1000);
    w[0] += static_cast<unsigned long long>(t) << 20;
    w[1] = std::max(w[1], static_cast<unsigned long long>(t) << 33);
    w[2] += 3;
  }
  u[4] = inc;
  u[5] = dec;
  REQUIRE(f.machine.download<unsigned>(du, 9) == u);
  REQUIRE(f.machine.download<int>(ds, 2) == s);
  REQUIRE(f.machine.download<float>(df, 1)[0] == 96.0f);
  REQUIRE(f.machine.download<double>(dd, 1)[0] == 48.0);
  REQUIRE(f.machine.download<unsigned long long>(dw, 3) == w);
}

TEST_CASE("a spin lock between all threads", "[executor]") {
  Fixture f;
  f.expect_done(f.program.run("spin_lock", {3, 1, 1}, {40, 1, 1}, Arguments()));
  REQUIRE(f.machine.download<unsigned>(f.program.variable("g_plain"), 1)[0] == 120);
}

TEST_CASE("decoupled look-back between blocks", "[executor]") {
  Fixture f;
  const unsigned grid = 40;
  std::vector<unsigned> in(grid * 64);
  std::iota(in.begin(), in.end(), 1u);
  for (const auto slice : kSlices) {
    const auto din = f.machine.upload(in), dout = f.machine.allocate(in.size() * 4);
    const auto flags = f.machine.allocate(grid * 4), prefixes = f.machine.allocate(grid * 4);
    const auto ticket = f.machine.allocate(4);
    f.expect_done(f.program.run("look_back", {grid, 1, 1}, {64, 1, 1},
                                Arguments(din, dout, flags, prefixes, ticket), slice));
    std::vector<unsigned> expected(in.size());
    std::partial_sum(in.begin(), in.end(), expected.begin());
    REQUIRE(f.machine.download<unsigned>(dout, in.size()) == expected);
  }
}

TEST_CASE("grid-wide barriers of a cooperative launch", "[executor]") {
  Fixture f;
  const unsigned grid = 50, rounds = 6;
  const auto counter = f.machine.allocate(4), data = f.machine.allocate((rounds + 1) * grid * 4);
  auto config =
      f.program.config("grid_barrier", {grid, 1, 1}, {64, 1, 1}, Arguments(counter, data, rounds));
  config.cooperative = true;
  f.expect_done(f.program.run(config));
  std::vector<unsigned> expected((rounds + 1) * grid, 0);
  for (unsigned r = 1; r <= rounds; ++r)
    for (unsigned b = 0; b < grid; ++b)
      expected[r * grid + b] = expected[(r - 1) * grid + (b + grid - 1) % grid] + b;
  REQUIRE(f.machine.download<unsigned>(data, expected.size()) == expected);
}

TEST_CASE("a grid barrier without a cooperative launch, if the device holds the grid",
          "[executor]") {
  Fixture f;
  const unsigned grid = 60;
  const auto counter = f.machine.allocate(4), data = f.machine.allocate(3 * grid * 4);
  f.expect_done(
      f.program.run("grid_barrier", {grid, 1, 1}, {32, 1, 1}, Arguments(counter, data, 2u)));
  REQUIRE(f.machine.download<unsigned>(counter, 1)[0] == 2 * grid);
}

TEST_CASE("cooperative groups synchronise the grid", "[executor]") {
  Fixture f;
  const unsigned total = 24 * 48;
  const auto data = f.machine.allocate(total * 4);
  auto config = f.program.config("grid_groups", {24, 1, 1}, {48, 1, 1}, Arguments(data));
  config.cooperative = true;
  f.expect_done(f.program.run(config));
  const auto out = f.machine.download<unsigned>(data, total);
  for (unsigned i = 0; i < total; ++i) REQUIRE(out[i] == (total - 1 - i) * 3);
}

TEST_CASE("a kernel that waits for the host can be left and resumed", "[executor]") {
  Fixture f;
  const auto mailbox = f.machine.allocate(8);
  KernelRun run(f.program.config("wait_for_host", {1, 1, 1}, {32, 1, 1}, Arguments(mailbox)),
                f.machine, f.machine);
  for (int k = 0; k < 20; ++k) REQUIRE(run.step(1000) == KernelRun::Status::kRunning);
  const unsigned value = 41;
  std::memcpy(f.machine.bytes(mailbox), &value, 4);
  REQUIRE(run.step(1000) == KernelRun::Status::kDone);
  REQUIRE(f.machine.download<unsigned>(mailbox, 2)[1] == 42);
}

TEST_CASE("kernels on two host threads share memory through atomics", "[executor]") {
  Fixture f;
  const int n = 2000;
  std::vector<unsigned> in(n);
  std::iota(in.begin(), in.end(), 0u);
  const auto din = f.machine.upload(in), dbins = f.machine.allocate(64 * 4);
  const auto mailbox = f.machine.allocate(8);
  // The table is made once, before the threads read it.
  const auto table = f.machine.snapshot();
  const auto work = [&] {
    KernelRun run(f.program.config("histogram", {5, 1, 1}, {64, 1, 1}, Arguments(din, dbins, n)),
                  f.machine, f.machine);
    while (run.step(50) == KernelRun::Status::kRunning) {
    }
    return run.fault();
  };
  Fault faults[2] = {Fault::kNone, Fault::kNone};
  std::thread other([&] { faults[1] = work(); });
  // A third kernel polls a word that this thread then writes.
  std::thread waiting([&] {
    KernelRun run(f.program.config("wait_for_host", {1, 1, 1}, {32, 1, 1}, Arguments(mailbox)),
                  f.machine, f.machine);
    while (run.step(100) == KernelRun::Status::kRunning) {
    }
  });
  faults[0] = work();
  auto* word = reinterpret_cast<unsigned*>(f.machine.bytes(mailbox));
  __atomic_store_n(word, 7u, __ATOMIC_RELEASE);
  other.join();
  waiting.join();
  REQUIRE(faults[0] == Fault::kNone);
  REQUIRE(faults[1] == Fault::kNone);
  REQUIRE(f.machine.download<unsigned>(mailbox, 2)[1] == 8);
  std::vector<unsigned> expected(64, 0);
  for (const unsigned v : in) expected[v & 63] += 2;
  REQUIRE(f.machine.download<unsigned>(dbins, 64) == expected);
}

TEST_CASE("barriers that count and vote", "[executor]") {
  Fixture f;
  const auto in = numbers(100, 0, 100);
  const auto din = f.machine.upload(in), dout = f.machine.allocate(400);
  f.expect_done(f.program.run("barrier_votes", {1, 1, 1}, {100, 1, 1}, Arguments(din, dout), 5));
  int odd = 0;
  bool any = false;
  for (const int v : in) {
    odd += v & 1;
    any |= v > 90;
  }
  for (const int v : f.machine.download<int>(dout, 100)) REQUIRE(v == odd * 4 + (any ? 2 : 0) + 1);
}

TEST_CASE("recursion with a depth per lane", "[executor]") {
  Fixture f;
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(64 * 4);
    f.expect_done(f.program.run("recursion", {1, 1, 1}, {64, 1, 1}, Arguments(dout), slice));
    const auto out = f.machine.download<int>(dout, 64);
    const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
    for (int t = 0; t < 64; ++t) REQUIRE(out[t] == fibonacci[t % 13]);
  }
}

TEST_CASE("structures by value through calls", "[executor]") {
  struct Triple {
    int x;
    double y;
    char z[12];
  };
  Fixture f;
  std::vector<Triple> data(40);
  for (int i = 0; i < 40; ++i) {
    data[i] = {i * 3, i + 0.5, {}};
    for (int k = 0; k < 12; ++k) data[i].z[k] = static_cast<char>(i + 7 * k);
  }
  const auto ddata = f.machine.upload(data);
  f.expect_done(f.program.run("structures", {1, 1, 1}, {40, 1, 1}, Arguments(ddata), 3));
  const auto out = f.machine.download<Triple>(ddata, 40);
  for (int i = 0; i < 40; ++i) {
    REQUIRE(out[i].x == data[i].x + i);
    REQUIRE(out[i].y == data[i].y * out[i].x);
    for (int k = 0; k < 12; ++k) REQUIRE(out[i].z[k] == static_cast<char>(data[i].z[k] + i + k));
  }
}

TEST_CASE("calls through pointers with a target per lane", "[executor]") {
  Fixture f;
  for (const auto slice : kSlices) {
    const auto dout = f.machine.allocate(96 * 4);
    f.expect_done(
        f.program.run("function_pointers", {1, 1, 1}, {96, 1, 1}, Arguments(dout), slice));
    const auto out = f.machine.download<int>(dout, 96);
    for (int t = 0; t < 96; ++t) {
      const int expected[3] = {2 * t, t * t, ((t + 1) / 2) * ((t + 1) / 2)};
      REQUIRE(out[t] == expected[t % 3]);
    }
  }
}

TEST_CASE("virtual functions of objects on the device heap", "[executor]") {
  Fixture f;
  const auto dout = f.machine.allocate(64 * 4);
  f.expect_done(f.program.run("virtual_calls", {1, 1, 1}, {64, 1, 1}, Arguments(dout)));
  const auto out = f.machine.download<float>(dout, 64);
  for (int t = 0; t < 64; ++t) {
    const auto side = static_cast<float>(t);
    REQUIRE(out[t] == (t & 1 ? side * side : side * 3));
  }
  REQUIRE(f.machine.heap_used == 0);
}

TEST_CASE("arrays in local memory", "[executor]") {
  Fixture f;
  const auto in = numbers(64, -50, 50);
  const auto din = f.machine.upload(in), dout = f.machine.allocate(64 * 4);
  f.expect_done(f.program.run("local_arrays", {1, 1, 1}, {64, 1, 1}, Arguments(din, dout), 11));
  const auto out = f.machine.download<int>(dout, 64);
  for (int t = 0; t < 64; ++t) {
    unsigned sum = 0;
    for (int i = 0; i < 16; ++i) {
      const int at = (in[t] & 3) + i;
      sum = sum * 31 + static_cast<unsigned>(in[t] + at * at);
    }
    REQUIRE(out[t] == static_cast<int>(sum));
  }
}

TEST_CASE("device printf formats like the host", "[executor]") {
  Fixture f;
  f.expect_done(f.program.run("prints", {1, 1, 1}, {32, 1, 1}, Arguments(2)));
  std::string expected;
  char line[256];
  for (int t = 0; t < 2; ++t) {
    std::snprintf(line, sizeof line, "t%d %5u|%-4x|%08llx %.3f %g %e %s %c %% %lld\n", t, 7u,
                  0xabcu, 0x123456789abcull, 1.0 / 3.0, 1e20, 12345.678, "constant string", 'q',
                  -5000000000ll);
    expected += line;
  }
  std::snprintf(line, sizeof line, "%s %p %*d %+d no arguments\n", "literal",
                reinterpret_cast<void*>(0x1234), 6, 42, 9);
  expected += line;
  expected += "plain\nplain\n";
  REQUIRE(f.machine.printed == expected);
}

TEST_CASE("a failing assertion names the thread and stops the grid", "[executor]") {
  Fixture f;
  const auto dout = f.machine.allocate(64 * 4);
  const Outcome outcome = f.program.run("asserts", {1, 1, 1}, {64, 1, 1}, Arguments(dout));
  REQUIRE(outcome.fault == Fault::kAssert);
  const std::string& text = f.machine.printed;
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 24);
  REQUIRE(text.find("block: [0,0,0], thread: [40,0,0] Assertion `threadIdx.x < 40` failed.\n") !=
          std::string::npos);
  REQUIRE(text.find("thread: [39,0,0]") == std::string::npos);
}

TEST_CASE("device malloc and free", "[executor]") {
  Fixture f;
  const auto dout = f.machine.allocate(32 * 4);
  f.expect_done(f.program.run("heap", {1, 1, 1}, {32, 1, 1}, Arguments(dout, 40)));
  auto out = f.machine.download<unsigned>(dout, 32);
  for (unsigned t = 0; t < 32; ++t) REQUIRE(out[t] == t * 10000 + 45);
  REQUIRE(f.machine.heap_used == 0);
  f.machine.heap_limit = 0;
  f.expect_done(f.program.run("heap", {1, 1, 1}, {32, 1, 1}, Arguments(dout, 40)));
  for (const unsigned v : f.machine.download<unsigned>(dout, 32)) REQUIRE(v == 0xffffffffu);
}

TEST_CASE("conditions of graphs are set by handle", "[executor]") {
  Fixture f;
  f.machine.conditions[2] = 5;
  f.expect_done(f.program.run("set_conditions", {1, 1, 1}, {32, 1, 1},
                              Arguments(std::uint64_t{2}, 0xfffffff0u)));
  REQUIRE(f.machine.conditions[0] == 0xfffffff0u);
  REQUIRE(f.machine.conditions[1] == 0xfffffff1u);
  REQUIRE(f.machine.conditions[2] == 5);
  const Outcome o =
      f.program.run("set_conditions", {1, 1, 1}, {32, 1, 1}, Arguments(std::uint64_t{5}, 1u));
  REQUIRE(o.fault == Fault::kIllegalAddress);
  REQUIRE(o.message ==
          "kernel set_conditions block (0,0,0) thread (4,0,0): cudaGraphSetConditional of 0x4, "
          "which is no handle of this context");
}

// --- faults
// --------------------------------------------------------------------------------------------------------------

TEST_CASE("faults name the kernel, the thread and the address", "[executor]") {
  Fixture f;
  const auto data = f.machine.allocate(64);
  SECTION("store out of bounds") {
    const Outcome o = f.program.run("store_at", {1, 1, 1}, {8, 1, 1}, Arguments(data, 16));
    REQUIRE(o.fault == Fault::kIllegalAddress);
    char address[32];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(data + 64));
    REQUIRE(o.message == "kernel store_at block (0,0,0) thread (5,0,0): illegal address " +
                             std::string(address) + " (4-byte store)");
  }
  SECTION("null pointer") {
    const Outcome o =
        f.program.run("store_at", {1, 1, 1}, {8, 1, 1}, Arguments(std::uint64_t{0}, 0));
    REQUIRE(o.fault == Fault::kIllegalAddress);
  }
  SECTION("misaligned load") {
    const Outcome o = f.program.run("load_bytes_at", {1, 1, 1}, {8, 1, 1}, Arguments(data, data));
    REQUIRE(o.fault == Fault::kMisalignedAddress);
    REQUIRE(o.message.find("thread (7,0,0): misaligned address") != std::string::npos);
  }
  SECTION("store to a constant") {
    const auto table = f.program.variable("c_table");
    const Outcome o = f.program.run("store_at", {1, 1, 1}, {8, 1, 1}, Arguments(table, 0));
    REQUIRE(o.fault == Fault::kIllegalAddress);
    f.expect_done(f.program.run("read_constant", {1, 1, 1}, {8, 1, 1}, Arguments(data)));
    REQUIRE(f.machine.download<int>(data, 8) == std::vector<int>{3, 1, 4, 1, 5, 9, 2, 6});
  }
  SECTION("trap") {
    REQUIRE(f.program.run("traps", {1, 1, 1}, {32, 1, 1}, Arguments()).fault == Fault::kTrap);
  }
  SECTION("call through a bad pointer") {
    const Outcome o = f.program.run("call_nowhere", {1, 1, 1}, {32, 1, 1}, Arguments(data, data));
    REQUIRE(o.fault == Fault::kInvalidPc);
  }
  SECTION("endless recursion") {
    const Outcome o = f.program.run("runaway", {1, 1, 1}, {32, 1, 1}, Arguments(data));
    REQUIRE(o.fault == Fault::kStackOverflow);
  }
  SECTION("shared memory out of bounds") {
    const Outcome o =
        f.program.run("shared_overrun", {1, 1, 1}, {8, 1, 1}, Arguments(data, 1 << 20));
    REQUIRE(o.fault == Fault::kIllegalAddress);
  }
}

TEST_CASE("the grid stops at the first fault and stays stopped", "[executor]") {
  Fixture f;
  KernelRun run(f.program.config("traps", {100, 1, 1}, {32, 1, 1}, Arguments()), f.machine,
                f.machine);
  REQUIRE(run.step(1 << 20) == KernelRun::Status::kFault);
  const std::string message = run.fault_message();
  REQUIRE(run.step(1 << 20) == KernelRun::Status::kFault);
  REQUIRE(run.fault_message() == message);
  REQUIRE(run.fault() == Fault::kTrap);
}
