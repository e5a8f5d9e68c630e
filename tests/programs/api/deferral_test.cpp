// SPDX-License-Identifier: Apache-2.0
// Deferral through the public interface: what is queued, what submits it, and the law of the
// counters. Run under every order, with CAJETA_XPU_DEFER unset, 0 and all, and a deadline that
// never comes.
#include <malloc.h>

#include <functional>
#include <map>
#include <random>
#include <thread>

#include "tests/programs/api/machine.h"

using xpu::Event;
using xpu::KernelStream;

namespace {

// REPLAYED + DIRECT + pending = launches, of the process and of each stream.
class Law {
 public:
  explicit Law(std::vector<const xpu::StreamHandle*> streams) : streams_(std::move(streams)) {
    for (const auto* stream : streams_) before_[stream] = submitted(*stream);
    all_before_ = xpu::defer_stat(xpu::DEFER_REPLAYED) + xpu::defer_stat(xpu::DEFER_DIRECT);
  }
  void launched(const xpu::StreamHandle& stream) { ++launches_[&stream]; }
  void check() {
    std::uint64_t pending = 0, launches = 0;
    for (const auto* stream : streams_) {
      const std::uint64_t waiting = pending_of(*stream);
      CHECK(submitted(*stream) - before_[stream] + waiting == launches_[stream]);
      pending += waiting;
      launches += launches_[stream];
    }
    CHECK(xpu::defer_stat(xpu::DEFER_REPLAYED) + xpu::defer_stat(xpu::DEFER_DIRECT) - all_before_ +
              pending ==
          launches);
  }

 private:
  static std::uint64_t submitted(const xpu::StreamHandle& stream) {
    return stream.stream_stat(xpu::DEFER_REPLAYED) + stream.stream_stat(xpu::DEFER_DIRECT);
  }
  static std::uint64_t pending_of(const xpu::StreamHandle& stream) {
    std::uint64_t launches = 0;
    xpu::check(xpu::api().stream_pending_launches(stream.handle(), &launches));
    return launches;
  }
  std::vector<const xpu::StreamHandle*> streams_;
  std::map<const xpu::StreamHandle*, std::uint64_t> before_, launches_;
  std::uint64_t all_before_ = 0;
};

}  // namespace

TEST_CASE("a deferred stream holds its launches until something could observe them") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto other = machine.counter();
  const auto stream = deferred_stream(machine);
  xpu::Buffer borrowed = machine.counter();
  Event event(machine.device), elsewhere(machine.device);
  elsewhere.record(xpu::Stream::default_stream(machine.device));
  unsigned value = 0;

  const std::map<std::string, std::function<void()>> submitters{
      {"sync", [&] { stream.sync(); }},
      {"transfer to the host", [&] { stream.read(&value, counter, sizeof value); }},
      {"transfer from the host", [&] { stream.write(other, &value, sizeof value); }},
      {"event record", [&] { event.record(stream); }},
      {"event wait", [&] { stream.waitFor(elsewhere); }},
      {"buffer release", [&] { borrowed.release(); }},
      {"flush", [&] { stream.flush(); }},
      {"deferral off", [&] { stream.setDeferred(false); }},
      {"device synchronisation", [&] { machine.device.synchronize(); }},
  };
  for (const auto& [name, submit] : submitters) {
    INFO(name);
    stream.setDeferred(true);
    machine.device.synchronize();
    borrowed = machine.counter();
    const std::size_t executed = executed_kernels();
    const std::uint64_t flushes = stream.stream_stat(xpu::DEFER_FLUSHES);
    const std::uint64_t queued = stream.stream_stat(xpu::DEFER_QUEUED);
    for (unsigned i = 0; i < 5; ++i) {
      machine.count_up(stream, counter, 1);
      if (machine.queues()) CHECK(stream.pendingLaunches() == i + 1);
    }
    machine.count_up(stream, borrowed, 1);
    const unsigned waiting = machine.queues() ? 6 : 0;
    CHECK(stream.pendingLaunches() == waiting);
    CHECK(stream.stream_stat(xpu::DEFER_QUEUED) == queued + waiting);
    if (machine.queues()) CHECK(executed_kernels() == executed);
    submit();
    CHECK(stream.pendingLaunches() == 0);
    CHECK(stream.stream_stat(xpu::DEFER_FLUSHES) == flushes + (machine.queues() ? 1 : 0));
    machine.device.synchronize();
    CHECK(executed_kernels() == executed + 6);
  }
  CHECK(machine.read(stream, counter) == 5 * submitters.size());
}

