// SPDX-License-Identifier: Apache-2.0
// A page of tables, before it has a format. A new format is a new file with one function from Page
// to string. Cells are plain text; a writer cleans and escapes them.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct Column {
  std::string name;
  int width = 0;         // of text; 0 in the last column
  bool is_left = false;  // else to the right
  int gap = 1;           // blanks before it
};

struct Row {
  std::vector<std::string> cells;  // may end early
  std::string behind;  // after the last cell, on a line of its own where it does not fit
  std::vector<std::string> below;  // lines under the row
};

// "title  a | b | c"
struct Note {
  std::string title;
  std::vector<std::string> items;
};

struct Table {
  std::string title;
  std::string remark;           // behind the title, with the blanks before it
  std::vector<Column> columns;  // the first without a name: the title stands in its place
  std::vector<Row> rows;
  std::vector<Note> notes;
};

struct Page {
  std::string title;
  std::vector<std::string> head;  // lines under the title
  std::vector<std::string> facts;
  std::vector<Table> tables;
};

std::string text_of(const Page& page, bool has_colour);
std::string markdown_of(const Page& page);

}  // namespace cli
