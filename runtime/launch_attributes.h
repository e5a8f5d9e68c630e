// SPDX-License-Identifier: Apache-2.0
// The launch attributes that a graph node carries exactly: cooperative, and the size of a cluster.
// An executable graph keeps them for ever (cuda.h, cuGraphKernelNodeSetAttribute: on the node,
// before instantiation), so they belong to a launch's identity. Any thread; calls the driver only
// where it says so.
#pragma once

#include <cstdint>

#include "runtime/counters.h"
#include "runtime/driver.h"
#include "runtime/mutants.h"

namespace runtime {

struct ContextState;
struct FunctionInfo;
struct LaunchShape;

struct LaunchAttributes {
  bool is_cooperative = false;
  std::uint8_t cluster[3] = {};  // blocks a cluster; zeroes: none asked for

  bool has_cluster() const noexcept { return cluster[0] != 0; }
  bool is_plain() const noexcept { return !is_cooperative && !has_cluster(); }
};

// Function and attributes in one word, so that the launch path compares once: a plain launch's key
// is its function, attributes stand above the bits of an address.
using LaunchKey = std::uint64_t;

constexpr int kAddressBits = 48;          // of user space on x86-64 and AArch64 Linux
constexpr std::uint8_t kMaxCluster = 31;  // an axis, five bits of the key; devices allow 16 blocks

// Matches no launch: neither an address nor an address below attributes.
constexpr LaunchKey kNoLaunch = 0x9E37'79B9'7F4A'7C15;

inline LaunchKey launch_key(CUfunction function) noexcept {
  return reinterpret_cast<std::uintptr_t>(function);
}
inline LaunchKey launch_key(CUfunction function, const LaunchAttributes& attributes) noexcept {
  if (is_mutant(Mutant::kAttributesNotCompared)) return launch_key(function);
  std::uint64_t bits = std::uint64_t{attributes.is_cooperative} | attributes.cluster[0] << 1 |
                       attributes.cluster[1] << 6 | attributes.cluster[2] << 11;
  return launch_key(function) | bits << kAddressBits;
}

// Reads the attributes of a launch. kCount: `attributes` holds all that they say. Else why the
// launch is not queued.
DirectReason read_attributes(const CUlaunchConfig& config, LaunchAttributes* attributes) noexcept;

// Would the driver accept a launch with these attributes, its shape being within the limits? Asks
// the driver what fits on the device, once a shape. The context must be current.
bool may_launch(const FunctionInfo& info, const LaunchShape& shape,
                const LaunchAttributes& attributes, const ContextState& context) noexcept;

// The driver's launch call, in the form that says the same. Calls the driver.
CUresult launch_now(CUfunction function, const LaunchShape& shape,
                    const LaunchAttributes& attributes, CUstream stream, void** kernel_params,
                    void** extra) noexcept;

// Gives a node of a graph that is not instantiated the attributes. Calls the driver.
CUresult set_node_attributes(CUgraphNode node, const LaunchAttributes& attributes) noexcept;

}  // namespace runtime
