// SPDX-License-Identifier: Apache-2.0
// JSON through a small buffer: no allocation, no exceptions, never ends the process, so
// that it works in a foreign process at its exit or inside a signal handler. (nlohmann_json without
// exceptions aborts the process when memory runs out or a string is not UTF-8.) One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

class JsonWriter {
 public:
  // All of `bytes`, or false with errno.
  using Write = bool (*)(void* to, const char* bytes, std::size_t size) noexcept;

  // Writes to `file`, which stays open, and waits for its readers.
  explicit constexpr JsonWriter(int file) noexcept : file_(file) {}
  // The same object again, for the next text, by a way of the caller's own.
  void start(Write write, void* to) noexcept;

  // `key` is null inside an array and for the outermost value.
  void begin_object(const char* key = nullptr) noexcept { open(key, '{'); }
  void end_object() noexcept { close('}'); }
  void begin_array(const char* key = nullptr) noexcept { open(key, '['); }
  void end_array() noexcept { close(']'); }
  void number(const char* key, std::uint64_t value) noexcept;
  void signed_number(const char* key, std::int64_t value) noexcept;
  void boolean(const char* key, bool value) noexcept;
  void null(const char* key) noexcept;
  // Bytes that are not UTF-8 become U+FFFD.
  void text(const char* key, const char* value) noexcept;

  // Writes what is buffered. False if anything since the start could not be written; errno says
  // why.
  [[nodiscard]] bool finish() noexcept;

 private:
  void open(const char* key, char bracket) noexcept;
  void close(char bracket) noexcept;
  void begin_value(const char* key) noexcept;
  void quote(const char* value) noexcept;
  void put(const char* bytes, std::size_t size) noexcept;
  void put(const char* text) noexcept;
  void flush() noexcept;

  int file_;  // without `write_`
  Write write_ = nullptr;
  void* to_ = nullptr;
  int depth_ = 0;
  int error_ = 0;
  bool is_first_ = true;  // in the innermost bracket
  std::size_t size_ = 0;
  char buffer_[4096] = {};
};

// All of it, however long readers take: for tools. False with errno.
[[nodiscard]] bool write_all(int file, const char* bytes, std::size_t size) noexcept;

}  // namespace profiler
