// SPDX-License-Identifier: Apache-2.0
// Nobody asks for the thread: looking it up would take a thread-local variable and a system call.
#define SPDLOG_NO_THREAD_ID

#include "tools/softgpu/driver/line_log.h"

#include <signal.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "tools/softgpu/driver/output_file.h"

namespace softgpu {
namespace {

class DescriptorSink final : public spdlog::sinks::sink {
 public:
  DescriptorSink(int file, std::string_view lead) : file_(file) {
    std::string pattern;
    for (const char byte : lead) pattern += byte == '%' ? "%%" : std::string(1, byte);
    set_pattern(pattern + "%v");
  }

  void log(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);  // keeps nothing: the pattern has no time
    write_fully(file_, {line.data(), line.size()});
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    formatter_ = std::move(formatter);
  }

 private:
  const int file_;
  std::unique_ptr<spdlog::formatter> formatter_;
};

// While it lives, a pipe without reader and a file at its limit are errors of write(2) alone.
class QuietSignals {
 public:
  QuietSignals() {
    sigemptyset(&ours_);
    sigaddset(&ours_, SIGPIPE);
    sigaddset(&ours_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    sigset_t pending;
    sigpending(&pending);
    for (const int number : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending, number) == 1) sigdelset(&ours_, number);
    }
  }
  ~QuietSignals() {
    const timespec at_once{0, 0};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t ours_, before_;
};

}  // namespace

struct LineLog::Implementation {
  spdlog::logger logger;
};

LineLog::LineLog(int file, std::string_view lead)
    : implementation_(new Implementation{
          spdlog::logger("softgpu", std::make_shared<DescriptorSink>(file, lead))}) {
  // Its own would write to standard error.
  implementation_->logger.set_error_handler([](const std::string&) {});
}

void LineLog::write(std::string_view line) const noexcept {
  // At no time: what is logged here is the same in every run.
  implementation_->logger.log(spdlog::log_clock::time_point{}, spdlog::source_loc{},
                              spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

void say(const char* format, ...) noexcept {
  const QuietSignals signals;
  va_list arguments;
  va_start(arguments, format);
  try {
    static const LineLog* const messages = new LineLog(STDERR_FILENO, "softgpu: ");
    va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    std::string line(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    std::vsnprintf(line.data(), line.size() + 1, format, arguments);
    messages->write(line);
  } catch (...) {
    // No memory for it: nobody is told.
  }
  va_end(arguments);
}

}  // namespace softgpu
