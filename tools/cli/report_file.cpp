// SPDX-License-Identifier: Apache-2.0
// From bytes to a Report, key by key, with the way to the key at hand for messages.
#include "tools/cli/report_file.h"

#include <nlohmann/json.hpp>

#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"
#include "tools/cli/input_file.h"
#include "tools/cli/output.h"
#include "tools/cli/trace_file.h"

namespace cli {
namespace {

// Ordered: settings are shown in the order of the file.
using Json = nlohmann::ordered_json;

// A value and the way to it. Lives on the stack of the reader, below its parent.
class Node {
 public:
  explicit Node(const Json& value) : value_(value) {}
  Node(const Json& value, const Node* parent, std::string step)
      : value_(value), parent_(parent), step_(std::move(step)) {}

  Node at(const char* key) const {
    if (!value_.is_object()) expect("an object");
    const auto found = value_.find(key);
    if (found == value_.end()) {
      throw Failure(way() + (parent_ != nullptr ? ": " : "") + "the key \"" + key +
                    "\" is missing");
    }
    return Node(*found, this, key);
  }
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  bool is_null() const { return value_.is_null(); }

  std::uint64_t number(const char* key) const { return at(key).number(); }
  std::uint64_t number() const {
    if (!value_.is_number_unsigned()) expect("an integer from 0 to 2^64-1");
    return value_.get<std::uint64_t>();
  }
  bool boolean(const char* key) const {
    const Node node = at(key);
    if (!node.value_.is_boolean()) node.expect("true or false");
    return node.value_.get<bool>();
  }
  std::string text(const char* key) const { return at(key).text(); }
  std::string text() const {
    if (!value_.is_string()) expect("a string");
    return value_.get<std::string>();
  }
  std::string one_of(const char* key, std::initializer_list<const char*> legal) const {
    const Node node = at(key);
    const std::string value = node.text();
    std::string names;
    for (const char* name : legal) {
      if (value == name) return value;
      names += std::string(names.empty() ? "" : ", ") + name;
    }
    throw Failure(node.way() + ": expected one of " + names + ", found \"" + cut(value) + "\"");
  }

  template <typename Function>
  void each(Function function) const {
    if (!value_.is_array()) expect("an array");
    std::size_t index = 0;
    for (const Json& element : value_) {
      function(Node(element, this, "[" + std::to_string(index++) + "]"));
    }
  }
  template <typename Function>
  void each_member(Function function) const {
    if (!value_.is_object()) expect("an object");
    for (const auto& [key, value] : value_.items()) function(key, Node(value, this, key));
  }
  // Element of an array with that many elements.
  Node element(std::size_t index, std::size_t size) const {
    if (!value_.is_array() || value_.size() != size) {
      expect(("an array of " + std::to_string(size)).c_str());
    }
    return Node(value_[index], this, "[" + std::to_string(index) + "]");
  }

  [[noreturn]] void expect(const char* what) const {
    throw Failure(way() + (parent_ != nullptr ? ": " : "") + "expected " + what + ", found " +
                  describe());
  }

 private:
  static std::string cut(const std::string& text) { return printable(text).substr(0, 40); }
  std::string describe() const {
    if (value_.is_number()) return cut(value_.dump());
    if (value_.is_string()) return "\"" + cut(value_.get<std::string>()) + "\"";
    if (value_.is_boolean()) return value_.get<bool>() ? "true" : "false";
    return value_.is_null() ? "null" : value_.is_array() ? "an array" : "an object";
  }
  std::string way() const {
    if (parent_ == nullptr) return "";
    const std::string before = parent_->way();
    return before + (before.empty() || step_[0] == '[' ? "" : ".") + cut(step_);
  }

