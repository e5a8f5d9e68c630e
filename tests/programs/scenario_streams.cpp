// SPDX-License-Identifier: Apache-2.0
// Scenarios about order between streams: legacy, blocking and non-blocking streams with dependent
// data, threads, events and copies.
#include <thread>

#include "tests/programs/scenario.h"

namespace scenario {
namespace {

// Blocking streams and stream 0 keep the order of the calls; the non-blocking one is ordered by
// events alone.
void interleaved_streams() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream a, b, free_stream(CU_STREAM_NON_BLOCKING);
  Event to_free, from_free;
  Buffer x, y, z;
  for (unsigned round = 0; round < 24; ++round) {
    CHECK(launch(affine, {}, a, x.at(), 3U, round, 64));
    CHECK(launch(affine, {}, b, y.at(), 5U, round, 64));
    CHECK(launch(mix, {}, nullptr, x.at(), y.at(), round, 64));  // joins a and b
    CHECK(launch(mix, {}, b, y.at(), x.at(), round, 64));        // after stream 0
    CHECK(launch(mix, {}, CU_STREAM_LEGACY, x.at(), y.at(), round, 64));
    CHECK(launch(affine, {}, a, x.at(), 7U, 1U, 64));
    CHECK(launch(mix, {}, nullptr, y.at(), x.at(), round, 64));
    CHECK(cuEventRecord(to_free, nullptr));
    CHECK(cuStreamWaitEvent(free_stream, to_free, 0));
    CHECK(launch(mix, {}, free_stream, z.at(), y.at(), round, 64));
    CHECK(launch(affine, {}, free_stream, z.at(), 9U, round, 64));
    CHECK(cuEventRecord(from_free, free_stream));
    CHECK(cuStreamWaitEvent(a, from_free, 0));
    CHECK(cuStreamWaitEvent(b, from_free, 0));
    CHECK(launch(mix, {}, a, x.at(), z.at(), round, 64));
    if (round % 8 == 7) print("x", x);
  }
  free_stream.wait();
  print("y", y);
  print("z", z);
}

// No event, no copy: nothing but the rules of stream 0 keeps these apart.
void legacy_joins() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream a, b;
  Buffer x, y;
  for (unsigned round = 0; round < 40; ++round) {
    CHECK(launch(affine, {}, a, x.at(), 3U, round, 64));
    CHECK(launch(mix, {}, nullptr, y.at(), x.at(), round, 64));
    CHECK(launch(affine, {}, b, y.at(), 5U, round, 64));
    CHECK(launch(mix, {}, nullptr, x.at(), y.at(), round, 64));
  }
  print("x", x);
  print("y", y);
}

void legacy_only() {
  Device device;
  const CUfunction affine = device.function("affine"), wide = device.function("wide");
  Buffer x, y, z;
  for (unsigned round = 0; round < 12; ++round) {
    for (unsigned i = 0; i < 10; ++i) {
      CHECK(launch(affine, {}, i % 2 == 0 ? nullptr : CU_STREAM_LEGACY, x.at(), 3U, i + round, 64));
      CHECK(
          launch(wide, {}, nullptr, y.at(), x.at(), z.at(), 1ULL << 40, -5LL, 2.5 * round, i, 64));
    }
    print("y", y);
  }
}

void per_thread_stream() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Buffer x, y;
  for (unsigned round = 0; round < 12; ++round) {
    CHECK(launch(affine, {}, CU_STREAM_PER_THREAD, x.at(), 3U, round, 64));
    CHECK(launch(mix, {}, nullptr, y.at(), x.at(), round, 64));
    CHECK(launch(mix, {}, CU_STREAM_PER_THREAD, x.at(), y.at(), round, 64));
  }
  print("x", x);
}

