// SPDX-License-Identifier: Apache-2.0
// The document around a report's tables, and what only this format shows: tiles and the bar of
// launches. Numbers are formed by the functions that form them in text.
#include "tools/cli/html_output.h"

#include <algorithm>
#include <cstdlib>

#include "tools/cli/html_flame.h"
#include "tools/cli/html_style.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

// Trailing and leading blanks are layout of the text format.
std::string content(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return html_escaped(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

void add_tile(const std::string& value, const std::string& name, const std::string& remark,
              std::string* out) {
  *out += "<div class=\"tile\"><span>" + name + "</span><strong>" + value + "</strong><small>" +
          remark + "</small></div>\n";
}

// The facts of the page, each at a glance.
void add_tiles(const Report& report, std::string* out) {
  const double wall_ns = to_double(report.process.wall_ns);
  if (wall_ns <= 0) return;
  const double observed = to_double(report.observed_ns());
  const double launching = to_double(report.launches.host_ns());
  const std::uint64_t inside = report.submitting_ns();
  *out += "<div class=\"tiles\">\n";
  add_tile(total_time(wall_ns), "wall time", report.parts.empty() ? "" : "in all processes", out);
  add_tile(format("%.1f %%", percent(observed, wall_ns)), "in calls that observe the device",
           total_time(observed), out);
  add_tile(format("%.1f %%", percent(launching, wall_ns)), "launching",
           total_time(launching) +
               (inside > 0 ? ", " + total_time(to_double(inside)) + " of it in those calls" : ""),
           out);
  const double cost = to_double(report.process.estimated_cost_ns);
  add_tile(format("%.1f %%", percent(cost, wall_ns)), "cost of profiling",
           "about " + total_time(cost), out);
  *out += "</div>\n";
}

// The ways of launches, as wide as their counts.
void add_launch_bar(const Launches& launches, std::string* out) {
  const std::uint64_t total = launches.total();
  if (total == 0) return;
  const std::uint64_t one_by_one = launches.queued_sent_one_by_one();
  const struct {
    const char* name;
    const char* style;
    std::uint64_t count;
  } ways[] = {{"replayed in graphs", "w-replayed", launches.replayed},
              {"queued, sent one by one", "w-queued", one_by_one},
              {"direct", "w-direct", launches.sent_one_by_one - one_by_one},
              {"still queued", "w-pending", launches.pending}};
  std::string bar, legend;
  for (const auto& way : ways) {
    const double width = percent(to_double(way.count), to_double(total));
    const std::string number = grouped(way.count) + format(" (%.1f %%)", width);
    legend +=
        format("<span><b class=\"%s\"></b>%s <em>", way.style, way.name) + number + "</em></span> ";
    if (way.count == 0) continue;
    bar += format("<div class=\"%s\" style=\"width:%.4f%%\" title=\"%s: ", way.style, width,
                  way.name) +
           number + "\"></div>\n";
  }
  *out += "<div class=\"bar\">\n" + bar + "</div>\n<p class=\"legend\">" + legend + "</p>\n";
}

void add_heads(const Table& table, std::size_t columns, std::string* out) {
  *out += "<thead><tr>";
  for (std::size_t i = 0; i < columns; ++i) {
    const bool is_named = i < table.columns.size() && !table.columns[i].name.empty();
    const bool is_left = i >= table.columns.size() || table.columns[i].is_left;
    const std::string style = is_left ? " class=\"l\"" : "";
    *out += is_named ? "<th scope=\"col\"" + style + ">" + content(table.columns[i].name) + "</th>"
                     : "<td" + style + "></td>";
  }
  *out += "</tr></thead>\n";
}

// A share has a bar behind its number.
std::string cell_html(const Column& column, const std::string& cell) {
  if (column.is_left) return "<td class=\"l\">" + content(cell) + "</td>";
  if (column.name.ends_with('%') && !cell.empty()) {
    const double part = std::clamp(std::strtod(cell.c_str(), nullptr), 0.0, 100.0);
    return format("<td class=\"share\" style=\"background-size:%.1f%% 100%%\">", part) +
           content(cell) + "</td>";
  }
  return "<td>" + content(cell) + "</td>";
}

// What stands behind a row in text is the cell after its last; lines below unfold.
void add_row(const Table& table, const Row& row, std::size_t columns, std::string* out) {
  *out += "<tr>";
  const std::size_t cells = std::min(row.cells.size(), table.columns.size());
  for (std::size_t i = 0; i < cells; ++i) *out += cell_html(table.columns[i], row.cells[i]);
  // A row that ends early.
  const bool has_last = !row.behind.empty() || !row.below.empty();
  for (std::size_t i = cells; i < columns && !has_last; ++i) *out += "<td></td>";
  if (cells < columns && has_last) {
    std::string last = content(row.behind);
    if (!row.below.empty()) {
      last = "<details><summary>" + last + "</summary><pre>";
      for (const std::string& line : row.below) last += html_escaped(line) + "\n";
      last += "</pre></details>";
    }
    *out += format("<td class=\"l\" colspan=\"%zu\">", columns - cells) + last + "</td>";
  }
  *out += "</tr>\n";
}

void add_note(const Note& note, std::string* out) {
  *out += "<p class=\"note\">" + content(note.title);
  bool is_first = true;
  for (const std::string& item : note.items) {
    *out += (is_first ? (note.title.empty() ? "" : " ") : " \xC2\xB7 ");
    *out += "<span>" + content(item) + "</span>";
    is_first = false;
  }
  *out += "</p>\n";
}

void add_table(const Table& table, std::string* out) {
  const bool is_narrow = !table.columns.empty() && !table.columns.back().is_left;
  *out +=
      std::string("<div class=\"wide\"><table") + (is_narrow ? " class=\"narrow\"" : "") + ">\n";
  const bool has_behind = std::any_of(table.rows.begin(), table.rows.end(), [&](const Row& row) {
    return !row.behind.empty() && row.cells.size() >= table.columns.size();
  });
  const std::size_t columns = table.columns.size() + (has_behind ? 1 : 0);
  add_heads(table, columns, out);
  *out += "<tbody>\n";
  for (const Row& row : table.rows) add_row(table, row, columns, out);
  *out += "</tbody></table></div>\n";
}

void add_section(const Report& report, const Table& table, std::string* out) {
  *out += "<section>\n<h2 class=\"caps\">" + content(table.title) + "</h2>\n";
  if (!table.remark.empty()) *out += "<p class=\"note\">" + content(table.remark) + "</p>\n";
  if (table.title == kLaunchesTitle) add_launch_bar(report.launches, out);
  if (!table.rows.empty()) add_table(table, out);
  for (const Note& note : table.notes) add_note(note, out);
  *out += "</section>\n";
}

void add_report(const Report& report, const View& view, std::string* out) {
  const Page page = page_of(report, view);
  *out += "<article>\n<header>\n<h1>" + content(report.process.executable) +
          "</h1>\n<p class=\"note\">" + content(page.title) + "</p>\n";
  for (const std::string& line : page.head) {
    *out += "<p class=\"head\">" + content(line) + "</p>\n";
  }
  add_tiles(report, out);
  *out += "</header>\n";
  for (const Table& table : page.tables) {
    if (table.title == kEntriesTitle) *out += flame_html(report);
    add_section(report, table, out);
  }
  *out += "</article>\n";
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char byte : printable(text)) {
    switch (byte) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += byte;
    }
  }
  return out;
}

std::string html_of(const std::vector<Report>& reports, const View& view) {
  View full = view;
  full.has_stacks = true;
  std::string title = "cajeta-xpu";
  for (const Report& report : reports) title += " " + report.process.executable;
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'sha256-";
  out += kHtmlScriptHash;
  out +=
      "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>";
  out += html_escaped(title) + "</title>\n<style>\n" + kHtmlStyle + "</style>\n</head>\n<body>\n";
  for (const Report& report : reports) add_report(report, full, &out);
  return out + "<script>" + kHtmlScript + "</script>\n</body>\n</html>\n";
}

}  // namespace cli
