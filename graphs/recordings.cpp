// SPDX-License-Identifier: Apache-2.0
#include "graphs/recordings.h"

#include <new>

namespace graphs {

using runtime::LaunchKey;

namespace {

// How many recordings predict() looks at when the last batch gives no hint. Heuristic: alternating
// programs have a handful of heads; more would be paid by programs that never repeat.
constexpr int kMaxCandidates = 8;

std::size_t chain_of(std::uint64_t hash) noexcept {
  return (hash >> 32) % Recordings::kChains;
}

bool starts_with(const Sequence& sequence, LaunchKey first) noexcept {
  return sequence.count != 0 && sequence.slots[0].key == first;
}

void unlink_use(Recordings& recordings, Sequence& sequence) noexcept {
  (sequence.newer != nullptr ? sequence.newer->older : recordings.newest) = sequence.older;
  (sequence.older != nullptr ? sequence.older->newer : recordings.oldest) = sequence.newer;
  sequence.newer = sequence.older = nullptr;
}

void link_newest(Recordings& recordings, Sequence& sequence) noexcept {
  sequence.older = recordings.newest;
  if (recordings.newest != nullptr) recordings.newest->newer = &sequence;
  recordings.newest = &sequence;
  if (recordings.oldest == nullptr) recordings.oldest = &sequence;
}

}  // namespace

Sequence* find(Recordings& recordings, const Sequence& batch, std::uint32_t launches) noexcept {
  std::uint64_t hash = batch.slots[launches - 1].prefix_hash;
  Sequence* sequence = recordings.chains[chain_of(hash)];
  while (sequence != nullptr && !(sequence->count == launches && sequence->hash() == hash &&
                                  sequence->same_prefix(batch, launches))) {
    sequence = sequence->chain;
  }
  return sequence;
}

Sequence* predict(Recordings& recordings, LaunchKey first) noexcept {
  if (recordings.last != nullptr && recordings.last->successor != nullptr &&
      starts_with(*recordings.last->successor, first)) {
    return recordings.last->successor;
  }
  Sequence* sequence = recordings.newest;
  for (int i = 0; i < kMaxCandidates && sequence != nullptr; ++i, sequence = sequence->older) {
    if (starts_with(*sequence, first)) return sequence;
  }
  return nullptr;
}

Sequence* add(Recordings& recordings, Sequence& batch, std::uint32_t launches,
              bool is_scratch) noexcept {
  auto* sequence = new (std::nothrow) Sequence;
  if (sequence == nullptr) return nullptr;
  if (is_scratch && batch.count == launches) {
    sequence->take(batch);
  } else if (!sequence->copy_prefix(batch, launches)) {
    delete sequence;
    return nullptr;
  }
  Sequence*& chain = recordings.chains[chain_of(sequence->hash())];
  sequence->chain = chain;
  chain = sequence;
  link_newest(recordings, *sequence);
  ++recordings.count;
  return sequence;
}

void touch(Recordings& recordings, Sequence& sequence) noexcept {
  if (recordings.newest == &sequence) return;
  unlink_use(recordings, sequence);
  link_newest(recordings, sequence);
}

void remove(Recordings& recordings, Sequence& sequence) noexcept {
  Sequence** link = &recordings.chains[chain_of(sequence.hash())];
  while (*link != &sequence) link = &(*link)->chain;
  *link = sequence.chain;
  unlink_use(recordings, sequence);
  if (recordings.last == &sequence) recordings.last = nullptr;
  for (Sequence* other = recordings.newest; other != nullptr; other = other->older) {
    if (other->successor == &sequence) other->successor = nullptr;
  }
  --recordings.count;
  delete &sequence;
}

}  // namespace graphs
