// SPDX-License-Identifier: Apache-2.0
// The contract of every method of the public interface, on both backends: results, errors by name,
// idempotence, adoption, other threads, borrowing, and misuse, which is an error and never a crash.
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "tests/programs/api/machine.h"

using xpu::Event;
using xpu::KernelStream;
using xpu::Stream;

namespace {

template <typename Handle>
Handle made_up(std::uintptr_t bits) {
  return reinterpret_cast<Handle>(bits);
}

}  // namespace

TEST_CASE("the C names can be linked, and say their version") {
  CHECK(cajeta_xpu_version() == 10000);
  CHECK(xpu::api().version == &cajeta_xpu_version);
}

TEST_CASE("errors have names and one line") {
  CHECK(std::string(cajeta_xpu_error_name(CAJETA_XPU_SUCCESS)) == "CAJETA_XPU_SUCCESS");
  CHECK(std::string(cajeta_xpu_error_name(600)) == "CAJETA_XPU_ERROR_NOT_READY");
  CHECK(std::string(cajeta_xpu_error_name(719)) == "CAJETA_XPU_ERROR_LAUNCH_FAILURE");
  CHECK(std::string(cajeta_xpu_error_name(304)) == "CUDA_ERROR_OPERATING_SYSTEM");
  CHECK(std::string(cajeta_xpu_error_name(-5)) == "unrecognized error code");
  int count = 7;
  errno = 42;
  CHECK(cajeta_xpu_device_count("tpu", &count) == CAJETA_XPU_ERROR_INVALID_VALUE);
  CHECK(errno == 42);
  CHECK(count == 7);
  CHECK(std::string(cajeta_xpu_error_message()) ==
        "cajeta_xpu_device_count: no backend tpu; there are cuda and cpu");
  // Each thread has its own.
  std::thread([] { CHECK(std::string(cajeta_xpu_error_message()).empty()); }).join();
}

TEST_CASE("devices") {
  const std::string backend = GENERATE(values<const char*>({"cuda", "cpu"}));
  const xpu::Device device(backend.c_str());
  CHECK(xpu::Device::count(backend.c_str()) == 1);
  CHECK(device == xpu::Device(backend.c_str(), 0));
  CHECK(device.backend() == backend);
  CHECK(device.ordinal() == 0);
  CHECK_THROWS_AS(xpu::Device(backend.c_str(), 1), xpu::InvalidDeviceError);
  CHECK_THROWS_AS(xpu::Device(backend.c_str(), -1), xpu::InvalidDeviceError);
  CHECK_THROWS_AS(xpu::Device("metal"), xpu::InvalidArgumentError);
  const auto [least, greatest] = device.priority_range();
  CHECK(greatest <= least);
  device.synchronize();
}

TEST_CASE("the current stream is the thread's own, and always there") {
  auto current = KernelStream::current();
  CHECK(current == KernelStream::current());
  CHECK(current.native_handle() == 0);
  CHECK(current.is_default());
  CHECK(current.device() == xpu::Device("cuda"));
  current.destroy();
  current.destroy();
  current.sync();
  cajeta_xpu_stream theirs = nullptr;
  std::thread([&] {
    theirs = KernelStream::current().handle();
    CHECK(theirs == KernelStream::current().handle());
  }).join();
  CHECK(theirs != current.handle());
  // It ended with its thread.
  CHECK(cajeta_xpu_stream_synchronize(theirs) == CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE);
}

