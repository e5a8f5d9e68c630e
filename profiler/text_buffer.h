// SPDX-License-Identifier: Apache-2.0
// Bounded text in memory that the caller gives: what does not fit is cut, never written past the
// end. One thread.
#pragma once

#include <cstddef>

namespace profiler {

class TextBuffer {
 public:
  // `capacity` counts the closing zero byte and is at least 1.
  TextBuffer(char* memory, std::size_t capacity) noexcept;
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...) noexcept;
  // Adds `item` to a list "a | b | c", with a new line and `indent` blanks where the line would
  // pass `width`.
  void append_item(const char* item, std::size_t indent, std::size_t width,
                   bool* is_first) noexcept;

  // Adds `text` and ends the line: behind what is there if it fits into `width`, else on a line of
  // its own, indented, and cut to `width`.
  void append_behind(const char* text, std::size_t indent, std::size_t width) noexcept;

  // Ends the line, cut to `width` columns if it is longer.
  void end_line(std::size_t width) noexcept;

  const char* text() const noexcept { return memory_; }
  std::size_t size() const noexcept { return size_; }
  bool is_cut() const noexcept { return is_cut_; }

 private:
  std::size_t column() const noexcept;

  char* memory_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool is_cut_ = false;
};

// 2036380 -> "2,036,380". The text lives in the returned object.
struct Grouped {
  explicit Grouped(unsigned long long number) noexcept;
  char text[28];
};

// Nanoseconds as people read them. Totals keep three decimals (7.420 s, 520.000 ms), single calls
// three digits (0.45 us, 298 us, 1.18 ms).
struct TotalTime {
  explicit TotalTime(double ns) noexcept;
  char text[28];
};
struct CallTime {
  explicit CallTime(double ns) noexcept;
  char text[28];
};

// Bytes in binary units, three digits: 4 B, 1.50 KiB, 23.4 MiB.
struct Bytes {
  explicit Bytes(double bytes) noexcept;
  char text[28];
};

}  // namespace profiler
