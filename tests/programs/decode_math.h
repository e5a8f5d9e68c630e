// SPDX-License-Identifier: Apache-2.0
// The decoder's shape, and the few functions that kernels and CPU reference must compute with the
// same float operations: only +, -, *, / and comparisons in a fixed order, so both sides give the
// same bits. No state.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define DECODE_BOTH __host__ __device__
#else
#define DECODE_BOTH
#endif

namespace decode {

inline constexpr int kLayers = 32;
inline constexpr int kDim = 32;
inline constexpr int kHeads = 4;
inline constexpr int kKeyHeads = 2;  // grouped queries: two query heads share one key head
inline constexpr int kHeadDim = kDim / kHeads;
inline constexpr int kKeyDim = kKeyHeads * kHeadDim;
inline constexpr int kQkvDim = kDim + 2 * kKeyDim;
inline constexpr int kHidden = 64;
inline constexpr int kVocabulary = 128;
inline constexpr int kMaxPositions = 256;
inline constexpr int kKernelsPerLayer = 11;
inline constexpr int kLaunchesPerToken = kLayers * kKernelsPerLayer + 4;
inline constexpr float kEpsilon = 1e-5F;

DECODE_BOTH inline float float_from_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

DECODE_BOTH inline int nearest(float value) {
  return static_cast<int>(value < 0 ? value - 0.5F : value + 0.5F);
}

// e^x for x in [-87, 87]; softmax and sigmoid clamp before they ask.
DECODE_BOTH inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : (x > 87.0F ? 87.0F : x);
  const int power = nearest(x * 1.44269504F);
  const float r =
      x - static_cast<float>(power) * 0.693145752F - static_cast<float>(power) * 1.42860677e-6F;
  float sum = 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  return sum * float_from_bits(static_cast<std::uint32_t>(power + 127) << 23);
}

DECODE_BOTH inline float sine(float x) {
  const int half_turns = nearest(x * 0.318309886F);
  const float r = x - static_cast<float>(half_turns) * 3.14159274F;
  const float square = r * r;
  float sum = -1.0F / 39916800;
  sum = sum * square + 1.0F / 362880;
  sum = sum * square - 1.0F / 5040;
  sum = sum * square + 1.0F / 120;
  sum = sum * square - 1.0F / 6;
  const float value = r + r * square * sum;
  return (half_turns & 1) != 0 ? -value : value;
}

DECODE_BOTH inline float cosine(float x) {
  return sine(x + 1.57079637F);
}

DECODE_BOTH inline float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}

}  // namespace decode