TEST_CASE("made streams") {
  const xpu::Device device(GENERATE(values<const char*>({"cuda", "cpu"})));
  std::set<std::uintptr_t> natives;
  for (const unsigned flags : {CAJETA_XPU_STREAM_DEFAULT, CAJETA_XPU_STREAM_NON_BLOCKING}) {
    auto stream = Stream::create(device, flags, device.priority_range().second);
    CHECK(stream.flags() == flags);
    CHECK(stream.priority() == device.priority_range().second);
    CHECK(!stream.is_default());
    CHECK(stream.device() == device);
    CHECK(stream.native_handle() != 0);
    natives.insert(stream.native_handle());
    stream.synchronize();
    CHECK(stream.query_idle());
    stream.destroy();
    stream.destroy();
    CHECK_THROWS_AS(stream.query_idle(), xpu::InvalidResourceHandleError);
    CHECK_THROWS_AS(stream.native_handle(), xpu::InvalidResourceHandleError);
  }
  CHECK_THROWS_AS(Stream::create(device, 8), xpu::InvalidArgumentError);
  CHECK(!natives.empty());
}

TEST_CASE("default streams") {
  const xpu::Device device(GENERATE(values<const char*>({"cuda", "cpu"})));
  auto stream = Stream::default_stream(device);
  CHECK(stream.is_default());
  CHECK(stream.native_handle() == 0);
  CHECK(stream == Stream::default_stream(device));
  stream.destroy();
  stream.synchronize();
  CHECK(stream.query_idle());
  CHECK(stream.flags() == CAJETA_XPU_STREAM_DEFAULT);
}

TEST_CASE("adopted streams") {
  const Machine machine;
  const auto counter = machine.counter();
  auto owner = Stream::create(machine.device);
  const std::uintptr_t native = owner.native_handle();
  {
    auto adopted = Stream::from_native_handle(machine.device, native);
    CHECK(adopted == Stream::from_native_handle(machine.device, native));
    CHECK(adopted != owner);
    CHECK(adopted.native_handle() == native);
    CHECK(!adopted.is_default());
    machine.count_up(adopted, counter, 3);
    adopted.destroy();
    adopted.synchronize();
  }
  // It is its maker's: the end of ours did nothing to it.
  machine.count_up(owner, counter, 4);
  CHECK(machine.read(owner, counter) == 7);
  CHECK_THROWS_AS(Stream::from_native_handle(machine.device, 0), xpu::InvalidArgumentError);
  for (const std::uintptr_t special : {1, 2}) {
    const auto stream = Stream::from_native_handle(machine.device, special);
    CHECK(stream.native_handle() == special);
    stream.set_deferred(true);
    machine.count_up(stream, counter, 1);
    stream.synchronize();
    stream.set_deferred(deferral() == Deferral::kAll);
  }
  CHECK(machine.read(owner, counter) == 9);
  owner.destroy();
  CHECK_THROWS_AS(Stream::from_native_handle(machine.device, native), xpu::Error);
}

TEST_CASE("the cpu backend adopts nothing") {
  const xpu::Device device("cpu");
  CHECK_THROWS_AS(Stream::from_native_handle(device, 0), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(Stream::from_native_handle(device, 77), xpu::UnsupportedError);
}

TEST_CASE("launches of one stream run in order, those of two by their events") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  const auto data = machine.counter(1);
  const auto first = deferred_stream(machine), second = deferred_stream(machine);
  unsigned expected = 1;
  for (unsigned round = 0; round < 6; ++round) {
    Event event(machine.device, Event::kDisableTiming);
    const KernelStream& stream = round % 2 == 0 ? first : second;
    for (unsigned i = 0; i < 5; ++i) {
      machine.affine(stream, data, 3, i + round);
      expected = expected * 3 + i + round;
    }
    event.record(stream);
    (round % 2 == 0 ? second : first).waitFor(event);
  }
  CHECK(machine.read(first, data) == expected);
}