TEST_CASE("who defers is the setting's and the stream's to say") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto stream = KernelStream::create(machine.device);
  const auto launch_twice = [&] {
    machine.count_up(stream, counter, 1);
    machine.count_up(stream, counter, 1);
    const std::uint64_t pending = stream.pendingLaunches();
    stream.sync();
    return pending;
  };
  CHECK(stream.is_deferred() == (deferral() == Deferral::kAll));
  CHECK(launch_twice() == (deferral() == Deferral::kAll ? 2 : 0));
  stream.setDeferred(true);
  stream.setDeferred(true);
  CHECK(stream.is_deferred() == machine.queues());
  CHECK(launch_twice() == (deferral() == Deferral::kNever ? 0 : 2));
  stream.setDeferred(false);
  stream.setDeferred(false);
  CHECK(!stream.is_deferred());
  CHECK(launch_twice() == 0);
  // Another stream has not asked.
  const auto quiet = KernelStream::create(machine.device);
  machine.count_up(quiet, counter, 1);
  CHECK(quiet.pendingLaunches() == (deferral() == Deferral::kAll ? 1 : 0));
  quiet.sync();
  CHECK(machine.read(stream, counter) == 7);
}

TEST_CASE("destroying a stream submits its queue, and its launches run") {
  const Machine machine;
  const auto counter = machine.counter();
  auto stream = deferred_stream(machine);
  for (int i = 0; i < 3; ++i) machine.count_up(stream, counter, 2);
  stream.destroy();
  stream.destroy();
  machine.device.synchronize();
  CHECK(machine.read(xpu::Stream::default_stream(machine.device), counter) == 6);
  CHECK_THROWS_AS(stream.sync(), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(stream.setDeferred(true), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(machine.count_up(stream, counter, 2), xpu::InvalidResourceHandleError);
}

TEST_CASE("the current stream defers as any other, and so does an adopted one") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto current = KernelStream::current();
  current.setDeferred(true);
  for (int i = 0; i < 4; ++i) machine.count_up(current, counter, 1);
  CHECK(current.pendingLaunches() == (machine.queues() ? 4 : 0));
  // Another thread's current stream leads to the same queue.
  std::thread([&] {
    const auto theirs = KernelStream::current();
    CHECK(theirs != current);
    CHECK(theirs.pendingLaunches() == (machine.queues() ? 4 : 0));
    theirs.sync();
  }).join();
  CHECK(current.pendingLaunches() == 0);
  current.setDeferred(deferral() == Deferral::kAll);

  const auto owner = xpu::Stream::create(machine.device);
  const auto adopted = xpu::Stream::from_native_handle(machine.device, owner.native_handle());
  adopted.set_deferred(true);
  machine.count_up(owner, counter, 1);
  CHECK(adopted.pending_launches() == (machine.queues() ? 1 : 0));
  adopted.synchronize();
  CHECK(machine.read(owner, counter) == 5);
}

TEST_CASE("a repeated sequence is recorded, replayed and patched") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto stream = deferred_stream(machine);
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 8; ++i) machine.affine(stream, counter, 3, i == 4 ? round : i);
    stream.sync();
  }
  const std::uint64_t replayed = machine.queues() ? 32 : 0;
  CHECK(stream.stream_stat(xpu::DEFER_REPLAYED) == replayed);
  CHECK(stream.stream_stat(xpu::DEFER_DIRECT) == 40 - replayed);
  CHECK(stream.stream_stat(xpu::DEFER_GRAPHS_BUILT) == (machine.queues() ? 1 : 0));
  CHECK(stream.stream_stat(xpu::DEFER_GRAPH_LAUNCHES) == (machine.queues() ? 4 : 0));
  CHECK(stream.stream_stat(xpu::DEFER_PATCHES) == (machine.queues() ? 3 : 0));
  CHECK(KernelStream::deferStat(xpu::DEFER_REPLAYED) >= replayed);
  unsigned expected = 0;
  for (unsigned round = 0; round < 5; ++round) {
    for (unsigned i = 0; i < 8; ++i) expected = expected * 3 + (i == 4 ? round : i);
  }
  CHECK(machine.read(stream, counter) == expected);
}

