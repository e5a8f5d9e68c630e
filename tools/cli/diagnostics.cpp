// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/diagnostics.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <array>

#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  return kLevels[static_cast<std::size_t>(level)];
}

// "debug, 1.234 ms later: " before what only -v shows; nothing before errors and warnings.
class Lead final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    if (message.level >= spdlog::level::warn) return;
    const std::chrono::duration<double, std::milli> step = message.time - last_;
    last_ = message.time;
    const auto name = spdlog::level::to_string_view(message.level);
    fmt::format_to(fmt::appender(out),
                   "{}, {:.3f} ms later: ", std::string_view(name.data(), name.size()),
                   step.count());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Lead>(*this);
  }

 private:
  spdlog::log_clock::time_point last_ = spdlog::log_clock::now();
};

class ErrorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    print_error({line.data(), line.size()});
  }
  void flush_() override {}
};

spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<Lead>('*').set_pattern("cajeta-xpu: %*%v");
    auto* const made = new spdlog::logger("cajeta-xpu", std::make_shared<ErrorSink>());
    made->set_formatter(std::move(formatter));
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

}  // namespace

const std::vector<std::string>& log_level_names() {
  static const std::vector<std::string> names = {"trace", "debug", "info", "warn", "error", "off"};
  return names;
}

void set_log_level(LogLevel level) {
  logger().set_level(spdlog_level(level));
}

void log(LogLevel level, const std::string& line) {
  if (!logger().should_log(spdlog_level(level))) return;
  // What -v shows has names of files in it, and values of variables.
  logger().log(spdlog_level(level), level < LogLevel::kWarn ? printable(line) : line);
}

}  // namespace cli