TEST_CASE("events") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  const auto counter = machine.counter();
  const auto stream = Stream::create(machine.device);
  Event start(machine.device), end(machine.device, Event::kBlockingSync);
  Event untimed(machine.device, Event::kDisableTiming);
  SECTION("never recorded") {
    CHECK(start.query());
    start.synchronize();
    stream.wait_event(start);
    CHECK_THROWS_AS(end.elapsed_ms(start), xpu::InvalidResourceHandleError);
  }
  SECTION("recorded") {
    start.record(stream);
    machine.count_up(stream, counter, 1);
    end.record(stream);
    untimed.record(stream);
    end.synchronize();
    CHECK(end.query());
    CHECK(start.query());
    CHECK(end.elapsed_ms(start) >= 0);
    untimed.synchronize();
    CHECK_THROWS_AS(untimed.elapsed_ms(start), xpu::InvalidResourceHandleError);
  }
  SECTION("flags") {
    CHECK_THROWS_AS(Event(machine.device, 8), xpu::InvalidArgumentError);
    CHECK_THROWS_AS(Event(machine.device, Event::kInterprocess), xpu::InvalidArgumentError);
    const unsigned shared = Event::kInterprocess | Event::kDisableTiming;
    if (machine.is_cuda()) {
      Event(machine.device, shared).record(stream);
    } else {
      CHECK_THROWS_AS(Event(machine.device, shared), xpu::UnsupportedError);
    }
  }
  SECTION("destroyed") {
    start.destroy();
    start.destroy();
    CHECK_THROWS_AS(start.record(stream), xpu::InvalidResourceHandleError);
    CHECK_THROWS_AS(start.query(), xpu::InvalidResourceHandleError);
    CHECK_THROWS_AS(stream.wait_event(start), xpu::InvalidResourceHandleError);
  }
  SECTION("of another backend") {
    Event foreign{xpu::Device(machine.is_cuda() ? "cpu" : "cuda")};
    CHECK_THROWS_AS(foreign.record(stream), xpu::InvalidResourceHandleError);
    CHECK_THROWS_AS(stream.wait_event(foreign), xpu::InvalidArgumentError);
    CHECK_THROWS_AS(end.elapsed_ms(foreign), xpu::InvalidArgumentError);
  }
}

TEST_CASE("an event that is not done says so") {
  const Machine machine;
  const auto counter = machine.counter();
  const auto stream = deferred_stream(machine);
  Event event(machine.device);
  machine.count_up(stream, counter, 1);
  event.record(stream);
  const int first = cajeta_xpu_event_query(event.handle());
  CHECK((first == CAJETA_XPU_SUCCESS || first == CAJETA_XPU_ERROR_NOT_READY));
  const char* order = std::getenv("CAJETA_SOFTGPU_ORDER");
  if (order != nullptr && std::string(order) == "late") CHECK(first == CAJETA_XPU_ERROR_NOT_READY);
  event.synchronize();
  CHECK(cajeta_xpu_event_query(event.handle()) == CAJETA_XPU_SUCCESS);
}

TEST_CASE("a launch borrows its buffers until a synchronisation behind it") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  xpu::Buffer buffer = machine.counter();
  const auto stream = deferred_stream(machine), other = deferred_stream(machine);
  Event event(machine.device);
  CHECK(!buffer.is_borrowed());
  machine.count_up(stream, buffer, 1);
  CHECK(buffer.is_borrowed());
  SECTION("of its stream") {
    event.record(stream);
    machine.count_up(stream, buffer, 1);
    event.synchronize();
    CHECK(buffer.is_borrowed());  // by the launch behind the event
    stream.sync();
  }
  SECTION("of an event") {
    event.record(stream);
    event.synchronize();
  }
  SECTION("of another stream that waited for it") {
    other.sync();
    CHECK(buffer.is_borrowed());
    event.record(stream);
    other.waitFor(event);
    CHECK(buffer.is_borrowed());
    other.sync();
  }
  SECTION("of the device") {
    machine.device.synchronize();
  }
  SECTION("by a transfer") {
    machine.read(stream, buffer);
  }
  SECTION("of every stream that borrows it, more than are told apart") {
    std::vector<KernelStream> streams;
    for (int i = 0; i < 6; ++i) {
      streams.push_back(deferred_stream(machine));
      machine.count_up(streams.back(), buffer, 1);
    }
    for (const auto& one : streams) one.sync();
    CHECK(buffer.is_borrowed());
    machine.device.synchronize();
  }
  CHECK(!buffer.is_borrowed());
}