TEST_CASE("the counters obey their law at every step of random calls") {
  const Machine machine;
  const auto counter = machine.counter();
  const unsigned seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](unsigned count) { return random() % count; };
  std::vector<KernelStream> streams;
  streams.push_back(KernelStream::create(machine.device));
  streams.push_back(KernelStream::create(machine.device, CAJETA_XPU_STREAM_DEFAULT));
  streams.push_back(KernelStream::current());
  std::vector<Event> events;
  for (int i = 0; i < 3; ++i) events.emplace_back(machine.device);
  Law law({&streams[0], &streams[1], &streams[2]});
  unsigned total = 0;
  for (int step = 0; step < 150; ++step) {
    const KernelStream& stream = streams[pick(3)];
    switch (pick(9)) {
      case 0:
        stream.setDeferred(pick(3) != 0);
        break;
      case 1:
        stream.flush();
        break;
      case 2:
        stream.sync();
        break;
      case 3:
        events[pick(3)].record(stream);
        break;
      case 4:
        stream.waitFor(events[pick(3)]);
        break;
      case 5:  // a sequence that comes again
        for (int i = 0; i < 4; ++i) {
          machine.count_up(stream, counter, 1 + pick(2));
          law.launched(stream);
          law.check();
        }
        ++total;
        stream.flush();
        break;
      default:
        machine.count_up(stream, counter, 1);
        law.launched(stream);
    }
    law.check();
  }
  for (const KernelStream& stream : streams) {
    stream.sync();
    stream.setDeferred(deferral() == Deferral::kAll);
  }
  law.check();
  CHECK(total > 0);
}

TEST_CASE("threads may launch, flush and switch deferral at once") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto stream = deferred_stream(machine);
  Law law({&stream});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        machine.count_up(stream, counter, 1);
        if (i % 10 == t) stream.flush();
        if (i % 20 == t) stream.setDeferred(t % 2 == 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 240; ++i) law.launched(stream);
  law.check();
  CHECK(machine.read(stream, counter) == 240);
}

TEST_CASE("a launch on the expected path allocates nothing") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto stream = deferred_stream(machine);
  const auto launch_all = [&] {
    for (unsigned i = 0; i < 50; ++i) machine.affine(stream, counter, 3, i);
  };
  for (int round = 0; round < 3; ++round) {
    launch_all();
    stream.sync();
  }
  if (!machine.queues()) return;  // the driver's own launch may allocate
  const std::size_t before = mallinfo2().uordblks;
  launch_all();
  CHECK(mallinfo2().uordblks == before);
  CHECK(stream.pendingLaunches() == 50);
  stream.sync();
}

TEST_CASE("the cpu backend accepts deferral, without effect") {
  const Machine machine("cpu");
  const auto counter = machine.counter();
  const auto stream = deferred_stream(machine);
  Law law({&stream});
  for (unsigned i = 0; i < 4; ++i) {
    machine.count_up(stream, counter, 1);
    law.launched(stream);
    law.check();
    CHECK(stream.pendingLaunches() == 0);
    CHECK(*reinterpret_cast<unsigned*>(counter.address()) == i + 1);
  }
  CHECK(!stream.is_deferred());
  stream.flush();
  stream.setDeferred(false);
  CHECK(stream.stream_stat(xpu::DEFER_DIRECT) == 4);
  CHECK(stream.stream_stat(xpu::DEFER_QUEUED) == 0);
  CHECK(stream.stream_stat(xpu::DEFER_FLUSHES) == 0);
}
