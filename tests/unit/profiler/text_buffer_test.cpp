// SPDX-License-Identifier: Apache-2.0
// Number formats, and text that is cut instead of written past its end.
#include "profiler/text_buffer.h"

#include <cstring>
#include <string>

#include "tests/unit/catch.h"

using namespace profiler;

TEST_CASE("numbers are grouped by thousands") {
  CHECK(std::string(Grouped(0).text) == "0");
  CHECK(std::string(Grouped(999).text) == "999");
  CHECK(std::string(Grouped(1000).text) == "1,000");
  CHECK(std::string(Grouped(2036380).text) == "2,036,380");
  CHECK(std::string(Grouped(18446744073709551615ull).text) == "18,446,744,073,709,551,615");
}

TEST_CASE("times of one call keep three digits, totals three decimals") {
  CHECK(std::string(CallTime(450).text) == "0.45 us");
  CHECK(std::string(CallTime(9'994).text) == "9.99 us");
  CHECK(std::string(CallTime(9'996).text) == "10.0 us");
  CHECK(std::string(CallTime(298'000).text) == "298 us");
  CHECK(std::string(CallTime(999'600).text) == "1.00 ms");
  CHECK(std::string(CallTime(1'180'000).text) == "1.18 ms");
  CHECK(std::string(CallTime(62.4e9).text) == "62.4 s");
  CHECK(std::string(TotalTime(7.42e9).text) == "7.420 s");
  CHECK(std::string(TotalTime(520e6).text) == "520.000 ms");
}

TEST_CASE("what does not fit is cut and reported") {
  char memory[16];
  std::memset(memory, '#', sizeof memory);
  TextBuffer out(memory, 8);
  out.append("%s", "12345");
  CHECK_FALSE(out.is_cut());
  out.append("%s", "6789");
  CHECK(out.is_cut());
  CHECK(std::string(out.text()) == "1234567");
  CHECK(out.size() == 7);
  out.append("more");
  CHECK(std::string(out.text()) == "1234567");
  CHECK(memory[8] == '#');
}

TEST_CASE("lists break where a line would grow too long") {
  char memory[200];
  TextBuffer out(memory, sizeof memory);
  bool is_first = true;
  for (const char* item : {"alpha 1", "beta 22", "gamma 3"}) {
    out.append_item(item, 2, 20, &is_first);
  }
  CHECK(std::string(out.text()) == "alpha 1 | beta 22\n  gamma 3");
}