void launch_many(CUcontext context, CUstream stream, CUfunction affine, CUfunction count_up,
                 CUdeviceptr own, CUdeviceptr shared, bool waits) {
  CHECK(cuCtxSetCurrent(context));
  for (unsigned i = 0; i < 200; ++i) {
    CHECK(launch(affine, {}, stream, own, 3U, i, 64));
    CHECK(launch(count_up, {1, 1, 0}, stream, shared, i));
    if (waits && i % 20 == 19) CHECK(cuStreamSynchronize(stream));
  }
}

// Each thread's chain must stay in its order whatever the interleaving; the shared counter must
// lose nothing.
void two_threads_one_stream() {
  Device device;
  const CUfunction affine = device.function("affine"), count_up = device.function("count_up");
  Stream stream;
  Buffer x, y, shared;
  std::thread other(
      [&] { launch_many(device.context(), stream, affine, count_up, x.at(), shared.at(), false); });
  launch_many(device.context(), stream, affine, count_up, y.at(), shared.at(), false);
  other.join();
  stream.wait();
  print("x", x);
  print("y", y);
  print("shared", shared);
}

void two_threads_two_streams() {
  Device device;
  const CUfunction affine = device.function("affine"), count_up = device.function("count_up");
  Stream a(CU_STREAM_NON_BLOCKING), b(CU_STREAM_NON_BLOCKING);
  Buffer x, y, shared;
  std::thread other(
      [&] { launch_many(device.context(), a, affine, count_up, x.at(), shared.at(), true); });
  launch_many(device.context(), b, affine, count_up, y.at(), shared.at(), true);
  other.join();
  print("x", x);
  print("y", y);
  print("shared", shared);
}

// One thread launches, another one waits for the context: its wait must cover what the first one
// queued.
void wait_in_another_thread() {
  Device device;
  const CUfunction affine = device.function("affine");
  Stream stream(CU_STREAM_NON_BLOCKING);
  Buffer x;
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned i = 0; i < 6; ++i) CHECK(launch(affine, {}, stream, x.at(), 3U, round * i, 64));
    std::thread waiter([&] {
      CHECK(cuCtxSetCurrent(device.context()));
      if (round % 2 == 0) {
        CHECK(cuCtxSynchronize());
      } else {
        CHECK(cuStreamSynchronize(stream));
      }
      print("x", x);
    });
    waiter.join();
  }
}

