// SPDX-License-Identifier: Apache-2.0
// Functions of ours stand in for libc's in the library's table of calls, in this one library alone,
// which makes these calls for its pipe and little else. Where the loader has made the table
// unwritable, the two numbers are found out and watched instead, by two system calls a walk.
#include "profiler/libunwind_pipe.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "runtime/own_file.h"

namespace profiler {
namespace {

struct PipeEnd {
  std::atomic<int> number{-1};
  std::atomic<ino_t> inode{0};
};
constinit PipeEnd g_ends[2];
// Written before others walk.
bool g_is_watched = false;
int g_expected[2] = {-1, -1};

bool is_pipe(int file, ino_t inode) noexcept {
  struct stat status {};
  return fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_ino == inode;
}

bool is_there(const PipeEnd& end) noexcept {
  return is_pipe(end.number.load(std::memory_order_relaxed),
                 end.inode.load(std::memory_order_relaxed));
}

void remember(const int (&numbers)[2], ino_t inode) noexcept {
  for (int i = 0; i < 2; ++i) {
    g_ends[i].inode.store(inode, std::memory_order_relaxed);
    g_ends[i].number.store(numbers[i], std::memory_order_relaxed);
  }
}

int open_pipe(int* numbers, int flags) noexcept {
  if (pipe2(numbers, flags) != 0) return -1;
  runtime::OwnFile ends[2];
  for (int i = 0; i < 2; ++i) {
    ends[i].take(numbers[i]);
    numbers[i] = ends[i].number();
  }
  remember({numbers[0], numbers[1]}, ends[0].inode());
  return 0;
}

// The library reads the pipe before it writes there, and opens another one where that fails.
ssize_t read_pipe(int number, void* bytes, std::size_t size) noexcept {
  const bool is_end = number >= 0 && number == g_ends[0].number.load(std::memory_order_relaxed);
  if (is_end && !(is_there(g_ends[0]) && is_there(g_ends[1]))) return errno = EBADF, -1;
  return read(number, bytes, size);
}

int close_pipe(int number) noexcept {
  for (const PipeEnd& end : g_ends) {
    const bool is_end = number >= 0 && number == end.number.load(std::memory_order_relaxed);
    if (is_end && !is_there(end)) return errno = EBADF, -1;
  }
  return close(number);
}

const void* stand_in(const char* name) noexcept {
  if (strcmp(name, "pipe2") == 0) return reinterpret_cast<const void*>(&open_pipe);
  if (strcmp(name, "read") == 0) return reinterpret_cast<const void*>(&read_pipe);
  if (strcmp(name, "close") == 0) return reinterpret_cast<const void*>(&close_pipe);
  return nullptr;
}

struct CallTable {
  const ElfW(Rela) * calls = nullptr;
  std::size_t size = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

// False: it has none that can be written.
bool find_table(const link_map& map, CallTable* table) noexcept {
  bool is_fixed = false;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) address = entry->d_un.d_ptr;
    const ElfW(Xword) value = entry->d_un.d_val;
    if (entry->d_tag == DT_JMPREL) table->calls = reinterpret_cast<const ElfW(Rela)*>(address);
    if (entry->d_tag == DT_PLTRELSZ) table->size = value / sizeof(ElfW(Rela));
    if (entry->d_tag == DT_SYMTAB) table->symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) table->names = reinterpret_cast<const char*>(address);
    is_fixed |= entry->d_tag == DT_BIND_NOW || (entry->d_tag == DT_PLTREL && value != DT_RELA) ||
                (entry->d_tag == DT_FLAGS && (value & DF_BIND_NOW) != 0) ||
                (entry->d_tag == DT_FLAGS_1 && (value & DF_1_NOW) != 0);
  }
  return !is_fixed && table->calls != nullptr && table->symbols != nullptr &&
         table->names != nullptr;
}

bool replace_calls(void* library) noexcept {
  link_map* map = nullptr;
  CallTable table;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !find_table(*map, &table)) return false;
  int replaced = 0;
  for (std::size_t i = 0; i < table.size; ++i) {
    const ElfW(Rela)& call = table.calls[i];
    const auto symbol = static_cast<std::size_t>(call.r_info >> 32);
    const void* ours = stand_in(table.names + table.symbols[symbol].st_name);
    if (ours == nullptr) continue;
    auto* slot = reinterpret_cast<const void**>(map->l_addr + call.r_offset);
    __atomic_store_n(slot, ours, __ATOMIC_RELEASE);
    ++replaced;
  }
  return replaced == 3;
}

}  // namespace

void guard_libunwind_pipe(void* library) noexcept {
  g_is_watched = !replace_calls(library);
  if (!g_is_watched) return;
  // The two numbers that a pipe gets if it is opened next.
  for (int& end : g_expected) end = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int end : g_expected) {
    if (end >= 0) close(end);
  }
}

// Nothing where another thread opened a file at the same moment.
void find_libunwind_pipe() noexcept {
  struct stat status {};
  if (!g_is_watched) return;
  g_is_watched = g_expected[0] >= 0 && g_expected[1] >= 0 && fstat(g_expected[0], &status) == 0 &&
                 is_pipe(g_expected[0], status.st_ino) && is_pipe(g_expected[1], status.st_ino);
  if (g_is_watched) remember(g_expected, status.st_ino);
}

bool is_libunwind_pipe_gone() noexcept {
  return g_is_watched && !(is_there(g_ends[0]) && is_there(g_ends[1]));
}

}  // namespace profiler
