// SPDX-License-Identifier: Apache-2.0
// Reads traces. Anything that softgpu would not write is an error with its line number.
#include "tools/softgpu/compare/trace.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "tools/softgpu/trace_format.h"

namespace softgpu::compare {

namespace {

// Takes the text up to `separator`, or all of it, off the front of `rest`.
std::string_view take(std::string_view* rest, char separator) {
  const std::size_t end = rest->find(separator);
  const std::string_view taken = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return taken;
}

template <class Number>
bool parse_number(std::string_view text, Number* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

bool parse_stream(std::string_view text, std::uint64_t* stream) {
  std::uint32_t context = 0, number = 0;
  if (!parse_number(take(&text, '.'), &context) || !parse_number(text, &number)) return false;
  *stream = std::uint64_t{context} << 32 | number;
  return true;
}

bool parse_kind(char letter, AccessKind* kind) {
  switch (letter) {
    case 'r':
      *kind = AccessKind::kRead;
      return true;
    case 'w':
      *kind = AccessKind::kWrite;
      return true;
    case 'u':
      *kind = AccessKind::kUpdate;
      return true;
    default:
      return false;
  }
}

bool parse_accesses(std::string_view text, std::vector<Access>* accesses) {
  if (text == "-") return true;
  while (!text.empty()) {
    std::string_view ranges = take(&text, ';');
    std::string_view head = take(&ranges, ':');
    Access access;
    if (head.empty() || ranges.empty() || !parse_kind(head[0], &access.kind)) return false;
    if (!parse_number(head.substr(1), &access.allocation)) return false;
    while (!ranges.empty()) {
      std::string_view range = take(&ranges, ',');
      if (!parse_number(take(&range, '-'), &access.first)) return false;
      access.last = access.first;
      if (!range.empty() && !parse_number(range, &access.last)) return false;
      if (access.last < access.first) return false;
      accesses->push_back(access);
    }
  }
  return true;
}

class Parser {
 public:
  explicit Parser(Trace* trace) : trace_(*trace) {}

  bool parse(std::string* error) {
    std::string_view rest = trace_.content;
    if (rest.empty()) return fail(error, "is empty");
    if (take(&rest, '\n') != kTraceHeader) {
      return fail(error,
                  "is not a trace: it does not start with '" + std::string(kTraceHeader) + "'");
    }
    if (trace_.content.back() != '\n') {
      return fail(error, "is truncated: its last line is not whole");
    }
    for (std::size_t number = 2; !rest.empty(); ++number) {
      const std::string_view line = take(&rest, '\n');
      if (!parse_line(line)) {
        return fail(error, "line " + std::to_string(number) + " is not a record: '" +
                               std::string(line.substr(0, 100)) + "'");
      }
    }
    return true;
  }

 private:
  static bool fail(std::string* error, std::string text) {
    *error = std::move(text);
    return false;
  }

  bool parse_line(std::string_view line) {
    if (line.size() < 2 || line[1] != ' ') return false;
    const char kind = line[0];
    line.remove_prefix(2);
    switch (kind) {
      case 'O':
        return parse_submitted(line);
      case 'S':
        return parse_step(line);
      case 'D':
        return parse_done(line);
      case 'B':
        return parse_begin(line);
      case 'E':
        return parse_end(line);
      case 'Q':
        return parse_query(line);
      default:
        return false;
    }
  }

  // The index of an operation that exists.
  bool parse_known(std::string_view text, OperationIndex* index) const {
    if (!parse_number(text, index)) return false;
    return (*index)-- - 1 < trace_.operations.size();
  }
  bool parse_list(std::string_view text, std::vector<OperationIndex>* list) const {
    if (text == "-") return true;
    while (!text.empty()) {
      OperationIndex index = 0;
      if (!parse_known(take(&text, ','), &index)) return false;
      list->push_back(index);
    }
    return !list->empty();
  }

  // c<context>,c<context>...
  static bool parse_contexts(std::string_view text, std::vector<std::uint64_t>* contexts) {
    while (!text.empty()) {
      const std::string_view one = take(&text, ',');
      std::uint64_t context = 0;
      if (one.empty() || one[0] != 'c') return false;
      if (!parse_number(one.substr(1), &context) || context == 0) return false;
      contexts->push_back(context);
    }
    return !contexts->empty();
  }

  bool parse_submitted(std::string_view line) {
    Operation operation;
    OperationIndex number = 0;
    if (!parse_number(take(&line, ' '), &number)) return false;
    if (number != trace_.operations.size() + 1) return false;
    if (!parse_number(take(&line, ' '), &operation.thread)) return false;
    if (!parse_number(take(&line, ' '), &operation.context)) return false;
    const std::string_view stream = take(&line, ' '), sequence = take(&line, ' ');
    operation.has_identity = stream != "-";
    if (operation.has_identity) {
      if (!parse_stream(stream, &operation.stream)) return false;
      if (!parse_number(sequence, &operation.sequence)) return false;
    }
    if (!parse_list(take(&line, ' '), &operation.after)) return false;
    operation.text = line;
    if (operation.has_identity) ++submitted_[operation.stream];
    trace_.events.push_back({Event::Kind::kSubmit, number - 1});
    trace_.operations.push_back(std::move(operation));
    return true;
  }

  bool parse_done(std::string_view line) {
    OperationIndex index = 0;
    if (!parse_known(take(&line, ' '), &index)) return false;
    Operation& operation = trace_.operations[index];
    const std::string_view how = take(&line, ' ');
    if (operation.outcome != Outcome::kPending || (how != "done" && how != "skipped")) return false;
    operation.outcome = how == "done" ? Outcome::kDone : Outcome::kSkipped;
    operation.access_text = line;
    return !line.empty() && parse_accesses(line, &operation.accesses);
  }

  bool parse_step(std::string_view line) {
    OperationIndex index = 0;
    if (!parse_known(take(&line, ' '), &index)) return false;
    if (trace_.operations[index].outcome != Outcome::kPending) return false;
    std::vector<Access> accesses;  // those of the whole operation count
    if (!parse_accesses(take(&line, ' '), &accesses) || line.empty()) return false;
    trace_.operations[index].steps.push_back(line);
    return true;
  }

  bool parse_begin(std::string_view line) {
    std::uint64_t number = 0;
    Wait wait;
    if (!parse_number(take(&line, ' '), &number)) return false;
    if (!parse_number(take(&line, ' '), &wait.thread)) return false;
    wait.entry = take(&line, ' ');
    if (!line.empty() && line[0] == 'c') {
      if (!parse_contexts(line, &wait.contexts)) return false;
    } else if (!parse_list(line, &wait.goals)) {
      return false;
    }
    const auto index = static_cast<std::uint32_t>(trace_.waits.size());
    if (!open_waits_.emplace(number, index).second) return false;
    trace_.events.push_back({Event::Kind::kBeginWait, index});
    trace_.waits.push_back(std::move(wait));
    return true;
  }

  bool parse_end(std::string_view line) {
    std::uint64_t number = 0;
    if (!parse_number(line, &number)) return false;
    const auto found = open_waits_.find(number);
    if (found == open_waits_.end()) return false;
    trace_.waits[found->second].is_over = true;
    trace_.events.push_back({Event::Kind::kEndWait, found->second});
    open_waits_.erase(found);
    return true;
  }

  bool parse_query(std::string_view line) {
    Wait wait;
    wait.is_query = true;
    if (!parse_number(take(&line, ' '), &wait.thread)) return false;
    wait.entry = take(&line, ' ');
    wait.object = take(&line, ' ');
    std::uint64_t stream = 0;
    if (wait.object.starts_with('s') && parse_stream(wait.object.substr(1), &stream)) {
      wait.submitted = submitted_[stream];
    }
    const std::string_view answer = take(&line, ' ');
    if (answer != "yes" && answer != "no") return false;
    wait.is_over = answer == "yes";
    if (!parse_list(line, &wait.goals)) return false;
    trace_.events.push_back({Event::Kind::kQuery, static_cast<std::uint32_t>(trace_.waits.size())});
    trace_.waits.push_back(std::move(wait));
    return true;
  }

  Trace& trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> open_waits_;
  std::unordered_map<std::uint64_t, std::uint64_t> submitted_;  // by stream
};

}  // namespace

bool parse_trace(std::string content, Trace* trace, std::string* error) {
  *trace = Trace();
  trace->content = std::move(content);
  return Parser(trace).parse(error);
}

bool read_trace(const std::string& path, Trace* trace, std::string* error) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    *error = std::strerror(errno);
    return false;
  }
  std::string content;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    content.append(buffer, count);
  }
  if (std::ferror(file.get()) != 0) {
    *error = std::strerror(errno);
    return false;
  }
  return parse_trace(std::move(content), trace, error);
}

}  // namespace softgpu::compare
