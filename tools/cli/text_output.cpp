// SPDX-License-Identifier: Apache-2.0
// A page as text of at most 100 columns; with colour only the titles differ.
#include <algorithm>

#include "tools/cli/output.h"
#include "tools/cli/table.h"

namespace cli {
namespace {

class Text {
 public:
  explicit Text(bool has_colour) : has_colour_(has_colour) {}

  void add(const std::string& text) { line_ += printable(text); }
  // One column: padded, what is longer pushes the rest.
  void add_cell(const Column& column, const std::string& cell) {
    line_.append(static_cast<std::size_t>(column.gap), ' ');
    const std::string clean = printable(cell);
    const auto width = static_cast<std::size_t>(column.width);
    const std::string blanks(clean.size() < width ? width - clean.size() : 0, ' ');
    line_ += column.is_left ? clean + blanks : blanks + clean;
  }
  void add_item(const std::string& item, bool is_first, std::size_t indent) {
    if (!is_first && line_.size() + 3 + item.size() > kWidth) {
      end();
      line_.append(indent, ' ');
    } else if (!is_first) {
      line_ += " | ";
    }
    line_ += printable(item);
  }
  void add_behind(const std::string& text) {
    line_ += "  ";
    if (line_.size() + text.size() > kWidth) {
      end();
      line_.append(8, ' ');
    }
    line_ += printable(text);
  }
  // `title_size` columns of the line are a title.
  void end(std::size_t title_size = 0) {
    if (line_.size() > kWidth) line_.resize(kWidth);
    while (line_.ends_with(' ')) line_.pop_back();
    if (has_colour_ && title_size > 0) {
      line_.insert(std::min(title_size, line_.size()), "\033[0m");
      line_.insert(0, "\033[1m");
    }
    text_ += line_ + "\n";
    line_.clear();
  }
  std::string take() { return std::move(text_); }

 private:
  bool has_colour_;
  std::string text_;
  std::string line_;
};

void add_note(const Note& note, Text* text) {
  text->add(note.title.empty() ? "  " : "  " + note.title + "  ");
  bool is_first = true;
  for (const std::string& item : note.items) {
    text->add_item(item, is_first, note.title.empty() ? 2 : 4);
    is_first = false;
  }
  text->end();
}

// The title, or the names of the columns, or both on one line.
void add_heads(const Table& table, Text* text) {
  const bool shares_line = !table.columns.empty() && table.columns[0].name.empty();
  if (!shares_line) {
    text->add(table.title + table.remark);
    text->end(table.title.size());
    if (table.columns.empty() || table.rows.empty()) return;
  }
  bool is_first = true;
  for (const Column& column : table.columns) {
    if (is_first && shares_line) {
      text->add_cell({"", column.width + column.gap, true, 0}, table.title + table.remark);
    } else {
      text->add_cell({"", column.width, column.is_left, column.gap}, column.name);
    }
    is_first = false;
  }
  text->end(shares_line ? table.title.size() : 0);
}

void add_row(const Table& table, const Row& row, Text* text) {
  for (std::size_t i = 0; i < row.cells.size(); ++i) text->add_cell(table.columns[i], row.cells[i]);
  if (!row.behind.empty()) text->add_behind(row.behind);
  text->end();
  for (const std::string& line : row.below) {
    text->add("        " + line);
    text->end();
  }
}

}  // namespace

std::string text_of(const Page& page, bool has_colour) {
  Text text(has_colour);
  text.add(page.title);
  text.end(page.title.size());
  for (const std::string& line : page.head) {
    text.add(line);
    text.end();
  }
  bool is_first = true;
  for (const std::string& fact : page.facts) {
    text.add_item(fact, is_first, 2);
    is_first = false;
  }
  if (!page.facts.empty()) text.end();
  for (const Table& table : page.tables) {
    text.end();
    add_heads(table, &text);
    for (const Row& row : table.rows) add_row(table, row, &text);
    for (const Note& note : table.notes) add_note(note, &text);
  }
  return text.take();
}

}  // namespace cli
