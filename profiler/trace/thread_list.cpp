// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/thread_list.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace profiler {
namespace {

// `struct linux_dirent64`, which no header has.
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];
};

void take_entries(const char* buffer, long bytes, void (*take)(void*, pid_t),
                  void* context) noexcept {
  for (long at = 0; at < bytes;) {
    std::uint16_t length;
    std::memcpy(&length, buffer + at + offsetof(Entry, bytes), sizeof length);
    const char* name = buffer + at + offsetof(Entry, name);
    if (*name >= '1' && *name <= '9') take(context, static_cast<pid_t>(std::atoi(name)));
    at += length;
  }
}

// The rest of the line that starts with `key`; null: there is none.
const char* find_line(const char* text, const char* key) noexcept {
  const std::size_t length = std::strlen(key);
  while (std::strncmp(text, key, length) != 0) {
    text = std::strchr(text, '\n');
    if (text == nullptr) return nullptr;
    ++text;
  }
  text += length;
  return text + std::strspn(text, "\t ");
}

}  // namespace

bool list_threads(void (*take)(void* context, pid_t tid), void* context) noexcept {
  const int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  alignas(8) char buffer[4096];
  long bytes;
  while ((bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
    take_entries(buffer, bytes, take, context);
  }
  close(directory);
  return bytes == 0;
}

bool read_thread_status(pid_t tid, ThreadStatus* status) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", static_cast<int>(tid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[4096];
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  if (bytes <= 0) return false;
  text[bytes] = 0;
  const char* name = find_line(text, "Name:");
  const char* blocked = find_line(text, "SigBlk:");
  const char* filter = find_line(text, "Seccomp:");
  status->is_filtered = filter != nullptr && *filter != '0';
  if (name == nullptr || blocked == nullptr) return false;
  std::size_t length = std::strcspn(name, "\n");
  if (length >= sizeof status->name) length = sizeof status->name - 1;
  std::memcpy(status->name, name, length);
  status->name[length] = 0;
  status->blocked_signals = std::strtoull(blocked, nullptr, 16);
  return true;
}

}  // namespace profiler
