// SPDX-License-Identifier: Apache-2.0
// The linker: cuts each text into module-scope items, decides which to keep and what to call them,
// and puts them together again. Mistakes inside an item are left for the parser to report.
#include "tools/softgpu/driver/ptx_merge.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

namespace softgpu {
namespace {

enum class Linkage { kPrivate, kVisible, kExtern, kWeak };

// A module-scope variable, function declaration, function or other directive.
struct Item {
  std::string text;
  std::string name;  // empty: names nothing
  Linkage linkage = Linkage::kPrivate;
  bool is_function = false;
  bool is_defined = true;    // false: a declaration
  bool is_shared = false;    // .extern .shared is the dynamic part, never defined
  std::size_t head_end = 0;  // functions: where the head ends in `text`, at the body or semicolon
};

struct Unit {
  double version = 0;
  std::string target;  // the whole line
  std::vector<Item> items;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

// Walks PTX text token by token; comments are dropped, strings are one token.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  // Empty at the end. A token is a word, a directive with its dot, a string, or one character.
  std::string_view next() {
    skip_blank();
    const std::size_t start = at_;
    if (start == text_.size()) return {};
    if (text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    } else {
      ++at_;
      if (is_word(text_[start]) || text_[start] == '.') {
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      }
    }
    return text_.substr(start, at_ - start);
  }
  std::string_view rest_of_line() {
    const std::size_t start = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    return text_.substr(start, at_ - start);
  }
  std::size_t position() const { return at_; }

