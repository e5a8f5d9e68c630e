// SPDX-License-Identifier: Apache-2.0
#include "profiler/python_code.h"

#include <cstring>

namespace profiler {
namespace {

// Kinds of entries of a location table, as far as they differ in what they say of the line.
constexpr unsigned kFirstOneLine = 10;  // ten to twelve: zero to two lines further
constexpr unsigned kNoColumn = 13;
constexpr unsigned kLong = 14;
constexpr unsigned kNoLocation = 15;
constexpr std::size_t kCodeUnit = 2;  // bytes

constexpr char32_t kReplacement = 0xFFFD;

// Six bits a byte, the low ones first, bit 6: one more follows; the lowest bit is the sign.
int read_signed(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  std::uint32_t value = 0;
  for (unsigned shift = 0; at < end && shift < 30; shift += 6) {
    value |= static_cast<std::uint32_t>(*at & 63) << shift;
    if ((*at++ & 64) == 0) break;
  }
  const int size = static_cast<int>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

int line_delta(unsigned kind, const std::uint8_t* at, const std::uint8_t* end) noexcept {
  if (kind == kNoColumn || kind == kLong) return read_signed(at, end);
  return kind >= kFirstOneLine && kind < kNoColumn ? static_cast<int>(kind - kFirstOneLine) : 0;
}

char32_t character_at(const void* characters, std::size_t index, unsigned bytes_each) noexcept {
  const auto* bytes = static_cast<const std::uint8_t*>(characters) + index * bytes_each;
  if (bytes_each == 1) return *bytes;
  if (bytes_each == 2) {
    std::uint16_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Bytes written to `out`, which has room for four.
std::size_t encode(char32_t c, char* out) noexcept {
  if (c < 0x20 || c == 0x7F) c = ' ';
  // Surrogates stand for bytes of a name that is no UTF-8.
  if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) c = kReplacement;
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const std::size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (std::size_t i = size - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (c & 0x3F));
    c >>= 6;
  }
  out[0] = static_cast<char>((0xF00u >> size & 0xFFu) | c);
  return size;
}

}  // namespace

int line_of_instruction(const std::uint8_t* table, std::size_t bytes, int first_line,
                        std::size_t offset) noexcept {
  const std::uint8_t* const end = table + bytes;
  std::size_t reached = 0;
  std::int64_t line = first_line;
  for (const std::uint8_t* at = table; at < end;) {
    if ((*at & 0x80) == 0) return 0;  // every entry begins with a byte that has this bit
    const unsigned kind = *at >> 3 & 15;
    reached += (static_cast<std::size_t>(*at & 7) + 1) * kCodeUnit;
    const std::uint8_t* next = ++at;
    while (next < end && (*next & 0x80) == 0) ++next;
    line += line_delta(kind, at, next);
    if (offset < reached) {
      return kind == kNoLocation || line <= 0 || line > INT32_MAX ? 0 : static_cast<int>(line);
    }
    at = next;
  }
  return 0;
}

void write_utf8(const void* characters, std::size_t count, unsigned bytes_each, char* text,
                std::size_t capacity) noexcept {
  if (capacity == 0) return;
  std::size_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    char encoded[4];
    const std::size_t size = encode(character_at(characters, i, bytes_each), encoded);
    if (size >= capacity - used) break;
    std::memcpy(text + used, encoded, size);
    used += size;
  }
  text[used] = '\0';
}

bool is_wrapper_path(std::string_view path) noexcept {
  constexpr std::string_view kInstalled = "-packages/";
  constexpr std::string_view kPackages[] = {
      "cuda/",       "numba/",    "numba_cuda/", "cupy/",   "cupyx/",  "cupy_backends/",
      "pycuda/",     "torch/",    "jax/",        "jaxlib/", "triton/", "warp/",
      "tensorflow/", "tinygrad/", "rmm/",        "nvmath/"};
  const std::size_t installed = path.rfind(kInstalled);
  if (installed != path.npos) {
    const std::string_view inside = path.substr(installed + kInstalled.size());
    for (const std::string_view package : kPackages) {
      if (inside.starts_with(package)) return true;
    }
    return false;
  }
  const std::size_t library = path.rfind("/python3");
  if (library == path.npos) return false;
  const std::size_t inside = path.find('/', library + 1);
  return inside != path.npos && path.substr(inside).starts_with("/ctypes/");
}

bool is_python_bridge(std::string_view path) noexcept {
  constexpr std::string_view kNames[] = {"libffi.so", "_ctypes.", "_cffi_backend.", "libpython3",
                                         "python3"};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view known : kNames) {
    if (name.starts_with(known)) return true;
  }
  return is_wrapper_path(path);
}

}  // namespace profiler
