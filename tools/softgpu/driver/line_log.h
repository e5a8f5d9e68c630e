// SPDX-License-Identifier: Apache-2.0
// Lines of text to a descriptor, by an spdlog logger of this library's own: spdlog's registry,
// where the program may have loggers, is not touched, and nothing of it is visible outside. Each
// line is one write call, so that a killed process leaves whole lines and a fork has nothing to
// repeat; no lock is held, which a child of a fork could find taken. Never destroyed. Any thread.
#pragma once

#include <string_view>

namespace softgpu {

class LineLog {
 public:
  // `lead` stands before each line.
  LineLog(int file, std::string_view lead);
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // A line that cannot be written is lost: a full disk must not end the client.
  void write(std::string_view line) const noexcept;

 private:
  struct Implementation;  // the one that knows spdlog
  Implementation* const implementation_;
};

// "softgpu: " and the message on standard error. Where that is a pipe without reader, the client
// gets no signal from it.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

}  // namespace softgpu
