// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_start.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

extern "C" char** environ;

namespace runtime {
namespace {

constexpr std::string_view kPrefix = "CAJETA_";
// The driver's own, and what launchers of distributed programs set (profiler/report_path.cpp).
constexpr std::string_view kOthers[] = {"CUDA_LAUNCH_BLOCKING",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK",
                                        "PMIX_RANK",
                                        "SLURM_PROCID",
                                        "RANK"};

constinit ProcessStart g_start;
constinit Environment g_at_load;
// Where each entry of g_at_load lay.
constinit const char* g_places[Environment::kMostEntries];

// Tells memory from what is none by what the kernel says of it: EFAULT, or EINVAL for an operation
// that there is not. Every sandbox allows the call.
class Reader {
 public:
  bool can_read(const void* address) noexcept {
    const auto page = reinterpret_cast<std::uintptr_t>(address) / kPage;
    if (page == page_) return true;
    constexpr int kNoOperation = -1;
    constexpr std::size_t kSetBytes = 8;
    const auto aligned = reinterpret_cast<std::uintptr_t>(address) & ~(kSetBytes - 1);
    if (syscall(SYS_rt_sigprocmask, kNoOperation, aligned, nullptr, kSetBytes) != 0 &&
        errno == EFAULT) {
      return false;
    }
    page_ = page;
    return true;
  }
  // The length of the copy, which ends in a zero byte; `capacity` if it does not fit, or cannot be
  // read.
  // Not for a sanitizer to judge: it may be memory that the program gives back at this moment.
  [[gnu::no_sanitize_address, gnu::no_sanitize_thread]] std::size_t copy(
      const char* from, char* to, std::size_t capacity) noexcept {
    for (std::size_t length = 0; length < capacity; ++length) {
      if (!can_read(from + length)) break;
      to[length] = *static_cast<const volatile char*>(from + length);
      if (to[length] == '\0') return length;
    }
    return capacity;
  }

 private:
  static constexpr std::uintptr_t kPage = 4096;  // or a part of one
  std::uintptr_t page_ = UINTPTR_MAX;            // the last one that is memory
};

std::string_view name_of(const char* entry) noexcept {
  const std::string_view text(entry);
  return text.substr(0, text.find('='));
}

bool is_of_interest(std::string_view entry) noexcept {
  if (entry.starts_with(kPrefix)) return entry.find('=') != entry.npos;
  for (const std::string_view other : kOthers) {
    if (entry.starts_with(other) && entry.substr(other.size()).starts_with('=')) return true;
  }
  return false;
}

// What lay there when the library was loaded; null: nothing of interest.
const char* entry_at_load(const char* place) noexcept {
  for (std::size_t i = 0; i < g_at_load.count; ++i) {
    if (g_places[i] == place) return g_at_load.entries[i];
  }
  return nullptr;
}

void add(const char* entry, std::size_t length, const char* place, Environment* into) noexcept {
  const char* kept = into->count < Environment::kMostEntries ? into->keep(entry, length) : nullptr;
  if (kept == nullptr) {
    into->is_cut = true;
    return;
  }
  if (into == &g_at_load) g_places[into->count] = place;
  into->entries[into->count++] = kept;
}

void take_entry(Reader& reader, const char* place, Environment* into) noexcept {
  const char* before = entry_at_load(place);
  char* room = into->text + into->used;
  const std::size_t capacity = sizeof into->text - into->used;
  std::size_t length = capacity != 0 ? reader.copy(place, room, capacity) : capacity;
  const bool is_whole = length < capacity;
  if (!is_whole && capacity != 0) room[capacity - 1] = '\0';
  if (before != nullptr && (!is_whole || name_of(room) != name_of(before))) {
    return add(before, std::strlen(before), place, into);
  }
  if (!is_whole) {
    into->is_cut |= capacity != 0 && is_of_interest(room);
  } else if (is_of_interest({room, length})) {
    add(room, length, place, into);
  }
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] void take_environment(
    char** entries, Environment* into) noexcept {
  const int saved_errno = errno;
  constexpr std::size_t kMost = 1 << 20;  // more than the kernel hands to a program
  Reader reader, list;
  into->count = into->used = 0;
  into->is_cut = false;
  for (std::size_t i = 0; entries != nullptr && i < kMost && list.can_read(entries + i); ++i) {
    const char* place = *static_cast<char* const volatile*>(entries + i);
    if (place == nullptr) break;
    take_entry(reader, place, into);
  }
  errno = saved_errno;
}

void take_command(int count, char** arguments) noexcept {
  for (int i = 0; i < count && arguments[i] != nullptr; ++i) {
    const std::size_t room = sizeof g_start.command - g_start.command_size;
    const std::size_t length = std::strlen(arguments[i]) + 1;
    const std::size_t taken = length < room ? length : room;
    std::memcpy(g_start.command + g_start.command_size, arguments[i], taken);
    g_start.command_size += taken;
    if (taken == room) break;
  }
  const char* program = count > 0 && arguments[0] != nullptr ? arguments[0] : "";
  // Of a program that was started without arguments the kernel knows the file.
  if (*program == '\0') program = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (program == nullptr) return;
  const char* slash = std::strrchr(program, '/');
  std::strncpy(g_start.program, slash != nullptr ? slash + 1 : program, sizeof g_start.program - 1);
}

// When the library is loaded, in every program that the user starts: copies, and at most a look at
// the folder. glibc hands the program's own arguments to it.
[[gnu::constructor]] void note_start(int count, char** arguments, char** environment) noexcept {
  const int saved_errno = errno;
  take_command(count, arguments);
  take_environment(environment, &g_at_load);
  if (g_at_load.count != 0 && getcwd(g_start.folder, sizeof g_start.folder) == nullptr) {
    g_start.folder[0] = '\0';
  }
  errno = saved_errno;
}

}  // namespace

const char* Environment::value(const char* name) const noexcept {
  const std::size_t length = std::strlen(name);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strncmp(entries[i], name, length) == 0 && entries[i][length] == '=') {
      return entries[i] + length + 1;
    }
  }
  return nullptr;
}

const char* Environment::keep(const char* source, std::size_t length) noexcept {
  if (length >= sizeof text - used) return nullptr;
  char* kept = text + used;
  std::memmove(kept, source, length);
  kept[length] = '\0';
  used += length + 1;
  return kept;
}

const ProcessStart& process_start() noexcept {
  return g_start;
}

void read_environment(Environment* into) noexcept {
  take_environment(environ, into);
}

}  // namespace runtime
