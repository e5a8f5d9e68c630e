// SPDX-License-Identifier: Apache-2.0
// No malloc and no lock anywhere: libbacktrace maps its memory itself. _exit() in a signal handler
// leads here.
//
// libbacktrace reads every object of the process when it is first asked. Here it is shown one file
// only, through a dl_iterate_phdr of ours (one_file.h): libraries that are gone resolve
// too, and a process with hundreds of libraries pays for those that have call sites.
#include "profiler/symbolize.h"

#include <unistd.h>

#include <cstring>

#include "profiler/one_file.h"

// backtrace.h lies among GCC's own headers, which Clang does not see.
extern "C" {
struct backtrace_state;
using BacktraceError = void (*)(void* data, const char* message, int error);
using BacktraceFull = int (*)(void* data, std::uintptr_t address, const char* file, int line,
                              const char* function);
using BacktraceSymbol = void (*)(void* data, std::uintptr_t address, const char* name,
                                 std::uintptr_t value, std::uintptr_t size);
backtrace_state* backtrace_create_state(const char* path, int is_threaded, BacktraceError error,
                                        void* data);
int backtrace_pcinfo(backtrace_state* state, std::uintptr_t address, BacktraceFull full,
                     BacktraceError error, void* data);
int backtrace_syminfo(backtrace_state* state, std::uintptr_t address, BacktraceSymbol symbol,
                      BacktraceError error, void* data);

// libstdc++'s demangler without malloc.
int __gcclibcxx_demangle_callback(const char* name,
                                  void (*take)(const char* part, std::size_t bytes, void* data),
                                  void* data);
}

namespace profiler {
namespace {

// What libbacktrace cannot read it simply does not know.
void ignore(void*, const char*, int) noexcept {}

// One per file with call sites. libbacktrace has no way to free what it read.
struct File {
  const char* path;
  backtrace_state* state;
};
constexpr std::size_t kMaxFiles = 512;
File g_files[kMaxFiles];
std::size_t g_file_count = 0;

backtrace_state* state_of(const char* path) noexcept {
  for (std::size_t i = 0; i < g_file_count; ++i) {
    if (g_files[i].path == path) return g_files[i].state;
  }
  if (g_file_count == kMaxFiles) return nullptr;
  // In place of a file that is not there libbacktrace would read the program's own.
  const bool is_there = access(path, R_OK) == 0;
  File& file = g_files[g_file_count++];
  file = {path, is_there ? backtrace_create_state(path, 0, ignore, nullptr) : nullptr};
  return file.state;
}

// The demangler keeps what it needs on the stack; longer names stay as they are.
constexpr std::size_t kLongestMangled = 2000;

struct Demangled {
  char* text;
  std::size_t capacity;
  std::size_t size;

  static void take(const char* part, std::size_t bytes, void* self) noexcept {
    auto* demangled = static_cast<Demangled*>(self);
    const std::size_t room = demangled->capacity - 1 - demangled->size;
    if (bytes > room) bytes = room;
    std::memcpy(demangled->text + demangled->size, part, bytes);
    demangled->size += bytes;
  }
};

struct Request {
  void (*take)(void* context, const SourceFrame& frame);
  void* context;
  const char* symbol = nullptr;  // of the symbol table
  // The frame before, handed on when it is known whether another follows it.
  bool has_frame = false;
  char function[1024];
  char file[1024];
  int line = 0;
};

void hand_on(Request* request, bool is_inlined) noexcept {
  if (!request->has_frame) return;
  // The symbol of the outermost function has its namespaces, the name in DWARF often has not.
  const char* own = request->function[0] != '\0' ? request->function : nullptr;
  const char* function = !is_inlined && request->symbol != nullptr ? request->symbol : own;
  char demangled[1024];
  const bool is_demangled = demangle(function, demangled, sizeof demangled);
  request->take(request->context,
                {is_demangled ? demangled : function,
                 request->file[0] != '\0' ? request->file : nullptr, request->line, is_inlined});
  request->has_frame = false;
}

void copy(char* to, std::size_t capacity, const char* from) noexcept {
  std::size_t length = from != nullptr ? std::strlen(from) : 0;
  if (length >= capacity) length = capacity - 1;
  if (length > 0) std::memcpy(to, from, length);
  to[length] = '\0';
}

int take_line(void* data, std::uintptr_t, const char* file, int line,
              const char* function) noexcept {
  auto* request = static_cast<Request*>(data);
  if (file == nullptr && function == nullptr) return 0;
  hand_on(request, true);
  copy(request->file, sizeof request->file, file);
  copy(request->function, sizeof request->function, function);
  request->line = line;
  request->has_frame = true;
  return 0;
}

void take_symbol(void* data, std::uintptr_t, const char* name, std::uintptr_t,
                 std::uintptr_t) noexcept {
  static_cast<Request*>(data)->symbol = name;
}

}  // namespace

bool demangle(const char* name, char* text, std::size_t capacity) noexcept {
  if (name == nullptr || std::strncmp(name, "_Z", 2) != 0) return false;
  if (std::strlen(name) > kLongestMangled) return false;
  Demangled demangled{text, capacity, 0};
  const int failure = __gcclibcxx_demangle_callback(name, &Demangled::take, &demangled);
  text[demangled.size] = '\0';
  return failure == 0 && demangled.size > 0;
}

void symbolize(const char* path, std::uintptr_t file_address,
               void (*take)(void* context, const SourceFrame& frame), void* context) noexcept {
  if (path[0] == '\0') return;
  const OneFile one_file;
  backtrace_state* state = state_of(path);
  if (state == nullptr) return;
  Request request;
  request.take = take;
  request.context = context;
  backtrace_syminfo(state, file_address, take_symbol, ignore, &request);
  backtrace_pcinfo(state, file_address, take_line, ignore, &request);
  if (!request.has_frame) {
    if (request.symbol == nullptr) return;
    request.function[0] = request.file[0] = '\0';
    request.line = 0;
    request.has_frame = true;
  }
  hand_on(&request, false);
}

}  // namespace profiler