TEST_CASE("a borrowed buffer may be released: its work is submitted and runs") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  const auto counter = machine.counter();
  xpu::Buffer buffer = machine.counter();
  const auto stream = deferred_stream(machine);
  machine.count_up(stream, counter, 1);
  machine.count_up(stream, buffer, 1);
  buffer.release();
  CHECK(stream.pendingLaunches() == 0);
  CHECK(machine.read(stream, counter) == 1);
  buffer.release();
  CHECK_THROWS_AS(machine.count_up(stream, buffer, 1), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(machine.read(stream, buffer), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(buffer.is_borrowed(), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(buffer.address(), xpu::InvalidResourceHandleError);
}

TEST_CASE("buffers") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  const auto stream = Stream::create(machine.device);
  const xpu::Buffer buffer(machine.device, 100);
  CHECK(buffer.size() == 100);
  CHECK(buffer.address() % 256 == 0);
  CHECK_THROWS_AS(xpu::Buffer(machine.device, 0), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(xpu::Buffer(machine.device, std::size_t{1} << 60), xpu::OutOfMemoryError);
  char text[100] = "abcdefghij", back[100] = {};
  stream.write(buffer, text, 90, 10);
  stream.read(back, buffer, 5, 12);
  CHECK(std::string(back) == "cdefg");
  CHECK_THROWS_AS(stream.write(buffer, text, 91, 10), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(stream.read(text, buffer, SIZE_MAX, 10), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(stream.read(nullptr, buffer, 1), xpu::InvalidArgumentError);
  const auto foreign = Stream::create(xpu::Device(machine.is_cuda() ? "cpu" : "cuda"));
  CHECK_THROWS_AS(foreign.read(back, buffer, 5), xpu::InvalidArgumentError);
}

TEST_CASE("modules and kernels") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  xpu::Module module = load(machine.device, machine.is_cuda());
  const xpu::Kernel kernel = module.kernel("count_up");
  CHECK(kernel.handle() == module.kernel("count_up").handle());
  CHECK(kernel.handle() != machine.module.kernel("count_up").handle());
  CHECK(kernel.handle() != module.kernel("affine").handle());
  CHECK_THROWS_AS(module.kernel("no_such_kernel"), xpu::NotFoundError);
  const auto stream = deferred_stream(machine);
  const auto counter = machine.counter();
  stream.launch(kernel, {}, counter, 4U);
  stream.sync();
  module.unload();
  module.unload();
  CHECK_THROWS_AS(stream.launch(kernel, {}, counter, 4U), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(module.kernel("count_up"), xpu::InvalidResourceHandleError);
  CHECK_THROWS_AS(kernel.max_active_blocks(32), xpu::InvalidResourceHandleError);
  CHECK(machine.read(stream, counter) == 4);
}

TEST_CASE("images and functions are for one backend each") {
  const xpu::Device cuda("cuda"), cpu("cpu");
  const auto kernels = host_kernels();
  CHECK_THROWS_AS(xpu::Module(cuda, kernels.data(), kernels.size()), xpu::UnsupportedError);
  CHECK_THROWS_AS(xpu::Module(cpu, "text"), xpu::UnsupportedError);
  CHECK_THROWS_AS(xpu::Module(cuda, nullptr), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(xpu::Module(cpu, kernels.data(), 0), xpu::InvalidArgumentError);
  const cajeta_xpu_host_kernel nameless{nullptr, kernels[0].function, nullptr};
  CHECK_THROWS_AS(xpu::Module(cpu, &nameless, 1), xpu::InvalidArgumentError);
  CHECK_THROWS_AS(xpu::Module(cuda, "not PTX at all"), xpu::Error);
}

TEST_CASE("wrong launches are refused") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  const xpu::Kernel kernel = machine.module.kernel("count_up");
  const auto stream = deferred_stream(machine);
  const auto counter = machine.counter();
  const std::uint64_t direct = stream.stream_stat(xpu::DEFER_DIRECT);
  CHECK_THROWS_AS(stream.launch(kernel, {{0, 1, 1}, {1, 1, 1}}, counter, 1U),
                  xpu::InvalidArgumentError);
  CHECK_THROWS_AS(stream.launch(kernel, {{1, 1, 1}, {1, 0, 1}}, counter, 1U),
                  xpu::InvalidArgumentError);
  if (machine.is_cuda()) {
    CHECK_THROWS_AS(stream.launch(kernel, {}, counter), xpu::InvalidArgumentError);
    CHECK_THROWS_AS(stream.launch(kernel, {}, counter, 1U, 2U), xpu::InvalidArgumentError);
    CHECK_THROWS_AS(stream.launch(kernel, {}, counter, char{1}), xpu::InvalidArgumentError);
    CHECK_THROWS_AS(stream.launch(kernel, {{1, 1, 1}, {2048, 1, 1}}, counter, 1U), xpu::Error);
  }
  const auto foreign = Stream::create(xpu::Device(machine.is_cuda() ? "cpu" : "cuda"));
  CHECK_THROWS_AS(foreign.launch(kernel, {}, counter, 1U), xpu::InvalidArgumentError);
  CHECK(stream.pendingLaunches() == 0);
  CHECK(stream.stream_stat(xpu::DEFER_DIRECT) - direct <= 1);  // what reached the driver
  CHECK(machine.read(stream, counter) == 0);
}

TEST_CASE("cooperative launches and occupancy") {
  const Machine machine;
  const xpu::Kernel relay = machine.module.kernel("relay");
  CHECK(relay.max_active_blocks(64) > 0);
  CHECK(relay.max_active_blocks(64, 1 << 30) == 0);
  CHECK_THROWS_AS(relay.max_active_blocks(0), xpu::InvalidArgumentError);
  const auto size = relay.max_potential_block_size(0, 128);
  CHECK(size.block <= 128);
  CHECK(size.block > 0);
  CHECK(size.grid > 0);
  CHECK_THROWS_AS(relay.max_potential_block_size(0, -1), xpu::InvalidArgumentError);
  const auto stream = deferred_stream(machine);
  const auto data = machine.counter(1);
  for (int i = 0; i < 3; ++i) {
    stream.launch_cooperative(relay, {{2, 1, 1}, {32, 1, 1}}, data, 5U, 64);
  }
  CHECK(machine.read(stream, data) != 1);
  CHECK_THROWS_AS(stream.launch_cooperative(relay, {{1U << 20, 1, 1}, {64, 1, 1}}, data, 5U, 64),
                  xpu::CooperativeLaunchTooLargeError);

  const Machine host("cpu");
  const xpu::Kernel kernel = host.module.kernel("count_up");
  CHECK(kernel.max_active_blocks(64) == 1);
  CHECK(kernel.max_potential_block_size().grid == 1);
}

TEST_CASE("host kernels report failures, and may launch on their own stream") {
  const Machine machine("cpu");
  const auto stream = KernelStream::create(machine.device);
  CHECK_THROWS_AS(stream.launch(machine.module.kernel("fails"), {}), xpu::LaunchFailureError);
  const auto counter = machine.counter();
  std::vector<void*> call{const_cast<Machine*>(&machine), const_cast<KernelStream*>(&stream),
                          const_cast<xpu::Buffer*>(&counter)};
  const std::vector<void*>* pointer = &call;
  stream.launch(machine.module.kernel("nested"), {}, pointer);
  CHECK(machine.read(stream, counter) == 5);
}

TEST_CASE("any number that is no handle is refused by every call") {
  const Machine machine;
  const auto kernel = machine.module.kernel("count_up").handle();
  const auto live = KernelStream::create(machine.device);
  const auto handle_bits = reinterpret_cast<std::uintptr_t>(live.handle());
  for (const std::uintptr_t bits :
       {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0x2C}, handle_bits ^ 0x10,
        handle_bits + (std::uintptr_t{2} << 28), handle_bits | 0xFFF00, ~std::uintptr_t{0}}) {
    const auto stream = made_up<cajeta_xpu_stream>(bits);
    const auto event = made_up<cajeta_xpu_event>(bits);
    const auto buffer = made_up<cajeta_xpu_buffer>(bits);
    const auto module = made_up<cajeta_xpu_module>(bits);
    const auto device = made_up<cajeta_xpu_device>(bits);
    const cajeta_xpu_launch_shape shape{{1, 1, 1}, {1, 1, 1}, 0};
    const cajeta_xpu_argument argument{nullptr, 0, buffer};
    cajeta_xpu_stream made_stream = nullptr;
    cajeta_xpu_event made_event = nullptr;
    cajeta_xpu_buffer made_buffer = nullptr;
    cajeta_xpu_module made_module = nullptr;
    cajeta_xpu_kernel made_kernel = nullptr;
    cajeta_xpu_device made_device = nullptr;
    std::uint64_t number = 0;
    std::uintptr_t native = 0;
    unsigned flags = 0;
    int one = 0, two = 0;
    float elapsed = 0;
    const char* text = nullptr;
    const int results[] = {
        cajeta_xpu_device_synchronize(device),
        cajeta_xpu_device_priority_range(device, &one, &two),
        cajeta_xpu_device_identity(device, &text, &one),
        cajeta_xpu_stream_default(device, &made_stream),
        cajeta_xpu_stream_create(device, 0, 0, &made_stream),
        cajeta_xpu_stream_from_native(device, 77, &made_stream),
        cajeta_xpu_stream_destroy(stream),
        cajeta_xpu_stream_device(stream, &made_device),
        cajeta_xpu_stream_native(stream, &native),
        cajeta_xpu_stream_is_default(stream, &one),
        cajeta_xpu_stream_properties(stream, &flags, &one),
        cajeta_xpu_stream_query_idle(stream, &one),
        cajeta_xpu_stream_synchronize(stream),
        cajeta_xpu_stream_wait_event(live.handle(), event),
        cajeta_xpu_stream_set_deferred(stream, 1),
        cajeta_xpu_stream_is_deferred(stream, &one),
        cajeta_xpu_stream_flush(stream),
        cajeta_xpu_stream_pending_launches(stream, &number),
        cajeta_xpu_stream_defer_stat(stream, 0, &number),
        cajeta_xpu_event_create(device, 0, &made_event),
        cajeta_xpu_event_destroy(event),
        cajeta_xpu_event_record(event, live.handle()),
        cajeta_xpu_event_query(event),
        cajeta_xpu_event_synchronize(event),
        cajeta_xpu_event_elapsed_ms(event, event, &elapsed),
        cajeta_xpu_buffer_create(device, 8, &made_buffer),
        cajeta_xpu_buffer_release(buffer),
        cajeta_xpu_buffer_range(buffer, &number, nullptr),
        cajeta_xpu_buffer_is_borrowed(buffer, &one),
        cajeta_xpu_buffer_write(buffer, 0, &one, 1, live.handle()),
        cajeta_xpu_buffer_read(buffer, 0, &one, 1, live.handle()),
        cajeta_xpu_module_load(device, "", &made_module),
        cajeta_xpu_module_from_functions(device, nullptr, 0, &made_module),
        cajeta_xpu_module_unload(module),
        cajeta_xpu_module_kernel(module, "count_up", &made_kernel),
        cajeta_xpu_launch(stream, kernel, &shape, &argument, 0),
        cajeta_xpu_launch_cooperative(live.handle(), made_up<cajeta_xpu_kernel>(bits), &shape,
                                      &argument, 0),
        cajeta_xpu_max_active_blocks(made_up<cajeta_xpu_kernel>(bits), 1, 0, &one),
        cajeta_xpu_max_potential_block_size(made_up<cajeta_xpu_kernel>(bits), 0, 0, &one, &two),
    };
    for (std::size_t i = 0; i < std::size(results); ++i) {
      INFO("call " << i << " with " << bits);
      CHECK(results[i] == CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE);
    }
  }
}

TEST_CASE("null outputs are refused") {
  const Machine machine;
  const auto stream = Stream::create(machine.device);
  const auto d = machine.device.handle();
  const auto s = stream.handle();
  int one = 0;
  const int results[] = {
      cajeta_xpu_device_count("cuda", nullptr),
      cajeta_xpu_device_count(nullptr, &one),
      cajeta_xpu_device_open("cuda", 0, nullptr),
      cajeta_xpu_device_priority_range(d, nullptr, &one),
      cajeta_xpu_device_identity(d, nullptr, &one),
      cajeta_xpu_stream_current(nullptr),
      cajeta_xpu_stream_default(d, nullptr),
      cajeta_xpu_stream_create(d, 0, 0, nullptr),
      cajeta_xpu_stream_from_native(d, 1, nullptr),
      cajeta_xpu_stream_device(s, nullptr),
      cajeta_xpu_stream_native(s, nullptr),
      cajeta_xpu_stream_is_default(s, nullptr),
      cajeta_xpu_stream_properties(s, nullptr, &one),
      cajeta_xpu_stream_query_idle(s, nullptr),
      cajeta_xpu_stream_is_deferred(s, nullptr),
      cajeta_xpu_stream_pending_launches(s, nullptr),
      cajeta_xpu_defer_stat(0, nullptr),
      cajeta_xpu_stream_defer_stat(s, 0, nullptr),
      cajeta_xpu_event_create(d, 0, nullptr),
      cajeta_xpu_buffer_create(d, 8, nullptr),
      cajeta_xpu_module_load(d, "", nullptr),
      cajeta_xpu_module_kernel(machine.module.handle(), nullptr, nullptr),
      cajeta_xpu_launch(s, machine.module.kernel("affine").handle(), nullptr, nullptr, 0),
      cajeta_xpu_max_active_blocks(machine.module.kernel("affine").handle(), 1, 0, nullptr),
  };
  for (std::size_t i = 0; i < std::size(results); ++i) {
    INFO("call " << i);
    CHECK(results[i] == CAJETA_XPU_ERROR_INVALID_VALUE);
  }
  std::uint64_t value = 0;
  for (const int which : {-1, 7}) {
    CHECK(cajeta_xpu_defer_stat(which, &value) == CAJETA_XPU_ERROR_INVALID_VALUE);
    CHECK(cajeta_xpu_stream_defer_stat(s, which, &value) == CAJETA_XPU_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("threads may end the same object at once, and use it meanwhile") {
  const Machine machine(GENERATE(values<const char*>({"cuda", "cpu"})));
  for (int round = 0; round < 10; ++round) {
    cajeta_xpu_stream stream = nullptr;
    cajeta_xpu_event event = nullptr;
    REQUIRE(cajeta_xpu_stream_create(machine.device.handle(), 0, 0, &stream) == 0);
    REQUIRE(cajeta_xpu_event_create(machine.device.handle(), 0, &event) == 0);
    std::atomic<int> unexpected{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        unexpected += cajeta_xpu_stream_destroy(stream) != 0;
        unexpected += cajeta_xpu_event_destroy(event) != 0;
        unexpected += cajeta_xpu_stream_flush(stream) != CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE;
        unexpected += cajeta_xpu_event_query(event) != CAJETA_XPU_ERROR_INVALID_RESOURCE_HANDLE;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(unexpected == 0);
  }
}
