// SPDX-License-Identifier: Apache-2.0
// Scenarios about what repeats: sequences that alternate, part in the middle, shrink and grow,
// shapes that change at constant functions, and a long random walk over all of that.
#include "tests/programs/scenario.h"

namespace scenario {
namespace {

struct Kernels {
  explicit Kernels(const Device& device)
      : affine(device.function("affine")),
        mix(device.function("mix")),
        shape(device.function("shape")) {}
  CUfunction affine, mix, shape;
};

// One of three sequences of launches on x and y.
void sequence(const Kernels& kernels, CUstream stream, char which, const Buffer& x, const Buffer& y,
              unsigned key) {
  if (which == 'A') {
    for (unsigned i = 0; i < 6; ++i)
      CHECK(launch(kernels.affine, {}, stream, x.at(), 3U, key + i, 64));
  } else if (which == 'B') {
    for (unsigned i = 0; i < 4; ++i) {
      CHECK(launch(kernels.affine, {}, stream, y.at(), 5U, i, 64));
      CHECK(launch(kernels.mix, {}, stream, x.at(), y.at(), key, 64));
    }
  } else {
    for (unsigned i = 0; i < 5; ++i)
      CHECK(launch(kernels.mix, {}, stream, y.at(), x.at(), key * i, 64));
  }
}

void repeated() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x, y;
  for (unsigned round = 0; round < 20; ++round) {
    sequence(kernels, stream, 'B', x, y, round / 4);
    print("x", x);
  }
}

void alternating() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x, y;
  unsigned key = 0;
  for (const char which : "ABACABACABACAABBCCABCABCABC") {
    if (which == '\0') break;
    sequence(kernels, stream, which, x, y, key++ / 5);
    stream.wait();
    print("x", x);
  }
}

// Equal up to a point that moves, then different.
void parting_in_the_middle() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x, y;
  for (unsigned round = 0; round < 24; ++round) {
    const unsigned parting = round % 3 == 2 ? round % 8 : 8;
    for (unsigned i = 0; i < 8; ++i) {
      if (i == parting) {
        CHECK(launch(kernels.mix, {}, stream, x.at(), y.at(), i, 64));
      } else {
        CHECK(launch(kernels.affine, {}, stream, x.at(), 3U, i + round % 2, 64));
      }
    }
    print("x", x);
  }
}

void shrinking_and_growing() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x;
  unsigned round = 0;
  for (const unsigned length :
       {8U, 8U, 8U, 5U, 8U, 5U, 3U, 5U, 8U, 12U, 12U, 8U, 12U, 1U, 1U, 1U, 2U, 2U, 2U, 12U}) {
    for (unsigned i = 0; i < length; ++i)
      CHECK(launch(kernels.affine, {}, stream, x.at(), 3U, i + round, 64));
    ++round;
    print("x", x);
  }
}

// The functions stay, everything else about the launches changes.
void changing_shapes() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 16; ++round) {
    const unsigned step = round / 2;  // every other round nothing changes
    CHECK(launch(kernels.shape, {1 + step % 3, 32, 512}, stream, x.at()));
    CHECK(launch(kernels.shape, {2, 32 + 32 * (step % 4), 1024}, stream, x.at()));
    CHECK(launch(kernels.shape, {2, 64, 512 + 256 * (step % 5)}, stream, x.at()));
    CUdeviceptr data = x.at();
    void* parameters[] = {&data};
    CHECK(cuLaunchKernel(kernels.shape, 1 + step % 2, 1 + step % 3, 1 + step % 2, 16, 1 + step % 2,
                         1, 1024, stream, parameters, nullptr));
    print("x", x);
  }
}

// Longer than any sensible queue, without a wait.
void long_sequence() {
  Device device;
  const Kernels kernels(device);
  Stream stream;
  Buffer x;
  for (unsigned round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < 10000; ++i)
      CHECK(launch(kernels.affine, {1, 32, 0}, stream, x.at(), 3U, i, 8));
    print("x", x);
  }
}

// A fixed pseudo-random program: sequences, repeats, streams and waits in any mixture.
void random_walk() {
  Device device;
  const Kernels kernels(device);
  Stream a, b;
  const CUstream streams[] = {a, b, nullptr};
  Buffer x, y;
  unsigned state = 12345;
  const auto next = [&state](unsigned bound) {
    state = state * 1664525U + 1013904223U;
    return (state >> 16) % bound;
  };
  for (unsigned step = 0; step < 300; ++step) {
    const CUstream stream = streams[next(3)];
    const unsigned repeats = 1 + next(4), key = next(3);
    const char which = static_cast<char>('A' + next(3));
    for (unsigned i = 0; i < repeats; ++i) {
      sequence(kernels, stream, which, x, y, key + i);
      if (next(2) == 0) CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuStreamSynchronize(stream));  // the streams share x and y
    if (step % 25 == 24) print("x", x);
  }
  print("y", y);
}

}  // namespace

const std::vector<Scenario> kSequenceScenarios = {
    {"repeated", repeated},
    {"alternating", alternating},
    {"parting_in_the_middle", parting_in_the_middle},
    {"shrinking_and_growing", shrinking_and_growing},
    {"changing_shapes", changing_shapes},
    {"long_sequence", long_sequence},
    {"random_walk", random_walk},
};

}  // namespace scenario
