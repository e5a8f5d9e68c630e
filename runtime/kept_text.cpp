// SPDX-License-Identifier: Apache-2.0
#include "runtime/kept_text.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace runtime {
namespace {

// Stays reachable; settings are read more than once by tests alone.
struct Kept {
  Kept* next;
  char text[1];
};
constinit std::atomic<Kept*> g_kept{nullptr};

char* keep_bytes(std::size_t bytes) noexcept {
  auto* kept = static_cast<Kept*>(malloc(sizeof(Kept) + bytes));
  if (kept == nullptr) return nullptr;
  kept->next = g_kept.load(std::memory_order_relaxed);
  while (!g_kept.compare_exchange_weak(kept->next, kept)) {
  }
  return kept->text;
}

// `folder` and a slash, each % twice if `is_pattern`; its length. Null `out`: only that.
std::size_t put_folder(const char* folder, bool is_pattern, char* out) noexcept {
  std::size_t size = 0;
  const auto put = [&](char c) noexcept {
    if (out != nullptr) out[size] = c;
    ++size;
  };
  for (const char* in = folder; *in != '\0'; ++in) {
    put(*in);
    if (*in == '%' && is_pattern) put('%');
  }
  if (size == 0 || folder[std::strlen(folder) - 1] != '/') put('/');
  return size;
}

const char* keep_in_folder(const char* folder, const char* path, bool is_pattern) noexcept {
  const std::size_t length = std::strlen(path);
  if (folder[0] != '/' || std::strlen(folder) + 1 + length >= PATH_MAX) return keep_text(path);
  const std::size_t size = put_folder(folder, is_pattern, nullptr);
  char* kept = keep_bytes(size + length + 1);
  if (kept == nullptr) return nullptr;
  put_folder(folder, is_pattern, kept);
  std::memcpy(kept + size, path, length + 1);
  return kept;
}

}  // namespace

const char* keep_text(const char* text) noexcept {
  const int saved_errno = errno;
  const std::size_t size = std::strlen(text) + 1;
  char* kept = keep_bytes(size);
  if (kept != nullptr) std::memcpy(kept, text, size);
  errno = saved_errno;
  return kept;
}

const char* keep_path(const char* path, bool is_pattern) noexcept {
  if (path[0] == '/') return keep_text(path);
  const int saved_errno = errno;
  // Allocated: the caller's stack may be small.
  char* folder = getcwd(nullptr, 0);
  const char* kept = keep_in_folder(folder != nullptr ? folder : "", path, is_pattern);
  free(folder);
  errno = saved_errno;
  return kept;
}

}  // namespace runtime
