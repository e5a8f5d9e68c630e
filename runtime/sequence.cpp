// SPDX-License-Identifier: Apache-2.0
#include "runtime/sequence.h"

#include "runtime/mutants.h"

namespace runtime {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t token) noexcept {
  hash ^= token;
  hash *= 0xFF51AFD7ED558CCDull;
  return hash ^ (hash >> 29);
}

}  // namespace

LaunchSlot* Sequence::append(const FunctionInfo* info, const LaunchShape& shape,
                             const LaunchAttributes& attributes) noexcept {
  std::size_t offset = arguments.size();
  std::size_t bytes = (info->argument_bytes + 15u) & ~std::size_t{15};
  if (offset + bytes > UINT32_MAX || !arguments.resize(offset + bytes) ||
      !dirty.resize(count / 64 + 1) || !slots.resize(count + 2)) {
    return nullptr;
  }
  LaunchSlot& slot = slots[count];
  slot.key = launch_key(info->handle, attributes);
  slot.info = info;
  slot.attributes = attributes;
  slot.prefix_hash =
      mix(count == 0 ? 0 : slots[count - 1].prefix_hash, info->token + (slot.key >> kAddressBits));
  slot.shape = shape;
  slot.arguments = static_cast<std::uint32_t>(offset);
  if (count == 1 && is_mutant(Mutant::kIdentityMissesOne)) slot.prefix_hash = slots[0].prefix_hash;
  slots[count + 1] = LaunchSlot{};
  info->hold();
  ++count;
  return &slot;
}

void Sequence::take(Sequence& from) noexcept {
  let_go();
  slots.swap(from.slots);
  arguments.swap(from.arguments);
  dirty.swap(from.dirty);
  count = from.count;
  from.count = 0;
}

void Sequence::release() noexcept {
  let_go();
  slots.release();
  arguments.release();
  dirty.release();
}

void Sequence::let_go() noexcept {
  for (std::uint32_t i = 0; i < count; ++i) slots[i].info->let_go();
  count = 0;
}

bool Sequence::same_prefix(const Sequence& other, std::uint32_t launches) const noexcept {
  if (count < launches || other.count < launches) return false;
  for (std::uint32_t i = 0; i < launches; ++i) {
    if (i == 1 && is_mutant(Mutant::kIdentityMissesOne)) continue;
    if (slots[i].key != other.slots[i].key || slots[i].info != other.slots[i].info) return false;
  }
  // A dead handle's recordings are purged when it dies, so equal infos mean equal lives; the hash
  // covers the tokens.
  return launches == 0 || slots[launches - 1].prefix_hash == other.slots[launches - 1].prefix_hash;
}

void Sequence::take_values(const Sequence& from, std::uint32_t launches) noexcept {
  for (std::uint32_t i = 0; i < launches; ++i) {
    LaunchSlot& to = slots[i];
    const LaunchSlot& source = from.slots[i];
    std::size_t bytes = to.info->argument_bytes;
    bool changed = !(to.shape == source.shape);
    if (changed) to.shape = source.shape;
    if (std::memcmp(arguments_of(to), from.arguments_of(source), bytes) != 0) {
      std::memcpy(arguments_of(to), from.arguments_of(source), bytes);
      changed = true;
    }
    if (changed && !is_mutant(Mutant::kTakenPatchMissed)) mark_dirty(i);
  }
}

bool Sequence::copy_prefix(const Sequence& from, std::uint32_t launches) noexcept {
  if (!start()) return false;
  for (std::uint32_t i = 0; i < launches; ++i) {
    const LaunchSlot& source = from.slots[i];
    LaunchSlot* slot = append(source.info, source.shape, source.attributes);
    if (slot == nullptr) return false;
    std::memcpy(arguments_of(*slot), from.arguments_of(source), source.info->argument_bytes);
  }
  return true;
}

}  // namespace runtime
