// SPDX-License-Identifier: Apache-2.0
// HTML of a report: foreign text stays text, tags balance, every section is there, the numbers are
// those of the text, the boxes of the flame graph lie within those above them.
#include <algorithm>
#include <regex>
#include <set>

#include "tests/unit/catch.h"
#include "tests/unit/cli/reports.h"
#include "tools/cli/html_flame.h"
#include "tools/cli/html_output.h"
#include "tools/cli/output.h"

namespace {

constexpr const char* kForeign = "<script>\"'&\n</script>";

// Empty when every tag is closed in order.
std::string unbalanced(const std::string& html) {
  static const std::set<std::string> kVoid = {"meta", "br", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const bool is_end = html[at + 1] == '/';
    const std::size_t start = at + (is_end ? 2 : 1);
    const std::string name = html.substr(start, html.find_first_of(" >\n", start) - start);
    if (kVoid.count(name) != 0) continue;
    if (is_end && (open.empty() || open.back() != name)) return "</" + name + ">";
    if (is_end) {
      open.pop_back();
      continue;
    }
    open.push_back(name);
    // Raw text: not markup but for the end tag.
    if (name == "script" || name == "style") at = html.find("</" + name, at) - 1;
  }
  return open.empty() ? "" : "<" + open.back() + ">";
}

cli::Report sample(std::uint64_t seed) {
  return cli_test::report_of(cli_test::random_events(seed, 500, 1), 0);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

struct Box {
  double left, width, top;
};

std::vector<Box> boxes_of(const std::string& html) {
  static const std::regex kBox("left:([0-9.]+)%;width:([0-9.]+)%;top:([0-9]+)px");
  std::vector<Box> boxes;
  for (std::sregex_iterator at(html.begin(), html.end(), kBox), end; at != end; ++at) {
    boxes.push_back({std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3])});
  }
  return boxes;
}

TEST_CASE("foreign text in HTML stays text", "[cli][html]") {
  CHECK(cli::html_escaped(kForeign) == "&lt;script&gt;&quot;&#39;&amp;?&lt;/script&gt;");
  cli::Report report = sample(1);
  report.process.executable = report.process.command = report.process.host = kForeign;
  report.tool_version = kForeign;
  report.process.settings = {{"DEFER", kForeign}};
  report.entries[0].name = report.sites->list[0].entry = kForeign;
  report.launches.one_by_one_reasons = {{kForeign, 3}};
  report.unknown_entries = {{kForeign, 1}};
  report.sites->modules[0].path = report.sites->walk = kForeign;
  for (cli::Site& site : report.sites->list) {
    site.place = kForeign;
    site.through = kForeign;
    for (cli::Frame& frame : site.frames) frame.function = frame.file = kForeign;
  }
  const std::string html = cli::html_of({report}, {});
  CHECK(count_of(html, "<script>") == 1);
  CHECK(count_of(html, "&lt;script&gt;") > 20);
  CHECK(unbalanced(html).empty());
}

TEST_CASE("an HTML page has the sections and numbers of the text", "[cli][html]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cli::Report report = sample(seed);
    report.launches.pending = seed % 2;
    const std::string html = cli::html_of({report, report}, {});
    CHECK(unbalanced(html) == "");
    CHECK(html == cli::html_of({report, report}, {}));
    CHECK(count_of(html, "<article>") == 2);
    const cli::Page page = cli::page_of(report, {});
    for (const cli::Table& table : page.tables) {
      CHECK(count_of(html, ">" + cli::html_escaped(table.title) + "</h2>") == 2);
      for (const cli::Row& row : table.rows) {
        for (const std::string& cell : row.cells) {
          if (!cell.empty()) CHECK(html.find(">" + cell + "</td>") != std::string::npos);
        }
      }
    }
    for (const double ns : {report.process.wall_ns, report.observed_ns()}) {
      CHECK(html.find(">" + cli::total_time(ns) + "<") != std::string::npos);
    }
  }
}

TEST_CASE("boxes of the flame graph are as wide as their time", "[cli][html]") {
  const cli::Report report = sample(7);
  std::uint64_t known_ns = 0;
  for (const cli::Site& site : report.sites->list) known_ns += site.total_ns;
  REQUIRE(known_ns == report.observed_ns());
  const std::vector<Box> boxes = boxes_of(cli::flame_html(report));
  REQUIRE(boxes.size() > 4);
  CHECK(boxes[0].width == 100);
  double leaves = 0;
  for (const Box& box : boxes) {
    if (box.top == 0) continue;
    CHECK(std::any_of(boxes.begin(), boxes.end(), [&](const Box& outer) {
      return outer.top + 21 == box.top && outer.left <= box.left + 1e-3 &&
             outer.left + outer.width >= box.left + box.width - 1e-3;
    }));
    // The frames of these reports have one name, so each leaf is a site.
    if (box.top == 4 * 21) leaves += box.width;
  }
  CHECK(std::abs(leaves - 100) < 0.04 * 6 + 1e-2);
}

TEST_CASE("time without a stack has a box of its own", "[cli][html]") {
  cli::Report report = sample(3);
  report.sites->list.clear();
  const std::string html = cli::flame_html(report);
  CHECK(boxes_of(html).size() == 2);
  CHECK(html.find("without a stack") != std::string::npos);
  report.sites.reset();
  CHECK(cli::flame_html(report).find("cajeta-xpu run --sites") != std::string::npos);
  CHECK(unbalanced(cli::html_of({cli::Report()}, {})).empty());
}

TEST_CASE("a stack of a hundred thousand frames is drawn", "[cli][html]") {
  cli::Report report = sample(5);
  report.sites->list.resize(1);
  report.sites->list[0].frames.assign(100'000, {std::nullopt, 1, "deep", "file", 1, false});
  CHECK(boxes_of(cli::flame_html(report)).size() >= 100'002);
}

}  // namespace