  const Json& value_;
  const Node* parent_ = nullptr;
  std::string step_;
};

void read_histogram(const Node& node, CallTotals* totals) {
  std::size_t next = 0;
  node.each([&](const Node& pair) {
    const std::uint64_t bucket = pair.element(0, 2).number();
    if (bucket < next || bucket >= profiler::kBucketCount) {
      pair.element(0, 2).expect("buckets from 0 to 311 in ascending order");
    }
    next = bucket + 1;
    totals->buckets[bucket] = pair.element(1, 2).number();
  });
}

// Median and p99 follow from the rest.
void read_times(const Node& node, CallTotals* totals) {
  totals->total_ns = node.number("total_ns");
  totals->min_ns = node.number("min_ns");
  totals->max_ns = node.number("max_ns");
  read_histogram(node.at("histogram"), totals);
}

CallTotals read_calls(const Node& node) {
  CallTotals totals;
  totals.calls = node.number("calls");
  totals.failed = node.number("failed");
  read_times(node, &totals);
  return totals;
}

CallTotals read_batches(const Node& node) {
  CallTotals totals;
  totals.calls = node.number("submissions");
  totals.amount = node.number("launches");
  read_times(node, &totals);
  return totals;
}

std::vector<Counted> read_counted(const Node& list, const char* name, const char* count) {
  std::vector<Counted> found;
  list.each([&](const Node& node) { found.push_back({node.text(name), node.number(count)}); });
  return found;
}

Process read_process(const Node& node) {
  Process process;
  process.pid = node.number("pid");
  process.host = node.text("host");
  process.executable = node.text("executable");
  process.command = node.text("command");
  process.rank = node.text("rank");
  if (process.rank.empty() || process.rank.find_first_not_of("0123456789") != std::string::npos) {
    node.at("rank").expect("a string of digits");
  }
  process.rank_source = node.text("rank_source");
  process.wall_ns = node.number("wall_ns");
  node.at("settings").each_member([&](const std::string& key, const Node& value) {
    process.settings.emplace_back(key, value.text());
  });
  process.estimated_cost_ns = node.number("estimated_cost_ns");
  return process;
}

std::vector<Part> read_parts(const Node& list) {
  std::vector<Part> parts;
  list.each([&](const Node& node) {
    parts.push_back({node.number("pid"), node.text("host"), node.text("executable"),
                     node.text("rank"), node.number("wall_ns"), node.number("blocked_ns")});
  });
  return parts;
}

Launches read_launches(const Node& node) {
  Launches launches;
  launches.queued = node.number("queued");
  launches.replayed = node.number("replayed");
  launches.sent_one_by_one = node.number("sent_one_by_one");
  launches.pending = node.number("pending");
  launches.queueing_calls = read_calls(node.at("queueing_calls"));
  launches.direct_calls = read_calls(node.at("direct_calls"));
  launches.replayed_batches = read_batches(node.at("replayed_batches"));
  launches.one_by_one_batches = read_batches(node.at("one_by_one_batches"));
  const Node graphs = node.at("graphs");
  launches.graphs_built = graphs.number("built");
  launches.graphs_launched = graphs.number("launched");
  launches.nodes_patched = graphs.number("nodes_patched");
  launches.graphs_evicted = graphs.number("evicted");
  launches.held_bytes = graphs.number("held_bytes");
  launches.one_by_one_reasons = read_counted(node.at("one_by_one_reasons"), "reason", "launches");
  return launches;
}

std::string read_kind(const Node& node) {
  return node.one_of("kind", {kKinds[0], kKinds[1], kKinds[2], kKinds[3], kKinds[4]});
}

Entry read_entry(const Node& node) {
  Entry entry{node.text("entry"), read_kind(node), read_calls(node)};
  entry.totals.flushed = node.number("flushed");
  entry.totals.not_ready = node.number("not_ready");
  entry.totals.submit_ns = node.number("submit_ns");
  entry.totals.amount = node.number("bytes");
  entry.totals.pageable = node.number("pageable_calls");
  entry.totals.locked = node.number("page_locked_calls");
  entry.totals.unknown = node.number("unknown_host_calls");
  return entry;
}

std::optional<std::string> read_optional_text(const Node& node) {
  if (node.is_null()) return std::nullopt;
  return node.text();
}

std::optional<std::uint64_t> read_optional_number(const Node& node) {
  if (node.is_null()) return std::nullopt;
  return node.number();
}

Frame read_frame(const Node& node, std::size_t modules) {
  Frame frame;
  if (const auto module = read_optional_number(node.at("module"))) {
    if (*module >= modules) node.at("module").expect("a position in modules, or null");
    frame.module = static_cast<std::size_t>(*module);
  }
  frame.offset = node.number("offset");
  frame.function = read_optional_text(node.at("function"));
  frame.file = read_optional_text(node.at("file"));
  frame.line = read_optional_number(node.at("line"));
  frame.is_inlined = node.boolean("inlined");
  return frame;
}

// Reports of schema 1.0 may lack the key.
std::optional<PythonPlace> read_python_place(const Node& parent) {
  if (!parent.has("python") || parent.at("python").is_null()) return std::nullopt;
  const Node node = parent.at("python");
  return PythonPlace{node.text("file"), read_optional_number(node.at("line")),
                     node.text("function")};
}

std::optional<Python> read_python(const Node& parent) {
  if (!parent.has("python") || parent.at("python").is_null()) return std::nullopt;
  const Node node = parent.at("python");
  return Python{node.text("version"), node.boolean("is_read"),
                read_optional_text(node.at("why_not"))};
}

Site read_site(const Node& node, std::size_t modules) {
  Site site;
  site.entry = node.text("entry");
  site.kind = read_kind(node);
  site.calls = node.number("calls");
  site.total_ns = node.number("total_ns");
  site.max_ns = node.number("max_ns");
  site.flushed = node.number("flushed");
  site.failed = node.number("failed");
  site.not_ready = node.number("not_ready");
  site.bytes = node.number("bytes");
  site.pageable_calls = node.number("pageable_calls");
  site.place = node.text("place");
  site.through = read_optional_text(node.at("through"));
  site.python = read_python_place(node);
  node.at("frames").each([&](const Node& frame) {  //
    site.frames.push_back(read_frame(frame, modules));
  });
  return site;
}

std::optional<Sites> read_sites(const Node& node) {
  if (node.is_null()) return std::nullopt;
  Sites sites;
  sites.walk = node.one_of("walk", {"libunwind", "frame pointers"});
  sites.has_symbols = node.boolean("has_symbols");
  const Node thresholds = node.at("thresholds_ns");
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    sites.thresholds_ns[i] = read_optional_number(thresholds.at(kKinds[i]));
  }
  sites.dropped_calls = node.number("dropped_calls");
  sites.python = read_python(node);
  node.at("modules").each([&](const Node& module) {
    sites.modules.push_back(
        {module.text("path"), module.text("build_id"), module.boolean("unloaded")});
  });
  node.at("list").each([&](const Node& site) {  //
    sites.list.push_back(read_site(site, sites.modules.size()));
  });
  return sites;
}

// A later minor version only adds keys.
void check_version(const Node& root) {
  if (!root.has("schema")) {
    throw Failure(std::string("no report: expected the key \"schema\" with \"") + kSchemaName +
                  "\"");
  }
  const std::string schema = root.text("schema");
  if (schema != kSchemaName) {
    throw Failure(std::string("schema: expected \"") + kSchemaName + "\", found \"" +
                  printable(schema).substr(0, 40) + "\"");
  }
  const std::string version = root.text("schema_version");
  if (version.substr(0, 2) != "1.") {
    throw Failure("schema_version: expected 1.x.x, found " + printable(version).substr(0, 40) +
                  "; read it with the cajeta-xpu of the library that wrote it");
  }
}

Report read_root(const Node& root) {
  check_version(root);
  Report report;
  report.tool_version = root.text("tool_version");
  report.written_at = root.one_of("written_at", {"exit", "snapshot", "signal"});
  report.process = read_process(root.at("process"));
  if (root.has("merged_from")) report.parts = read_parts(root.at("merged_from"));
  report.launches = read_launches(root.at("launches"));
  const Node flushes = root.at("flushes");
  report.flushes = flushes.number("total");
  report.flushes_by_entry = read_counted(flushes.at("by_entry"), "entry", "flushes");
  report.flushes_by_reason = read_counted(flushes.at("by_reason"), "reason", "flushes");
  root.at("entries").each([&](const Node& node) { report.entries.push_back(read_entry(node)); });
  report.sites = read_sites(root.at("sites"));
  report.unknown_entries = read_counted(root.at("unknown_entries"), "entry", "calls");
  report.lost_calls = root.number("lost_calls");
  return report;
}

// "[json.exception.parse_error.101] parse error at ...: syntax error while parsing value -
// unexpected end of input; expected ..." -> the words behind the dash.
std::string reason_of(const Json::parse_error& error) {
  const std::string message = error.what();
  const std::size_t dash = message.find(" - ");
  const std::size_t bracket = message.find("] ");
  const std::size_t start = dash != message.npos      ? dash + 3
                            : bracket != message.npos ? bracket + 2
                                                      : 0;
  return printable(message.substr(start)).substr(0, 160);
}

Report parse_unnamed(std::string_view text) {
  if (text.empty()) throw Failure("the file is empty; expected a JSON report");
  if (text.starts_with("cajeta-xpu ")) {
    throw Failure(
        "this is a text report; for JSON let CAJETA_XPU_REPORT name a file that ends in .json");
  }
  if (is_trace(text)) {
    throw Failure("this is a trace of the profiler; see cajeta-xpu profile summary, and export");
  }
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    throw Failure("byte " + std::to_string(error.byte) + ": broken JSON: " + reason_of(error));
  } catch (const Json::out_of_range&) {
    throw Failure("broken JSON: a number is too large; expected integers from 0 to 2^64-1");
  }
  return read_root(Node(json));
}

}  // namespace

Report parse_report(std::string_view text, const std::string& name) {
  try {
    Report report = parse_unnamed(text);
    report.file = name;
    log(LogLevel::kDebug, name + " is a report of process " + std::to_string(report.process.pid) +
                              ", " + grouped(report.entries.size()) + " entries");
    return report;
  } catch (const Failure& failure) {
    throw Failure(name + ": " + failure.what());
  }
}

Report read_report(const std::string& path) {
  return parse_report(read_input(path), input_name(path));
}

ReportFiles read_reports(const std::vector<std::string>& paths) {
  ReportFiles files;
  for (const std::string& path : paths) {
    try {
      files.reports.push_back(read_report(path));
    } catch (const Failure& failure) {
      log(LogLevel::kError, failure.what());
      ++files.unreadable;
    }
  }
  return files;
}

}  // namespace cli
