// SPDX-License-Identifier: Apache-2.0
// Reading reports: nothing is lost on the way, and whatever is wrong with a file is one line that
// says where and what was expected.
#include "tools/cli/report_file.h"

#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"
#include "tools/cli/failure.h"

namespace {

using cli_test::json_of;
using cli_test::sample_json;

std::string failure_of(const std::string& text) {
  try {
    cli::parse_report(text, "x.json");
  } catch (const cli::Failure& failure) {
    CHECK(failure.code() == cli::kBadInput);
    return failure.what();
  }
  return "";
}

// The sample with its first `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = sample_json();
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a report is the same after reading and writing") {
  const cli::Report sample = cli::parse_report(sample_json(), "sample");
  CHECK(sample.process.host == "gpu07");
  CHECK(sample.launches.total() == 22'784);
  CHECK(sample.entries.size() == 6);
  REQUIRE(sample.sites);
  CHECK(sample.sites->list.size() == 4);
  const std::string written = json_of(sample);
  CHECK(json_of(cli::parse_report(written, "again")) == written);
  const auto events = cli_test::random_events(7, 300, 1);
  const std::string random = json_of(cli_test::report_of(events, 0));
  CHECK(json_of(cli::parse_report(random, "again")) == random);
}

TEST_CASE("unknown keys are ignored, a later minor version is read") {
  const std::string text =
      changed("\"process\": {", "\"new\": [{\"a\": -1.5e3}], \"process\": {\"x\": null,");
  CHECK(failure_of(text).empty());
  CHECK(failure_of(changed("\"schema_version\": \"1.0.0\"", "\"schema_version\": \"1.9.3\""))
            .empty());
}

TEST_CASE("a wrong value is named by its key, with what was expected") {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  for (const Case& wrong : {
           Case{"\"pid\": 41873", "\"pid\": -3",
                "x.json: process.pid: expected an integer from 0 to 2^64-1, found -3"},
           Case{"\"pid\": 41873", "\"pid\": 1.5",
                "x.json: process.pid: expected an integer from 0 to 2^64-1, found 1.5"},
           Case{"\"pid\": 41873", "\"pidd\": 1", "x.json: process: the key \"pid\" is missing"},
           Case{"\"host\": \"gpu07\"", "\"host\": []",
                "x.json: process.host: expected a string, found an array"},
           Case{"\"kind\": \"", "\"kind\": \"x",
                "x.json: entries[0].kind: expected one of sync, copy, query, alloc, other, found "
                "\"x"},
           Case{"\"rank\": \"0\"", "\"rank\": \"-1\"",
                "x.json: process.rank: expected a string of digits, found \"-1\""},
           Case{"\"histogram\": [[", "\"histogram\": [[400, 1], [",
                "expected buckets from 0 to 311 in ascending order, found 400"},
           Case{"\"histogram\": [[", "\"histogram\": [[1], [",
                "histogram[0]: expected an array of 2, found an array"},
           Case{"\"module\": 0", "\"module\": 99",
                "module: expected a position in modules, or null, found 99"},
           Case{"\"schema_version\": \"1.0.0\"", "\"schema_version\": \"2.0.0\"",
                "x.json: schema_version: expected 1.x.x, found 2.0.0"},
           Case{"\"cajeta-xpu.report\"", "\"other\"",
                "x.json: schema: expected \"cajeta-xpu.report\", found \"other\""},
           Case{"\"schema\":", "\"Schema\":", "x.json: no report: expected the key \"schema\""},
       }) {
    const std::string line = failure_of(changed(wrong.from, wrong.to));
    INFO(line);
    CHECK(line.find(wrong.message) != line.npos);
  }
}

TEST_CASE("broken files are one line with the byte") {
  CHECK(failure_of("") == "x.json: the file is empty; expected a JSON report");
  CHECK(failure_of("cajeta-xpu 0.1.0  pid 3").find("this is a text report") != std::string::npos);
  CHECK(failure_of("hello").find("x.json: byte 1: broken JSON: ") == 0);
  CHECK(failure_of("[]").find("x.json: no report: expected the key \"schema\"") == 0);
  CHECK(failure_of("{\"schema\": 1e999}").find("x.json: broken JSON: ") == 0);
  CHECK(failure_of("{\"a\": \"\x1b[2J\"}").find('\x1b') == std::string::npos);
  const std::string text = sample_json();
  for (std::size_t size = 1; size + 2 < text.size(); size += 31) {
    const std::string line = failure_of(text.substr(0, size));
    INFO(size << ": " << line);
    CHECK(line.find("x.json: byte ") == 0);
    CHECK(line.find('\n') == line.npos);
    CHECK(line.size() < 250);
  }
}

TEST_CASE("a line stays short whatever the file holds") {
  const std::string key(5000, 'k');
  CHECK(failure_of(changed("\"settings\": {", "\"settings\": {\"" + key + "\": 1,")).size() < 200);
  CHECK(failure_of(changed("\"exit\"", "\"" + key + "\"")).size() < 200);
  CHECK(failure_of(changed("\"1.0.0\"", "\"" + key + "\"")).size() < 200);
}

TEST_CASE("a thousand nested brackets are no danger") {
  CHECK(failure_of(std::string(100'000, '[')).find("x.json: byte ") == 0);
  CHECK(failure_of("{\"schema\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}") ==
        "x.json: schema: expected a string, found an array");
}
