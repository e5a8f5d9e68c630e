// SPDX-License-Identifier: Apache-2.0
// Text to people: lines on standard error, pages on standard output, numbers. No locale: the C one
// stays in force. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

inline constexpr std::size_t kWidth = 100;

// Standard error, where it can be written. A reader that has gone ends neither this command nor the
// program that it runs.
void print_error(std::string_view text);

// "cajeta-xpu: LINE" on standard error, unless --log-level is above warn.
void say(const std::string& line);

// Standard output; a Failure when it cannot be written.
void print(std::string_view text);

// Whether a page on standard output, or a line on standard error, may have colour: a terminal,
// and no NO_COLOR.
bool wants_colour(int file);

// Control characters, which a hostile file could use against the terminal, become '?'.
std::string printable(std::string_view text);

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// As the report at exit writes them.
std::string grouped(std::uint64_t number);
std::string total_time(double ns);
std::string call_time(double ns);
std::string bytes_text(double bytes);
double percent(double part, double whole);

inline double to_double(std::uint64_t number) {
  return static_cast<double>(number);
}

}  // namespace cli
