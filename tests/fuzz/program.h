// SPDX-License-Identifier: Apache-2.0
// A random driver-API program in memory: host threads with a list of steps. The list is one valid
// order of all steps; threads run theirs on their own and meet at signal and await. Objects are
// named by slots. Plain data, no driver calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuzz {

inline constexpr int kMaxArguments = 11;
inline constexpr int kMaxThreads = 8;
inline constexpr int kContexts = 3;
inline constexpr int kStreams = 8;
inline constexpr int kEvents = 8;
inline constexpr int kBuffers = 20;
inline constexpr int kModules = 6;
inline constexpr int kGraphs = 4;
inline constexpr int kExecs = 4;
inline constexpr int kTokens = 64;
inline constexpr int kWords = 64;      // of every buffer
inline constexpr int kMaxSteps = 500;  // of one program

enum class Kind : std::uint8_t {
#define FUZZ_STEP(name, arguments) k_##name,
#include "tests/fuzz/steps.def"
#undef FUZZ_STEP
};
inline constexpr std::size_t kKinds = 0
#define FUZZ_STEP(name, arguments) +1
#include "tests/fuzz/steps.def"
#undef FUZZ_STEP
    ;

struct KindInfo {
  const char* name;
  const char* arguments;  // their names, separated by blanks
};
inline constexpr KindInfo kKindInfo[] = {
#define FUZZ_STEP(name, arguments) {#name, arguments},
#include "tests/fuzz/steps.def"
#undef FUZZ_STEP
};

struct Step {
  Kind kind{};
  int thread = 0;
  std::array<int, kMaxArguments> at{};  // in the order of kKindInfo
  int number = 0;                       // in the whole program, kept when others are left out

  int operator[](std::size_t i) const { return at[i]; }
};

struct Program {
  int threads = 1;
  bool polls_memory = false;  // the host may spin on mapped memory: needs a deadline
  bool has_faults = true;     // kernels may fault
  std::vector<Step> steps;
};

// Streams that are not slots.
inline constexpr int kNullStream = -1;       // 0 through the plain entries
inline constexpr int kLegacyStream = -2;     // CU_STREAM_LEGACY
inline constexpr int kPerThreadStream = -3;  // CU_STREAM_PER_THREAD
inline constexpr int kPtszStream = -4;       // 0 through the _ptsz entries
inline constexpr bool is_legacy(int stream) {
  return stream == kNullStream || stream == kLegacyStream;
}

enum MemoryKind : int {
  kDeviceMemory,
  kPinnedMemory,
  kManagedMemory,
  kPageableMemory,
  kRegisteredMemory,
  kGridMemory,  // a 2D array of 4 words a row: copies with rows only
  kLineMemory   // a 1D array: 1D copies only
};
inline constexpr bool is_array(int memory) {
  return memory == kGridMemory || memory == kLineMemory;
}
enum KernelId : int {
  kAffine,
  kMix,
  kWide,
  kNarrow,
  kByValue,
  kShape,
  kCountUp,
  kPublish,
  kEmpty,
  kRelay,  // says whether it was launched cooperatively
  kWhere,  // says which cluster it was launched in
  kKernelCount
};
enum LaunchHow : int {
  kParams,
  kExtra,
  kEx,
  kExAttributes,
  kCooperative,
  kClusters,             // of kClusterWidth blocks
  kClustersCooperative,  // both
  kGrid,  // by the entries of CUDA 3: block, sizes and arguments are set on the function
};
inline constexpr int kClusterWidth = 2;
inline constexpr int kSharedLimit = 48 * 1024;  // bytes a launch may ask for, unless a function
                                                // says otherwise
enum CopyHow : int {
  kHtoD,
  kHtoDAsync,
  kDtoH,
  kDtoHAsync,
  kDtoD,
  kDtoDAsync,
  kGeneric,
  kGenericAsync,
  kPeer,
  kPeerAsync,
  k2D,
  k2DAsync,
  k3D,
  k3DAsync,
  k3DPeer,
  k3DPeerAsync,
  kCopyHowCount
};
inline constexpr bool is_async(int how) {
  return how % 2 == 1;
}
// Of copy_batch: when sources are read. As CUDA numbers them.
enum BatchOrder : int { kInStream = 1, kDuringCall, kAnyTime };
enum MemsetHow : int { kD8, kD16, kD32, k2DD8, k2DD16, k2DD32, kMemsetHowCount };

// Of capture_end: the graph is destroyed at once.
inline constexpr int kNoGraph = -1;

// What a module slot holds. The last has kWhere alone, the others all but that.
enum ImageId : int { kBaseImage, kVariantImage, kClusterImage };
inline constexpr bool has_kernel(int image, int kernel) {
  return (image == kClusterImage) == (kernel == kWhere);
}

}  // namespace fuzz
