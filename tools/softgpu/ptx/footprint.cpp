// SPDX-License-Identifier: Apache-2.0
// One bit per granule while an operation runs, ranges when it is written down.
#include "tools/softgpu/ptx/footprint.h"

#include <algorithm>

#include "tools/softgpu/trace_format.h"

namespace softgpu::ptx {

namespace {

constexpr std::uint64_t kWordBits = 64;

bool is_set(const std::vector<std::uint64_t>& bits, std::uint64_t at) {
  return (bits[at / kWordBits] >> (at % kWordBits) & 1) != 0;
}

void append_ranges(const std::vector<std::uint64_t>& bits, std::string* text) {
  const std::uint64_t end = bits.size() * kWordBits;
  const char* separator = "";
  for (std::uint64_t first = 0; first < end;) {
    if (bits[first / kWordBits] == 0) {
      first = (first / kWordBits + 1) * kWordBits;
      continue;
    }
    if (!is_set(bits, first)) {
      ++first;
      continue;
    }
    std::uint64_t next = first + 1;
    while (next < end && is_set(bits, next)) ++next;
    *text += separator + std::to_string(first);
    if (next - 1 > first) *text += '-' + std::to_string(next - 1);
    separator = ",";
    first = next;
  }
}

}  // namespace

void Footprint::add(AccessKind kind, std::uint64_t allocation, std::uint64_t offset,
                    std::uint64_t bytes) {
  if (last_ == nullptr || allocation != last_allocation_) {
    last_ = &touched_[allocation];
    last_allocation_ = allocation;
  }
  Bits& bits = (*last_)[static_cast<std::size_t>(kind)];
  const std::uint64_t first = offset / kTraceGranule;
  const std::uint64_t last = (offset + bytes - 1) / kTraceGranule;
  if (bits.size() <= last / kWordBits) bits.resize(last / kWordBits + 1);
  for (std::uint64_t granule = first; granule <= last; ++granule) {
    bits[granule / kWordBits] |= std::uint64_t{1} << (granule % kWordBits);
  }
}

void Footprint::add(const Footprint& other) {
  for (const auto& [allocation, touched] : other.touched_) {
    for (std::size_t kind = 0; kind < kAccessKinds; ++kind) {
      Bits& bits = touched_[allocation][kind];
      bits.resize(std::max(bits.size(), touched[kind].size()));
      for (std::size_t word = 0; word < touched[kind].size(); ++word) {
        bits[word] |= touched[kind][word];
      }
    }
  }
}

std::string Footprint::text() const {
  static constexpr char kLetters[kAccessKinds] = {'r', 'w', 'u'};
  std::string text;
  for (const auto& [allocation, touched] : touched_) {
    for (std::size_t kind = 0; kind < kAccessKinds; ++kind) {
      if (touched[kind].empty()) continue;
      if (!text.empty()) text += ';';
      text += kLetters[kind] + std::to_string(allocation) + ':';
      append_ranges(touched[kind], &text);
    }
  }
  return text.empty() ? "-" : text;
}

}  // namespace softgpu::ptx
