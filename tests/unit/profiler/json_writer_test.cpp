// SPDX-License-Identifier: Apache-2.0
// What is written parses as JSON and means what was given, whatever the bytes.
#include "profiler/json_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "profiler/json_report.h"
#include "tests/unit/catch.h"

using nlohmann::json;
using profiler::JsonWriter;

namespace {

std::string written(const std::function<void(JsonWriter*)>& body) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  JsonWriter out(fileno(file));
  body(&out);
  REQUIRE(out.finish());
  std::string text(static_cast<std::size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
  REQUIRE(pread(fileno(file), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  std::fclose(file);
  return text;
}

std::string read_back(const std::string& bytes) {
  const std::string text = written([&](JsonWriter* out) { out->text(nullptr, bytes.c_str()); });
  return json::parse(text).get<std::string>();
}

}  // namespace

TEST_CASE("values of every kind, nested and empty") {
  const std::string text = written([](JsonWriter* out) {
    out->begin_object();
    out->number("most", UINT64_MAX);
    out->signed_number("least", INT64_MIN);
    out->boolean("yes", true);
    out->null("nothing");
    out->begin_array("list");
    out->number(nullptr, 1);
    out->begin_array();
    out->begin_object();
    out->begin_object("deep");
    out->begin_array("empty");
    out->end_array();
    out->end_object();
    out->end_object();
    out->end_array();
    out->end_array();
    out->begin_object("empty");
    out->end_object();
    out->end_object();
  });
  const json expected = {{"most", UINT64_MAX},
                         {"least", INT64_MIN},
                         {"yes", true},
                         {"nothing", nullptr},
                         {"list", {1, {{{"deep", {{"empty", json::array()}}}}}}},
                         {"empty", json::object()}};
  CHECK(json::parse(text) == expected);
  CHECK(text.back() == '\n');
}

TEST_CASE("text that needs escapes comes back as it was") {
  for (const char* text : {"", "plain", "a \"quote\" and a \\ \b\f\n\r\t\x01\x1f\x7f", "\xc3\xa9",
                           "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(read_back(text) == text);
  }
}

TEST_CASE("bytes that are not UTF-8 become the replacement character") {
  const std::string mark = "\xef\xbf\xbd";
  CHECK(read_back("a\xff z") == "a" + mark + " z");
  CHECK(read_back("\xc3") == mark);                                   // cut short
  CHECK(read_back("\xc0\xaf") == mark + mark);                        // overlong
  CHECK(read_back("\xed\xa0\x80") == mark + mark + mark);             // a surrogate
  CHECK(read_back("\xf4\x90\x80\x80") == mark + mark + mark + mark);  // above U+10FFFF
  CHECK(read_back("\xe2\x82z") == mark + mark + "z");
}

TEST_CASE("every two bytes make text that parses") {
  for (int first = 1; first < 256; ++first) {
    for (int second = 1; second < 256; second += 3) {
      const std::string bytes = {static_cast<char>(first), static_cast<char>(second)};
      CHECK_NOTHROW(read_back(bytes));
    }
  }
}

TEST_CASE("text longer than the buffer is written whole") {
  const std::string bytes(100'000, 'x');
  CHECK(read_back(bytes) == bytes);
}

TEST_CASE("a file that cannot be written is told, with its reason") {
  const int file = open("/dev/full", O_WRONLY);
  REQUIRE(file >= 0);
  JsonWriter out(file);
  for (int i = 0; i < 10'000; ++i) out.text(nullptr, "text");
  CHECK_FALSE(out.finish());
  CHECK(errno == ENOSPC);
  close(file);
}