 private:
  void skip_blank() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_name(std::string_view token) {
  return !token.empty() && is_word(token[0]) &&
         std::isdigit(static_cast<unsigned char>(token[0])) == 0;
}

// Reads the item whose first token is `token`.
Item read_item(std::string_view text, Cursor& cursor, std::string_view token) {
  Item item;
  const std::size_t start = cursor.position() - token.size();
  const bool is_section = token == ".section";
  int parentheses = 0, braces = 0;
  bool has_value = false;
  for (; !token.empty(); token = cursor.next()) {
    if (token == "(") ++parentheses;
    if (token == ")") --parentheses;
    if (parentheses == 0 && braces == 0) {
      if (token == ".visible") item.linkage = Linkage::kVisible;
      if (token == ".extern") item.linkage = Linkage::kExtern;
      if (token == ".weak" || token == ".common") item.linkage = Linkage::kWeak;
      if (token == ".func" || token == ".entry") item.is_function = true;
      if (token == ".entry" && item.linkage == Linkage::kPrivate) item.linkage = Linkage::kVisible;
      if (token == ".shared") item.is_shared = true;
      if (token == "=") has_value = true;
      if (item.name.empty() && is_name(token)) item.name = token;
      if (item.head_end == 0 && (token == "{" || token == ";")) {
        item.head_end = cursor.position() - 1 - start;
      }
    }
    if (token == "{") ++braces;
    if (token == "}" && --braces == 0 && !has_value) break;
    if (token == ";" && braces == 0) {
      if (item.is_function) item.is_defined = false;
      break;
    }
  }
  if (item.linkage == Linkage::kExtern && !item.is_function) item.is_defined = false;
  if (is_section) item.name.clear();
  item.text = text.substr(start, cursor.position() - start);
  return item;
}

Unit read_unit(std::string_view text) {
  Unit unit;
  Cursor cursor(text);
  for (std::string_view token = cursor.next(); !token.empty(); token = cursor.next()) {
    if (token == ".version") {
      unit.version = std::strtod(std::string(cursor.rest_of_line()).c_str(), nullptr);
    } else if (token == ".target") {
      unit.target = cursor.rest_of_line();
    } else if (token == ".address_size" || token == ".file") {
      cursor.rest_of_line();
    } else {
      Item item = read_item(text, cursor, token);
      // Debug sections describe one module by itself.
      if (!item.text.starts_with(".section")) unit.items.push_back(std::move(item));
    }
  }
  return unit;
}

// Replaces whole words of `text`.
std::string rename_words(std::string_view text,
                         const std::map<std::string, std::string, std::less<>>& names) {
  std::string result;
  Cursor cursor(text);
  std::size_t copied = 0;
  for (std::string_view token = cursor.next(); !token.empty(); token = cursor.next()) {
    const auto found = names.find(token);
    if (found == names.end()) continue;
    const std::size_t start = cursor.position() - token.size();
    result.append(text.substr(copied, start - copied)).append(found->second);
    copied = cursor.position();
  }
  return result.append(text.substr(copied));
}

// Gives names private to one unit another name when a second unit uses the name too.
void separate_private_names(std::vector<Unit>& units) {
  std::map<std::string, std::set<std::size_t>, std::less<>> users;
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (const Item& item : units[i].items) {
      if (!item.name.empty()) users[item.name].insert(i);
    }
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    std::map<std::string, std::string, std::less<>> names;
    for (const Item& item : units[i].items) {
      if (item.name.empty() || item.linkage != Linkage::kPrivate) continue;
      if (users[item.name].size() > 1) names[item.name] = item.name + "$unit" + std::to_string(i);
    }
    if (names.empty()) continue;
    for (Item& item : units[i].items) {
      const std::string_view head = std::string_view(item.text).substr(0, item.head_end);
      const std::size_t renamed_head = rename_words(head, names).size();
      item.text = rename_words(item.text, names);
      item.head_end = renamed_head;
      if (const auto found = names.find(item.name); found != names.end()) item.name = found->second;
    }
  }
}

// The definition that each name gets: the strong one, else the first weak one.
bool choose_definitions(const std::vector<Unit>& units,
                        std::map<std::string, const Item*, std::less<>>* chosen, std::string* log) {
  bool ok = true;
  for (const Unit& unit : units) {
    for (const Item& item : unit.items) {
      if (item.name.empty() || !item.is_defined) continue;
      const Item*& definition = (*chosen)[item.name];
      if (definition == nullptr ||
          (definition->linkage == Linkage::kWeak && item.linkage != Linkage::kWeak)) {
        definition = &item;
      } else if (item.linkage != Linkage::kWeak) {
        *log += "error   : Multiple definition of '" + item.name + "'\n";
        ok = false;
      }
    }
  }
  return ok;
}

// The device runtime's functions have no PTX: the interpreter has them.
bool is_built_in(std::string_view name) {
  return name == "vprintf" || name == "malloc" || name == "free" || name == "__assertfail" ||
         name == "cudaGraphSetConditional" || name.starts_with("__cuda");
}

// What makes a function known before its body comes.
std::string forward_declaration(const Item& item) {
  return item.text.substr(0, item.head_end) + ";\n";
}

void append_header(const std::vector<Unit>& units, std::string* merged) {
  const auto newest =
      std::max_element(units.begin(), units.end(),
                       [](const Unit& a, const Unit& b) { return a.version < b.version; });
  const auto arch = [](const Unit& unit) {
    const std::size_t digits = unit.target.find("sm_");
    return digits == std::string::npos ? 0 : std::atoi(unit.target.c_str() + digits + 3);
  };
  const auto highest = std::max_element(
      units.begin(), units.end(), [&](const Unit& a, const Unit& b) { return arch(a) < arch(b); });
  const int tenths = static_cast<int>(newest->version * 10 + 0.5);
  *merged += ".version " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "\n";
  *merged += ".target " + highest->target + "\n.address_size 64\n";
}

}  // namespace

bool merge_ptx(const std::vector<std::string_view>& texts, std::string* merged, std::string* log) {
  std::vector<Unit> units;
  for (const std::string_view text : texts)
    units.push_back(read_unit(text.substr(0, text.find('\0'))));
  if (units.empty()) {
    *log += "error   : nothing to link\n";
    return false;
  }
  separate_private_names(units);
  std::map<std::string, const Item*, std::less<>> chosen;
  bool ok = choose_definitions(units, &chosen, log);

  std::string declarations, variables, functions;
  std::set<std::string, std::less<>> declared;
  for (const Unit& unit : units) {
    for (const Item& item : unit.items) {
      const auto definition = chosen.find(item.name);
      const bool is_defined = definition != chosen.end();
      if (item.name.empty()) {
        variables += item.text + "\n";
      } else if (item.is_defined) {
        if (definition->second == &item)
          (item.is_function ? functions : variables) += item.text + "\n";
      } else if (!is_defined && !(item.is_function ? is_built_in(item.name) : item.is_shared)) {
        *log += "error   : Undefined reference to '" + item.name + "'\n";
        ok = false;
      } else if (declared.insert(item.name).second && (item.is_function || !is_defined)) {
        // Declared like its definition, which may be weak where the declaration says external.
        if (item.is_function)
          declarations += forward_declaration(is_defined ? *definition->second : item);
        if (!item.is_function) variables += item.text + "\n";
      }
    }
  }
  if (!ok) return false;
  merged->clear();
  append_header(units, merged);
  *merged += declarations + variables + functions;
  return true;
}

}  // namespace softgpu
