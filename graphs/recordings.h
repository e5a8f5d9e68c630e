// SPDX-License-Identifier: Apache-2.0
// The sequences known of one stream: found by identity, predicted by what followed what, dropped in
// order of disuse. Guarded by the lock of the stream's queue.
#pragma once

#include <cstdint>

#include "runtime/sequence.h"

namespace runtime {

struct Recordings {
  static constexpr std::size_t kChains = 256;
  Sequence* chains[kChains] = {};  // by hash of the whole sequence
  Sequence* newest = nullptr;      // use order: a doubly linked list
  Sequence* oldest = nullptr;
  Sequence* last = nullptr;  // the batch before this one
  std::uint32_t count = 0;
};

}  // namespace runtime

namespace graphs {

using runtime::Recordings;
using runtime::Sequence;

// The recording with the identity of the first `launches` of `batch`, or null.
Sequence* find(Recordings& recordings, const Sequence& batch, std::uint32_t launches) noexcept;
// The recording to expect after the last batch, if it starts with `first`; else the newest that
// does.
Sequence* predict(Recordings& recordings, runtime::LaunchKey first) noexcept;
// Adds a recording made from the batch: takes the contents of a scratch sequence that is wholly
// used, else copies the prefix. Null when out of memory.
Sequence* add(Recordings& recordings, Sequence& batch, std::uint32_t launches,
              bool is_scratch) noexcept;
// Makes it the newest.
void touch(Recordings& recordings, Sequence& sequence) noexcept;
// Unlinks it everywhere and frees it; its plan must be gone.
void remove(Recordings& recordings, Sequence& sequence) noexcept;

}  // namespace graphs
