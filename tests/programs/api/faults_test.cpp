// SPDX-License-Identifier: Apache-2.0
// What the interface says when the device fails: launches that are refused, faults of kernels, and
// which of two devices they concern. Each case in a process of its own: contexts do not recover.
#include "tests/programs/api/machine.h"

extern "C" const char kFaultPtx[];

namespace {

using xpu::Buffer;
using xpu::KernelStream;
using xpu::Stream;

// The n-th launch call from here on is refused by softgpu, once.
bool is_refusing() {
  return std::getenv("CAJETA_SOFTGPU_FAIL") != nullptr;
}

template <typename Refusal>
void check_refusal() {
  REQUIRE(is_refusing());
  const Machine machine;
  const auto stream = KernelStream::create(machine.device);
  const auto counter = machine.counter();
  CHECK_THROWS_AS(machine.count_up(stream, counter, 1), Refusal);
  // It did not run, and nothing else is wrong.
  machine.count_up(stream, counter, 2);
  CHECK(machine.read(stream, counter) == 2);
}

// The first of three queued launches is refused: whoever submits them is told.
template <typename Submit>
void check_queued_refusal(Submit submit) {
  REQUIRE(is_refusing());
  const Machine machine;
  const auto stream = deferred_stream(machine);
  const auto counter = machine.counter();
  for (int i = 0; i < 3; ++i) machine.count_up(stream, counter, 1);
  CHECK(stream.pendingLaunches() == 3);
  CHECK_THROWS_AS(submit(machine, stream, counter), xpu::OutOfResourcesError);
  CHECK(stream.pendingLaunches() == 0);
  stream.sync();
  const unsigned ran = machine.read(stream, counter);
  CHECK(ran == 2);
}

// Everything in the context fails from now on, the same way, and ends without a crash.
void check_fault(bool defers) {
  const xpu::Device device("cuda");
  const xpu::Module module(device, kFaultPtx);
  const xpu::Kernel poke = module.kernel("poke");
  auto stream = KernelStream::create(device);
  stream.setDeferred(defers);
  Buffer buffer(device, 256);
  const std::uint64_t good = buffer.address();
  for (int i = 0; i < 4; ++i) stream.launch(poke, {}, good, 7U);
  stream.launch(poke, {}, std::uint64_t{64}, 7U);
  CHECK_THROWS_AS(stream.sync(), xpu::IllegalAddressError);
  unsigned value = 0;
  CHECK_THROWS_AS(stream.read(&value, buffer, sizeof value), xpu::IllegalAddressError);
  CHECK_THROWS_AS(device.synchronize(), xpu::IllegalAddressError);
  CHECK_THROWS_AS(stream.launch(poke, {}, good, 7U), xpu::IllegalAddressError);
  CHECK_THROWS_AS(Buffer(device, 64), xpu::IllegalAddressError);
  CHECK(stream.pendingLaunches() == 0);
}

}  // namespace

TEST_CASE("refused for its resources") {
  check_refusal<xpu::OutOfResourcesError>();
}

TEST_CASE("refused when queued, told by the sync") {
  check_queued_refusal(
      [](const Machine&, const KernelStream& stream, const Buffer&) { stream.sync(); });
}

TEST_CASE("refused when queued, told by the flush") {
  check_queued_refusal(
      [](const Machine&, const KernelStream& stream, const Buffer&) { stream.flush(); });
}

TEST_CASE("refused when queued, told by the transfer") {
  check_queued_refusal([](const Machine& machine, const KernelStream& stream,
                          const Buffer& counter) { (void)machine.read(stream, counter); });
}

TEST_CASE("a fault of a kernel") {
  check_fault(false);
}

TEST_CASE("a fault of a queued kernel") {
  check_fault(true);
}

TEST_CASE("two devices") {
  REQUIRE(xpu::Device::count("cuda") == 2);
  const xpu::Device devices[] = {xpu::Device("cuda", 0), xpu::Device("cuda", 1)};
  CHECK(devices[0] != devices[1]);
  CHECK(Stream::default_stream(devices[0]) != Stream::default_stream(devices[1]));
  CHECK_THROWS_AS(xpu::Device("cuda", 2), xpu::InvalidDeviceError);
  const xpu::Module modules[] = {load(devices[0], true), load(devices[1], true)};
  KernelStream streams[] = {KernelStream::create(devices[0]), KernelStream::create(devices[1])};
  const Buffer counters[] = {Buffer(devices[0], 64), Buffer(devices[1], 64)};
  const bool defers = GENERATE(false, true);
  constexpr unsigned kRounds = 12;
  for (int i : {0, 1}) {
    const unsigned zero = 0;
    streams[i].write(counters[i], &zero, sizeof zero);
    streams[i].setDeferred(defers);
  }
  for (unsigned round = 0; round < kRounds; ++round) {
    for (unsigned i : {0U, 1U}) {
      streams[i].launch(modules[i].kernel("count_up"), {}, counters[i], round + i);
    }
    if (round % 4 == 3) streams[round / 4 % 2].sync();
  }
  for (unsigned i : {0U, 1U}) {
    unsigned value = 0;
    streams[i].read(&value, counters[i], sizeof value);
    CHECK(value == kRounds * (kRounds - 1) / 2 + kRounds * i);
    devices[i].synchronize();
  }
  // What is of one device is refused by the other's.
  CHECK_THROWS_AS(streams[0].launch(modules[1].kernel("count_up"), {}, counters[0], 1U),
                  xpu::Error);
  const std::uintptr_t native = streams[1].native_handle();
  CHECK_THROWS_AS(Stream::from_native_handle(devices[0], native), xpu::Error);
  CHECK(Stream::from_native_handle(devices[1], native).native_handle() == native);
}

TEST_CASE("a fault on one device leaves the other alone") {
  REQUIRE(xpu::Device::count("cuda") == 2);
  const xpu::Device devices[] = {xpu::Device("cuda", 0), xpu::Device("cuda", 1)};
  const xpu::Module broken(devices[1], kFaultPtx);
  const Machine machine;
  const auto good = deferred_stream(machine);
  auto bad = KernelStream::create(devices[1]);
  bad.setDeferred(true);
  const auto counter = machine.counter();
  machine.count_up(good, counter, 1);
  bad.launch(broken.kernel("trap_if"), {}, 1U);
  machine.count_up(good, counter, 2);
  CHECK_THROWS_AS(bad.sync(), xpu::Error);
  CHECK_THROWS_AS(devices[1].synchronize(), xpu::Error);
  good.sync();
  machine.count_up(good, counter, 4);
  CHECK(machine.read(good, counter) == 7);
  devices[0].synchronize();
}
