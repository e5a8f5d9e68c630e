// SPDX-License-Identifier: Apache-2.0
// Messages of Perfetto as trees of fields, for tests of what is written.
#pragma once

#include <cstdint>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// One message; which of its bytes are messages themselves the caller knows.
class Fields {
 public:
  explicit Fields(std::string_view bytes) {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      const std::uint32_t field = reader.tag();
      switch (reader.wire_type()) {
        case protozero::pbf_wire_type::varint:
          numbers_.emplace(field, reader.get_uint64());
          break;
        case protozero::pbf_wire_type::fixed64:
          numbers_.emplace(field, reader.get_fixed64());
          break;
        case protozero::pbf_wire_type::length_delimited:
          texts_.emplace(field, reader.get_string());
          break;
        default:
          throw std::runtime_error("a type that the trace does not use");
      }
    }
  }

  bool has(std::uint32_t field) const { return numbers_.count(field) + texts_.count(field) > 0; }
  std::uint64_t number(std::uint32_t field) const {
    const auto found = numbers_.find(field);
    return found != numbers_.end() ? found->second : 0;
  }
  std::vector<std::uint64_t> numbers(std::uint32_t field) const {
    std::vector<std::uint64_t> all;
    const auto [first, end] = numbers_.equal_range(field);
    for (auto at = first; at != end; ++at) all.push_back(at->second);
    return all;
  }
  std::string text(std::uint32_t field) const {
    const auto found = texts_.find(field);
    return found != texts_.end() ? found->second : std::string();
  }
  Fields message(std::uint32_t field) const { return Fields(text(field)); }
  std::vector<Fields> messages(std::uint32_t field) const {
    std::vector<Fields> all;
    const auto [first, end] = texts_.equal_range(field);
    for (auto at = first; at != end; ++at) all.emplace_back(at->second);
    return all;
  }

 private:
  std::multimap<std::uint32_t, std::uint64_t> numbers_;
  std::multimap<std::uint32_t, std::string> texts_;
};

// The whole packets at the beginning of `bytes`, as views into it.
inline std::vector<std::string_view> split_packets(std::string_view bytes) {
  std::vector<std::string_view> packets;
  while (!bytes.empty()) {
    if (bytes[0] != '\x0a') throw std::runtime_error("no packet");
    std::size_t size = 0, at = 1;
    bool is_whole = false;
    for (int shift = 0; at < bytes.size() && !is_whole; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      size |= static_cast<std::size_t>(byte & 0x7f) << shift;
      is_whole = byte < 0x80;
    }
    if (!is_whole || size > bytes.size() - at) break;
    packets.push_back(bytes.substr(at, size));
    bytes.remove_prefix(at + size);
  }
  return packets;
}
