// SPDX-License-Identifier: Apache-2.0
// A page as Markdown, for a comment on a change or a wiki.
#include <algorithm>
#include <cctype>

#include "tools/cli/output.h"
#include "tools/cli/table.h"

namespace cli {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char byte : printable(text)) {
    if (std::string_view("\\`*_<>[]#|").find(byte) != std::string_view::npos) out += '\\';
    out += byte;
  }
  return out;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

void add_cells(const std::vector<std::string>& cells, std::size_t count, std::string* out) {
  for (std::size_t i = 0; i < count; ++i) *out += "| " + (i < cells.size() ? cells[i] : "") + " ";
  *out += "|\n";
}

void add_table(const Table& table, std::string* out) {
  *out += "\n### " + escaped(table.title) + "\n";
  if (!table.remark.empty()) *out += "\n" + escaped(trimmed(table.remark)) + "\n";
  if (table.rows.empty()) return;
  // What stands behind a row in text is a column here.
  const bool has_behind = std::any_of(table.rows.begin(), table.rows.end(),
                                      [](const Row& row) { return !row.behind.empty(); });
  std::vector<std::string> names, rules;
  for (const Column& column : table.columns) {
    names.push_back(escaped(column.name));
    rules.push_back(column.is_left ? "---" : "--:");
  }
  if (has_behind) rules.push_back("---");
  if (names.size() < rules.size()) names.push_back("");
  *out += "\n";
  add_cells(names, names.size(), out);
  add_cells(rules, rules.size(), out);
  for (const Row& row : table.rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : row.cells) cells.push_back(escaped(cell));
    cells.resize(table.columns.size());
    std::string behind = escaped(row.behind);
    for (const std::string& line : row.below) behind += "<br>" + escaped(line);
    if (has_behind) cells.push_back(behind);
    add_cells(cells, names.size(), out);
  }
}

std::string note_of(const Note& note) {
  std::string text = "- " + escaped(note.title);
  bool is_first = true;
  for (const std::string& item : note.items) {
    text += (is_first ? (note.title.empty() ? "" : " ") : ", ") + escaped(item);
    is_first = false;
  }
  return text + "\n";
}

}  // namespace

std::string markdown_of(const Page& page) {
  std::string out = "## " + escaped(page.title) + "\n\n";
  for (const std::string& line : page.head) out += "- " + escaped(line) + "\n";
  for (const std::string& fact : page.facts) out += "- " + escaped(fact) + "\n";
  for (const Table& table : page.tables) {
    add_table(table, &out);
    if (!table.notes.empty()) out += "\n";
    for (const Note& note : table.notes) out += note_of(note);
  }
  return out;
}

}  // namespace cli
