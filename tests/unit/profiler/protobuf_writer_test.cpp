// SPDX-License-Identifier: Apache-2.0
// The wire format: numbers and lengths of every size, and what does not fit is never written.
#include "profiler/trace/protobuf_writer.h"

#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/profiler/trace_reader.h"

using namespace profiler;

namespace {

std::string_view written(const ProtobufWriter& out) {
  return {out.data(), out.size()};
}

}  // namespace

TEST_CASE("numbers come back, whatever their size") {
  char memory[64];
  for (int bits = 0; bits <= 64; ++bits) {
    const std::uint64_t value = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
    ProtobufWriter out(memory, sizeof memory);
    out.add(1, value);
    out.add_wide(20, value);
    out.add_fixed64(3, value);
    CHECK_FALSE(out.is_cut());
    const Fields fields(written(out));
    CHECK(fields.number(1) == value);
    CHECK(fields.number(20) == value);
    CHECK(fields.number(3) == value);
    CHECK(out.size() == 1 + static_cast<std::size_t>(bits < 7 ? 1 : (bits + 6) / 7) + 12 + 9);
  }
}

TEST_CASE("a message may have any length, and lie in others") {
  std::vector<char> memory(70'000);
  for (const std::size_t size :
       {0, 1, 123, 124, 125, 126, 127, 128, 16'381, 16'383, 16'384, 65'000}) {
    ProtobufWriter out(memory.data(), memory.size());
    const std::string text(size, 'x');
    {
      const ProtobufMessage outer(&out, 1);
      {
        const ProtobufMessage inner(&out, 2);
        out.add_text(3, text);
      }
      out.add(4, 7);
    }
    CHECK_FALSE(out.is_cut());
    const Fields outer = Fields(written(out)).message(1);
    CHECK(outer.number(4) == 7);
    CHECK(outer.message(2).text(3) == text);
  }
}

TEST_CASE("what is not UTF-8 becomes question marks") {
  char memory[64];
  ProtobufWriter out(memory, sizeof memory);
  out.add_text(1, "na\xc3\xafve \xff\xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 \xc3");
  CHECK(Fields(written(out)).text(1) == "na\xc3\xafve ??? ??? \xf0\x9f\x98\x80 ?");
}

TEST_CASE("nothing is written past the end, and it is told") {
  const auto write = [](ProtobufWriter* out) {
    const ProtobufMessage outer(out, 1);
    out->add(2, 300);
    out->add_fixed64(3, 4);
    out->add_bytes(4, "bytes", 5);
    const ProtobufMessage inner(out, 5);
    out->add_text(6, std::string(200, 'y'));
  };
  std::vector<char> memory(512);
  ProtobufWriter whole(memory.data(), memory.size());
  write(&whole);
  REQUIRE_FALSE(whole.is_cut());
  for (std::size_t capacity = 0; capacity <= whole.size(); ++capacity) {
    std::vector<char> small(capacity);  // the sanitizer sees a byte too many
    ProtobufWriter out(small.data(), capacity);
    write(&out);
    CHECK(out.is_cut() == (capacity < whole.size()));
    CHECK(out.size() <= capacity);
    out.clear();
    CHECK_FALSE(out.is_cut());
  }
}
