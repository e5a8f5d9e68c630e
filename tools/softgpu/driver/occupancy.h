// SPDX-License-Identifier: Apache-2.0
// What one multiprocessor holds, and how many blocks of a kernel fit. Any thread; no state.
#pragma once

#include <cstddef>

#include "tools/softgpu/ptx/module.h"

namespace softgpu {

// Of one multiprocessor (sm) and of one block; bytes.
struct SmLimits {
  unsigned threads_per_block = 0;
  unsigned threads_per_sm = 0;
  unsigned blocks_per_sm = 0;
  unsigned registers_per_sm = 0;
  std::size_t shared_per_block = 0;  // without opting in
  std::size_t shared_per_block_optin = 0;
  std::size_t shared_per_sm = 0;
  std::size_t shared_reserved = 0;  // taken by the system from each block's share
  unsigned multiprocessors = 0;
};

// As the device attributes say.
const SmLimits& sm_limits();

// .maxntid, .reqntid and the register file allow a block no more threads than this.
unsigned max_threads_per_block(const ptx::Kernel& kernel);

// Blocks of `threads` threads and `dynamic_shared_bytes` that one multiprocessor holds at a time;
// 0: not even one.
unsigned active_blocks(const ptx::Kernel& kernel, unsigned threads,
                       std::size_t dynamic_shared_bytes);

}  // namespace softgpu