void events_across_streams() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream a(CU_STREAM_NON_BLOCKING), b(CU_STREAM_NON_BLOCKING);
  Event start, middle, end;
  Buffer x, y;
  for (unsigned round = 0; round < 10; ++round) {
    CHECK(cuEventRecord(start, a));
    for (unsigned i = 0; i < 5; ++i) CHECK(launch(affine, {}, a, x.at(), 3U, round + i, 64));
    CHECK(cuEventRecord(middle, a));
    CHECK(cuStreamWaitEvent(b, middle, 0));
    for (unsigned i = 0; i < 5; ++i) CHECK(launch(mix, {}, b, y.at(), x.at(), round + i, 64));
    CHECK(cuEventRecord(end, b));
    CHECK(cuStreamWaitEvent(a, end, 0));
    if (round % 3 == 0) {
      CHECK(cuEventSynchronize(end));
    } else if (round % 3 == 1) {
      CUresult state;
      while ((state = cuEventQuery(end)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
      CHECK(state);
    } else {
      CUresult state;
      while ((state = cuStreamQuery(b)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
      CHECK(state);
    }
    float milliseconds = -1;
    CHECK(cuEventElapsedTime(&milliseconds, start, end));
    REQUIRE(milliseconds >= 0);
    print("y", y);
  }
}

void host_functions() {
  Device device;
  const CUfunction publish = device.function("publish");
  Stream stream(CU_STREAM_NON_BLOCKING);
  unsigned* word = nullptr;
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&word), sizeof *word, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr mapped = 0;
  CHECK(cuMemHostGetDevicePointer(&mapped, word, 0));
  struct Seen {
    volatile unsigned* word;
    std::vector<unsigned> values;
  } seen{word, {}};
  seen.values.reserve(64);
  const CUhostFn note = [](void* data) {
    auto* target = static_cast<Seen*>(data);
    target->values.push_back(unsigned{*target->word});
  };
  for (unsigned round = 0; round < 16; ++round) {
    CHECK(launch(publish, {1, 1, 0}, stream, mapped, round * 10));
    CHECK(launch(publish, {1, 1, 0}, stream, mapped, round * 10 + 1));
    CHECK(cuLaunchHostFunc(stream, note, &seen));
    CHECK(launch(publish, {1, 1, 0}, stream, mapped, round * 10 + 2));
    CHECK(cuLaunchHostFunc(stream, note, &seen));
  }
  stream.wait();
  for (const unsigned value : seen.values) std::printf("%u ", value);
  std::printf("\n");
  CHECK(cuMemFreeHost(word));
}

void copies_between() {
  Device device;
  const CUfunction affine = device.function("affine"), mix = device.function("mix");
  Stream stream;
  Buffer x, y, z;
  unsigned* host = nullptr;
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&host), x.bytes()));
  for (unsigned round = 0; round < 12; ++round) {
    CHECK(launch(affine, {}, stream, x.at(), 3U, round, 64));
    CHECK(cuMemcpyDtoDAsync(y.at(), x.at(), x.bytes(), stream));
    CHECK(launch(affine, {}, stream, x.at(), 5U, round, 64));
    CHECK(cuMemsetD32Async(z.at(), round, 32, stream));
    CHECK(launch(mix, {}, stream, z.at(), y.at(), round, 64));
    CHECK(cuMemcpyDtoHAsync(host, z.at(), z.bytes(), stream));
    CHECK(launch(mix, {}, stream, z.at(), x.at(), round, 64));
    stream.wait();
    std::printf("host %016llx\n", static_cast<unsigned long long>(hash(host, x.bytes())));
    for (int i = 0; i < 64; ++i) host[i] += round;
    CHECK(cuMemcpyHtoDAsync(y.at(), host, y.bytes(), stream));
    CHECK(launch(mix, {}, stream, x.at(), y.at(), round, 64));
    CHECK(cuMemcpyDtoD(y.at(), x.at(), x.bytes()));
    CHECK(launch(affine, {}, stream, x.at(), 3U, round, 64));
    CHECK(cuMemsetD32(x.at(), round, 8));
    print("x", x);
    print("y", y);
  }
  CHECK(cuMemFreeHost(host));
}

void destroyed_stream() {
  Device device;
  const CUfunction affine = device.function("affine");
  Buffer x;
  for (unsigned round = 0; round < 12; ++round) {
    // The driver may hand out the same handle again; the next stream must not inherit anything.
    Stream stream(round % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < 4 + round % 3; ++i)
      CHECK(launch(affine, {}, stream, x.at(), 3U, round + i, 64));
    // The destroyed stream's work still completes: the next round must come after it.
    if (round % 2 == 1) stream.wait();
    if (round % 2 == 0) CHECK(cuCtxSynchronize());
  }
  for (unsigned round = 0; round < 6; ++round) {
    {
      Stream stream;
      for (unsigned i = 0; i < 5; ++i) CHECK(launch(affine, {}, stream, x.at(), 5U, round + i, 64));
    }
    CHECK(cuCtxSynchronize());
    print("x", x);
  }
}

}  // namespace

const std::vector<Scenario> kStreamScenarios = {
    {"interleaved_streams", interleaved_streams},
    {"legacy_joins", legacy_joins},
    {"legacy_only", legacy_only},
    {"per_thread_stream", per_thread_stream},
    {"two_threads_one_stream", two_threads_one_stream},
    {"two_threads_two_streams", two_threads_two_streams},
    {"wait_in_another_thread", wait_in_another_thread},
    {"events_across_streams", events_across_streams},
    {"host_functions", host_functions},
    {"copies_between", copies_between},
    {"destroyed_stream", destroyed_stream},
};

}  // namespace scenario
