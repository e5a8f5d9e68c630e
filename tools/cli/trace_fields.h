// SPDX-License-Identifier: Apache-2.0
// Fields of protobuf messages, for the readers of traces. What is broken is a BrokenMessage. The
// only user of protozero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>

namespace cli {

using BrokenMessage = protozero::exception;

// Longer names are cut: thousands of records may show the same one.
inline constexpr std::size_t kLongestName = 1024;

inline std::string cut_name(std::string_view text) {
  return std::string(text.substr(0, kLongestName));
}

// The field that a reader stands at. Each function takes it if it is the one that is named.
class Field {
 public:
  explicit Field(protozero::pbf_reader* reader)
      : reader_(*reader), tag_(reader->tag()), type_(reader->wire_type()) {}

  bool number(std::uint32_t tag, std::uint64_t* to) {
    if (!is(tag, protozero::pbf_wire_type::varint)) return false;
    *to = reader_.get_uint64();
    return true;
  }
  bool view(std::uint32_t tag, std::string_view* to) {
    if (!is(tag, protozero::pbf_wire_type::length_delimited)) return false;
    *to = reader_.get_view();
    return true;
  }
  void text(std::uint32_t tag, std::string* to) {
    if (std::string_view found; view(tag, &found)) *to = cut_name(found);
  }
  template <typename Take>
  void message(std::uint32_t tag, Take take) {
    if (std::string_view found; view(tag, &found)) take(found);
  }
  // Repeated numbers, one by one or packed.
  template <typename Take>
  void numbers(std::uint32_t tag, Take take) {
    if (std::uint64_t one = 0; number(tag, &one)) return take(one);
    if (!is(tag, protozero::pbf_wire_type::length_delimited)) return;
    for (const std::uint64_t one : reader_.get_packed_uint64()) take(one);
  }
  void skip_if_left() {
    if (!is_taken_) reader_.skip();
  }

 private:
  bool is(std::uint32_t tag, protozero::pbf_wire_type type) {
    if (is_taken_ || tag_ != tag || type_ != type) return false;
    is_taken_ = true;
    return true;
  }

  protozero::pbf_reader& reader_;
  std::uint32_t tag_;
  protozero::pbf_wire_type type_;
  bool is_taken_ = false;
};

template <typename Take>
void each_field(std::string_view message, Take take) {
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    Field field(&reader);
    take(field);
    field.skip_if_left();
  }
}

}  // namespace cli
