// SPDX-License-Identifier: Apache-2.0
// Formats and writes trace records, one write call a line. Driver lock held.

#include "tools/softgpu/driver/trace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "tools/softgpu/driver/engine.h"
#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/event.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/output_file.h"
#include "tools/softgpu/driver/stream.h"
#include "tools/softgpu/trace_format.h"

namespace softgpu {
namespace {

struct TraceFile {
  int descriptor = -1;
  pid_t owner = 0;

  TraceFile() {
    if (options().trace_path.empty()) return;
    descriptor = open_output(options().trace_path, O_WRONLY | O_APPEND);
    owner = getpid();
    if (descriptor >= 0) write_fully(descriptor, std::string(kTraceHeader) + '\n');
  }
};

const TraceFile& trace_file() {
  static const TraceFile* const file = new TraceFile();
  return *file;
}

void write_line(std::string line) {
  if (getpid() != trace_file().owner) return;
  line += '\n';
  write_fully(trace_file().descriptor, line);
}

// Grows with the creation of threads: thread ids do, until they start again at the bottom.
std::string thread_rank() {
  constexpr long kWrapped = 1l << 30;
  thread_local const long rank = [] {
    const long distance = syscall(SYS_gettid) - getpid();
    return distance >= 0 ? distance : distance + kWrapped;
  }();
  return std::to_string(rank);
}

std::string entry_name() {
  const std::optional<EntryId> entry = Call::current();
  return entry.has_value() ? row(*entry).symbol : "-";
}

std::string stream_name(std::uint64_t ordinal) {
  return std::to_string(ordinal >> 32) + '.' + std::to_string(ordinal & 0xffffffff);
}

std::string list(const Goals& operations) {
  std::string text;
  for (const auto& operation : operations) {
    if (!text.empty()) text += ',';
    text += std::to_string(operation->trace->number);
  }
  return text.empty() ? "-" : text;
}

std::string begin_wait(std::uint64_t* number, const std::string& goals) {
  static std::uint64_t last = 0;
  *number = ++last;
  return "B " + std::to_string(*number) + ' ' + thread_rank() + ' ' + entry_name() + ' ' + goals;
}

void write_query(const std::string& object, const Goals& goals, bool is_done) {
  write_line("Q " + thread_rank() + ' ' + entry_name() + ' ' + object +
             (is_done ? " yes " : " no ") + list(goals));
}

}  // namespace

bool is_tracing() {
  return trace_file().descriptor >= 0;
}

std::unique_ptr<OperationTrace> new_operation_trace() {
  return is_tracing() ? std::make_unique<OperationTrace>() : nullptr;
}

void trace_submitted(const Operation& operation) {
  static std::uint64_t last = 0;
  OperationTrace& trace = *operation.trace;
  trace.number = ++last;
  std::string line = "O " + std::to_string(trace.number) + ' ' + thread_rank() + ' ' +
                     std::to_string(operation.context->ordinal);
  if (trace.has_identity) {
    line += ' ' + stream_name(trace.stream_ordinal) + ' ' + std::to_string(trace.sequence);
  } else {
    line += " - -";
  }
  line += ' ' + list(operation.dependencies) + ' ';
  line.append(operation.text());
  write_line(std::move(line));
}

void trace_done(const Operation& operation) {
  write_line("D " + std::to_string(operation.trace->number) +
             (operation.was_skipped ? " skipped " : " done ") + operation.trace->footprint.text());
}

void trace_step(const Operation& operation, std::string_view text, const ptx::Footprint& accesses) {
  std::string line = "S " + std::to_string(operation.trace->number) + ' ' + accesses.text() + ' ';
  line.append(text);
  write_line(std::move(line));
}

TracedWait::TracedWait(const Goal& goal) {
  if (is_tracing()) write_line(begin_wait(&number_, list({goal})));
}

TracedWait::TracedWait(const Goals& goals) {
  if (is_tracing()) write_line(begin_wait(&number_, list(goals)));
}

TracedWait::TracedWait(const Context& context) {
  if (!is_tracing()) return;
  std::string goals;
  for (const auto& one : contexts().all()) {
    if (!one->is_alive || !covers(context, *one)) continue;
    if (!goals.empty()) goals += ',';
    goals += 'c' + std::to_string(one->ordinal);
  }
  write_line(begin_wait(&number_, goals));
}

TracedWait::~TracedWait() {
  if (number_ != 0) write_line("E " + std::to_string(number_));
}

void trace_query(const Stream& stream, const Goals& goals, bool is_done) {
  if (is_tracing()) write_query('s' + stream_name(stream.ordinal), goals, is_done);
}

void trace_query(const Event& event, const Goal& record, bool is_done) {
  if (is_tracing()) write_query('e' + std::to_string(event.ordinal), {record}, is_done);
}

}  // namespace softgpu
