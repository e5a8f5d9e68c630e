// SPDX-License-Identifier: Apache-2.0
// Location tables by hand, broken ones included; text of every width;
// which files are wrappers'.
#include "profiler/python_code.h"

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/catch.h"

using namespace profiler;

namespace {

// The first byte of an entry of a kind for that many code units.
std::uint8_t head(unsigned kind, unsigned units) {
  return static_cast<std::uint8_t>(0x80 | kind << 3 | (units - 1));
}

int line_at(const std::vector<std::uint8_t>& table, std::size_t offset, int first = 10) {
  return line_of_instruction(table.data(), table.size(), first, offset);
}

std::string utf8(const void* characters, std::size_t count, unsigned bytes_each,
                 std::size_t capacity = 64) {
  std::vector<char> text(capacity + 1, '#');
  write_utf8(characters, count, bytes_each, text.data(), capacity);
  CHECK(text[capacity] == '#');
  return text.data();
}

}  // namespace

TEST_CASE("every kind of entry moves the line as it says") {
  const std::vector<std::uint8_t> table = {
      head(0, 2),  0x12,                 // short: the same line
      head(11, 1), 0x01, 0x02,           // one line further
      head(12, 8), 0x01, 0x02,           // two lines further
      head(13, 1), 0x07,                 // no column: 3 back
      head(14, 1), 0x40, 0x02, 0, 1, 1,  // long: 64 further, in two bytes
      head(15, 1),                       // no location
      head(10, 1), 0x01, 0x02,           // the same line as before that
  };
  CHECK(line_at(table, 0) == 10);
  CHECK(line_at(table, 3) == 10);
  CHECK(line_at(table, 4) == 11);
  CHECK(line_at(table, 6) == 13);
  CHECK(line_at(table, 21) == 13);
  CHECK(line_at(table, 22) == 10);
  CHECK(line_at(table, 24) == 74);
  CHECK(line_at(table, 26) == 0);
  CHECK(line_at(table, 28) == 74);
  CHECK(line_at(table, 30) == 0);  // behind the last
}

TEST_CASE("broken tables give no line and are not read past their end") {
  CHECK(line_at({}, 0) == 0);
  CHECK(line_at({0x01, 0x02}, 0) == 0);
  CHECK(line_at({head(13, 1)}, 0) == 10);
  CHECK(line_at({head(14, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}, 0, 10) == 0);
  CHECK(line_at({head(13, 1), 0x7f}, 0, 10) == 0);
  std::vector<std::uint8_t> table(4096);
  std::uint32_t seed = 1;
  for (int round = 0; round < 200; ++round) {
    for (std::uint8_t& byte : table)
      byte = static_cast<std::uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
    for (std::size_t offset = 0; offset < 64; offset += 2) CHECK(line_at(table, offset) >= 0);
  }
}

TEST_CASE("text of every width becomes UTF-8, cut between characters") {
  const std::uint8_t latin[] = {'n', 'a', 0xEF, 'v', 'e'};
  const std::uint16_t wide[] = {0x65E5, 'x', 0xD800};
  const std::uint32_t widest[] = {0x1F600, 0x110000, '\n'};
  CHECK(utf8(latin, 5, 1) == "na\xC3\xAFve");
  CHECK(utf8(latin, 5, 1, 4) == "na");
  CHECK(utf8(latin, 5, 1, 5) == "na\xC3\xAF");
  CHECK(utf8(wide, 3, 2) == "\xE6\x97\xA5x\xEF\xBF\xBD");
  CHECK(utf8(widest, 3, 4) == "\xF0\x9F\x98\x80\xEF\xBF\xBD ");
  CHECK(utf8(latin, 0, 1).empty());
  CHECK(utf8(latin, 5, 1, 1).empty());
}

TEST_CASE("packages that wrap CUDA are told from programs of the same name") {
  for (const char* path : {"/v/lib/python3.11/site-packages/cuda/bindings/driver.py",
                           "/usr/lib/python3/dist-packages/cupy/cuda/stream.py",
                           "/v/lib/python3.12/site-packages/numba/cuda/cudadrv/driver.py",
                           "/v/lib/python3.11/site-packages/torch/cuda/__init__.py",
                           "/usr/lib/python3.11/ctypes/__init__.py"}) {
    CAPTURE(path);
    CHECK(is_wrapper_path(path));
  }
  for (const char* path : {"", "train.py", "/home/me/torch/train.py", "/home/me/ctypes/__init__.py",
                           "/v/lib/python3.11/site-packages/torchvision/io.py",
                           "/v/lib/python3.11/site-packages/mine/cuda/run.py",
                           "/usr/lib/python3.11/threading.py", "/usr/lib/python3"}) {
    CAPTURE(path);
    CHECK_FALSE(is_wrapper_path(path));
  }
}
