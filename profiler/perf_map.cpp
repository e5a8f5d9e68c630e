// SPDX-License-Identifier: Apache-2.0
#include "profiler/perf_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace profiler {
namespace {

// The map as it is now; empty when there is none that is ours.
class PerfMap {
 public:
  explicit PerfMap(int pid) noexcept {
    char path[32];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return;
    struct stat status {};
    // /tmp is everybody's: believe the owner of the process alone.
    const bool is_ours = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_uid == geteuid() && status.st_size > 0;
    if (is_ours) {
      const auto size = static_cast<std::size_t>(status.st_size);
      void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory != MAP_FAILED) {
        text_ = static_cast<const char*>(memory);
        size_ = size;
      }
    }
    close(file);
  }
  ~PerfMap() {
    if (text_ != nullptr) munmap(const_cast<char*>(text_), size_);
  }
  PerfMap(const PerfMap&) = delete;
  PerfMap& operator=(const PerfMap&) = delete;

  const char* begin() const noexcept { return text_; }
  const char* end() const noexcept { return text_ + size_; }

 private:
  const char* text_ = nullptr;
  std::size_t size_ = 0;
};

bool read_hex(const char** at, const char* end, std::uint64_t* number) noexcept {
  *number = 0;
  const char* start = *at;
  for (; *at != end; ++*at) {
    const char digit = **at;
    unsigned value;
    if (digit >= '0' && digit <= '9') {
      value = static_cast<unsigned>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = static_cast<unsigned>(digit - 'a' + 10);
    } else if (digit >= 'A' && digit <= 'F') {
      value = static_cast<unsigned>(digit - 'A' + 10);
    } else {
      break;
    }
    *number = *number * 16 + value;
  }
  const bool is_number = *at != start && *at - start <= 16 && *at != end && **at == ' ';
  if (is_number) ++*at;
  return is_number;
}

struct Search {
  std::uintptr_t address;
  char* name;
  std::size_t capacity;
  bool is_found;
};

void take_match(void* context, std::uintptr_t start, std::uint64_t size,
                std::string_view name) noexcept {
  auto* search = static_cast<Search*>(context);
  if (search->address < start || search->address - start >= size) return;
  name = name.substr(0, search->capacity - 1);
  std::memcpy(search->name, name.data(), name.size());
  search->name[name.size()] = '\0';
  search->is_found = !name.empty();
}

}  // namespace

bool find_in_perf_map(int pid, std::uintptr_t address, char* name, std::size_t capacity) noexcept {
  Search search{address, name, capacity, false};
  read_perf_map(pid, take_match, &search);
  return search.is_found;
}

void read_perf_map(int pid,
                   void (*take)(void* context, std::uintptr_t start, std::uint64_t size,
                                std::string_view name),
                   void* context) noexcept {
  const PerfMap map(pid);
  for (const char* at = map.begin(); at != map.end();) {
    const auto left = static_cast<std::size_t>(map.end() - at);
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', left));
    const char* end = newline != nullptr ? newline : map.end();
    std::uint64_t start = 0, size = 0;
    if (read_hex(&at, end, &start) && read_hex(&at, end, &size)) {
      take(context, start, size, {at, static_cast<std::size_t>(end - at)});
    }
    at = newline != nullptr ? newline + 1 : map.end();
  }
}

}  // namespace profiler
