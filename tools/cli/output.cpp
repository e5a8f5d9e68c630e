// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "profiler/text_buffer.h"
#include "runtime/write_shield.h"
#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"

namespace cli {

void print_error(std::string_view text) {
  (void)runtime::write_shielded(STDERR_FILENO, text.data(), text.size());  // nobody is left to tell
}

void say(const std::string& line) {
  log(LogLevel::kWarn, line);
}

void print(std::string_view text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_written || std::fflush(stdout) != 0) throw Failure("cannot write to standard output");
}

bool wants_colour(int file) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return isatty(file) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string printable(std::string_view text) {
  std::string clean(text);
  for (char& byte : clean) {
    if (static_cast<unsigned char>(byte) < ' ' || byte == 0x7f) byte = '?';
  }
  return clean;
}

std::string format(const char* pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

std::string grouped(std::uint64_t number) {
  return profiler::Grouped(number).text;
}
std::string total_time(double ns) {
  return profiler::TotalTime(ns).text;
}
std::string call_time(double ns) {
  return profiler::CallTime(ns).text;
}
std::string bytes_text(double bytes) {
  return profiler::Bytes(bytes).text;
}
double percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

}  // namespace cli
