// SPDX-License-Identifier: Apache-2.0
// Offsets are facts of CPython's headers (cpython/pystate.h, internal/pycore_frame.h,
// cpython/code.h, cpython/unicodeobject.h, object.h) for 64-bit release builds.
#include "profiler/python_frame.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "profiler/module_list.h"
#include "profiler/python_code.h"
#include "profiler/python_places.h"
#include "runtime/loaded_image.h"
#include "runtime/own_thread.h"
#include "runtime/reentry.h"

namespace profiler {
namespace {

using runtime::find_first_symbol;

// Byte offsets that differ between versions.
struct Layout {
  unsigned version;          // major << 8 | minor
  std::uint16_t thread_top;  // thread state: its innermost frame, or the cframe that has it
  std::uint16_t cframe_top;  // cframe: the innermost frame; kNoCframe: there is no cframe
  std::uint16_t frame_code, frame_previous, frame_owner;
  std::uint16_t code_first_line, code_instructions;
  std::uint16_t ascii_bytes, compact_bytes;  // heads of the two kinds of text
};
constexpr std::uint16_t kNoCframe = 0xffff;
constexpr Layout kLayouts[] = {
    {0x30b, 56, 8, 32, 48, 69, 72, 184, 48, 72},
    {0x30c, 56, 0, 0, 8, 70, 68, 192, 40, 56},
    {0x30d, 72, kNoCframe, 0, 8, 70, 68, 200, 40, 56},
};
constexpr const char* kUnknownVersion =
    "frames of this version are not known (of 3.11 to 3.13 are)";

// Offsets that all of them share.
constexpr std::size_t kObjectType = 8;
constexpr std::size_t kObjectSize = 16;  // also the length of a text
constexpr std::size_t kBytesData = 32;
constexpr std::size_t kTextState = 32;
constexpr std::size_t kThreadInterpreter = 16;
constexpr std::size_t kFrameInstruction = 56;
constexpr std::size_t kCodeFile = 112;
constexpr std::size_t kCodeFunction = 128;
constexpr std::size_t kCodeLines = 136;

constexpr std::size_t kFrameBytes = 72;  // as much as is read of them
constexpr std::size_t kCodeBytes = 144;
constexpr std::size_t kThreadBytes = 80;
constexpr std::uint8_t kOwnedByCStack = 3;  // the interpreter's own frame between C and Python

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostCharacters = 400;
constexpr std::size_t kTextBytes = PythonText::kBytes;
static_assert(kTextBytes == kMostCharacters * 3 + 1);
constexpr std::size_t kMostTableBytes = 16u << 20;

struct Interpreter {
  const Layout* layout;
  void* (*thread_state)();
  void* (*first_interpreter)();
  void* (*main_interpreter)();
  int (*is_finalizing)();
  std::uintptr_t code_type, text_type, bytes_type;
};

// Written once, then published by g_interpreter (release, acquire in find_python_call()).
Interpreter g_found;
PythonStatus g_found_status;
constinit std::atomic<const Interpreter*> g_interpreter{nullptr};
constinit std::atomic<const PythonStatus*> g_status{nullptr};
constinit std::atomic_flag g_is_looking = ATOMIC_FLAG_INIT;

// process_vm_readv is forbidden here (seccomp, a hardened kernel).
constinit std::atomic<bool> g_is_forbidden{false};
// A whole way from the thread to the text of a code object was as the layout says.
constinit std::atomic<bool> g_is_proven{false};

// What is known of code objects: a digest of each, bit 0: a wrapper's. 0: free.
constexpr std::size_t kKnownCodes = 1024;
constinit std::atomic<std::uint64_t> g_known[kKnownCodes];

// Whether this is the process's first thread, which no end of an interpreter overtakes.
[[gnu::tls_model("initial-exec")]] constinit thread_local signed char t_is_first_thread = -1;

bool is_first_thread() noexcept {
  if (t_is_first_thread < 0) t_is_first_thread = syscall(SYS_gettid) == getpid() ? 1 : 0;
  return t_is_first_thread == 1;
}

// The bytes that were copied: whole pieces, up to the first that cannot be read.
std::size_t read_guarded(void* to, std::size_t bytes, const iovec* pieces,
                         std::size_t count) noexcept {
  const iovec local{to, bytes};
  const int saved_errno = errno;
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, pieces, count, 0);
  if (copied < 0 && errno != EFAULT) g_is_forbidden.store(true, std::memory_order_relaxed);
  errno = saved_errno;
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

bool copy_guarded(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
  const iovec piece{reinterpret_cast<void*>(from), bytes};
  return read_guarded(to, bytes, &piece, 1) == bytes;
}

// What the last guarded walk of a thread read, in its order. Most calls come the same way as the
// one before, and all pieces at once cost the system little more than the first alone.
struct Trail {
  std::size_t count;
  iovec pieces[16];
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Trail t_trail{};

// Reads ahead along the trail; where the walk leaves it, piece by piece.
class GuardedWalk {
 public:
  GuardedWalk() noexcept : trail_(t_trail) {
    std::size_t bytes = 0, known = 0;
    for (; known < trail_.count; ++known) bytes += trail_.pieces[known].iov_len;
    if (known > 0) read_ = read_guarded(ahead_, bytes, trail_.pieces, known);
  }
  ~GuardedWalk() {
    trail_.count = next_;
    t_trail = trail_;
  }
  GuardedWalk(const GuardedWalk&) = delete;
  GuardedWalk& operator=(const GuardedWalk&) = delete;

  bool copy(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
    void* const base = reinterpret_cast<void*>(from);
    const bool has_room = next_ < std::size(trail_.pieces) && used_ + bytes <= sizeof ahead_;
    if (!has_room) return copy_guarded(to, from, bytes);
    iovec& piece = trail_.pieces[next_++];
    used_ += bytes;
    is_on_trail_ =
        is_on_trail_ && used_ <= read_ && piece.iov_base == base && piece.iov_len == bytes;
    if (is_on_trail_) {
      std::memcpy(to, ahead_ + used_ - bytes, bytes);
      return true;
    }
    piece = {base, bytes};
    return copy_guarded(to, from, bytes);
  }

 private:
  Trail trail_;
  std::uint8_t ahead_[1024];
  std::size_t read_ = 0;  // of it
  std::size_t next_ = 0;  // piece
  std::size_t used_ = 0;  // bytes of the pieces before it
  bool is_on_trail_ = true;
};

// Copies from the interpreter's memory: as it lies there, guarded, or guarded along the trail.
class Reader {
 public:
  Reader(const Interpreter& interpreter, bool is_guarded, GuardedWalk* walk = nullptr) noexcept
      : python_(interpreter), is_guarded_(is_guarded), walk_(walk) {}

  const Interpreter& python() const noexcept { return python_; }

  // Copies an object or structure, which is aligned as a pointer is.
  bool copy(void* to, std::uintptr_t from, std::size_t bytes) const noexcept {
    return from % alignof(void*) == 0 && copy_unaligned(to, from, bytes);
  }

  bool copy_unaligned(void* to, std::uintptr_t from, std::size_t bytes) const noexcept {
    if (from < 4096 || from > UINTPTR_MAX - bytes) return false;
    if (is_guarded_) return copy_with_care(to, from, bytes);
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return true;
  }

 private:
  [[gnu::noinline]] bool copy_with_care(void* to, std::uintptr_t from,
                                        std::size_t bytes) const noexcept {
    return walk_ != nullptr ? walk_->copy(to, from, bytes) : copy_guarded(to, from, bytes);
  }

  const Interpreter& python_;
  bool is_guarded_;
  GuardedWalk* walk_;
};

template <typename Value>
Value value_at(const std::uint8_t* bytes, std::size_t offset) noexcept {
  Value value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

std::uintptr_t pointer_at(const std::uint8_t* bytes, std::size_t offset) noexcept {
  return value_at<std::uintptr_t>(bytes, offset);
}

// 0: no frame, or not this interpreter's thread.
std::uintptr_t innermost_frame(const Reader& reader, const void* main_interpreter) noexcept {
  const Layout& layout = *reader.python().layout;
  std::uint8_t thread[kThreadBytes];
  const auto state = reinterpret_cast<std::uintptr_t>(reader.python().thread_state());
  if (!reader.copy(thread, state, sizeof thread)) return 0;
  if (pointer_at(thread, kThreadInterpreter) !=
      reinterpret_cast<std::uintptr_t>(main_interpreter)) {
    return 0;
  }
  const std::uintptr_t top = pointer_at(thread, layout.thread_top);
  if (layout.cframe_top == kNoCframe) return top;
  std::uint8_t cframe[16];
  return reader.copy(cframe, top, sizeof cframe) ? pointer_at(cframe, layout.cframe_top) : 0;
}

struct Frame {
  std::uintptr_t code, previous, instruction;
  bool is_python;
};

bool read_frame(const Reader& reader, std::uintptr_t address, Frame* frame) noexcept {
  const Layout& layout = *reader.python().layout;
  std::uint8_t bytes[kFrameBytes];
  if (!reader.copy(bytes, address, sizeof bytes)) return false;
  frame->code = pointer_at(bytes, layout.frame_code);
  frame->previous = pointer_at(bytes, layout.frame_previous);
  frame->instruction = pointer_at(bytes, kFrameInstruction);
  frame->is_python = bytes[layout.frame_owner] < kOwnedByCStack;
  return true;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

// The end of the file's name: of code that is compiled anew (a notebook's cells) often all that
// differs. 0: not to be read.
std::uint64_t end_of_text(const Reader& reader, std::uintptr_t object) noexcept {
  const Layout& layout = *reader.python().layout;
  std::uint8_t head[kTextState + 8];
  if (!reader.copy(head, object, sizeof head)) return 0;
  if (pointer_at(head, kObjectType) != reader.python().text_type) return 0;
  const auto state = value_at<std::uint32_t>(head, kTextState);
  const auto length = value_at<std::size_t>(head, kObjectSize);
  std::uint64_t end = 0;
  if ((state >> 6 & 1) == 0 || length < sizeof end) return length;
  const std::uintptr_t data = object + layout.ascii_bytes;
  return reader.copy_unaligned(&end, data + length - sizeof end, sizeof end) ? end : 0;
}

// The first lines that the code has. Of a bytes object these eight bytes are always there.
std::uint64_t begin_of_lines(const Reader& reader, std::uintptr_t object) noexcept {
  std::uint8_t bytes[kBytesData + 8];
  return reader.copy(bytes, object, sizeof bytes) ? value_at<std::uint64_t>(bytes, kBytesData) : 0;
}

// Code objects that follow one another at one address differ in this, in practice.
std::uint64_t identity_of(const Reader& reader, const std::uint8_t* code) noexcept {
  std::uint64_t hash = mixed(0, pointer_at(code, kObjectSize));
  hash = mixed(hash, value_at<std::uint32_t>(code, reader.python().layout->code_first_line));
  hash = mixed(hash, pointer_at(code, kCodeFunction));
  hash = mixed(hash, end_of_text(reader, pointer_at(code, kCodeFile)));
  return mixed(hash, begin_of_lines(reader, pointer_at(code, kCodeLines)));
}

// False: not a code object, or the instruction is not in it.
bool read_code(const Reader& reader, const Frame& frame, std::uint8_t* code,
               PythonCall* call) noexcept {
  const Layout& layout = *reader.python().layout;
  if (!reader.copy(code, frame.code, kCodeBytes)) return false;
  if (pointer_at(code, kObjectType) != reader.python().code_type) return false;
  const std::uintptr_t first = frame.code + layout.code_instructions;
  // Before its first instruction a frame stands one before it.
  const std::size_t offset = frame.instruction < first ? 0 : frame.instruction - first;
  if (offset / 2 >= value_at<std::size_t>(code, kObjectSize)) return false;
  *call = {frame.code, identity_of(reader, code), offset};
  return true;
}

enum class Cut : std::uint8_t { kBegin, kEnd };

// Bits of a text's state: 2 to 4 bytes a character, 5 in one piece, 6 ASCII.
bool read_text(const Reader& reader, std::uintptr_t object, Cut cut, char* text) noexcept {
  const Layout& layout = *reader.python().layout;
  std::uint8_t head[40];
  if (!reader.copy(head, object, sizeof head)) return false;
  if (pointer_at(head, kObjectType) != reader.python().text_type) return false;
  const auto length = value_at<std::size_t>(head, kObjectSize);
  const auto state = value_at<std::uint32_t>(head, kTextState);
  const unsigned bytes_each = state >> 2 & 7;
  if ((state >> 5 & 1) == 0 || (bytes_each != 1 && bytes_each != 2 && bytes_each != 4)) {
    return false;
  }
  const std::size_t count = std::min(length, kMostCharacters);
  const std::size_t skipped = cut == Cut::kBegin ? length - count : 0;
  std::uint8_t characters[kMostCharacters * 4];
  const std::uintptr_t data =
      object + ((state >> 6 & 1) != 0 ? layout.ascii_bytes : layout.compact_bytes);
  if (count != 0 && !copy_guarded(characters, data + skipped * bytes_each, count * bytes_each)) {
    return false;
  }
  write_utf8(characters, count, bytes_each, text, kTextBytes);
  return true;
}

bool read_is_wrapper(const Interpreter& python, const std::uint8_t* code) noexcept {
  char file[kTextBytes];
  const Reader guarded(python, true);
  if (!read_text(guarded, pointer_at(code, kCodeFile), Cut::kBegin, file)) return false;
  g_is_proven.store(true, std::memory_order_relaxed);
  return is_wrapper_path(file);
}

bool is_wrapper(const Interpreter& python, const PythonCall& call,
                const std::uint8_t* code) noexcept {
  const std::uint64_t digest = mixed(call.identity, call.code) | 1;
  std::atomic<std::uint64_t>& known = g_known[(digest >> 1) % kKnownCodes];
  const std::uint64_t value = known.load(std::memory_order_relaxed);
  if ((value | 1) == digest) return (value & 1) != 0;
  const bool is_one = read_is_wrapper(python, code);
  known.store(is_one ? digest : digest & ~std::uint64_t{1}, std::memory_order_relaxed);
  return is_one;
}

PythonCall nearest_call(const Reader& reader, std::uintptr_t address) noexcept {
  PythonCall innermost;
  for (std::size_t i = 0; i < kMostFrames && address != 0; ++i) {
    Frame frame;
    if (!read_frame(reader, address, &frame)) break;
    if (frame.previous == address) break;
    address = frame.previous;
    std::uint8_t code[kCodeBytes];
    PythonCall call;
    if (!frame.is_python || !read_code(reader, frame, code, &call)) continue;
    if (!is_wrapper(reader.python(), call, code)) return call;
    if (innermost.code == 0) innermost = call;
  }
  return innermost;
}

int read_line(const Reader& reader, const std::uint8_t* code, std::size_t instruction) noexcept {
  const std::uintptr_t table = pointer_at(code, kCodeLines);
  std::uint8_t head[kBytesData];
  if (!reader.copy(head, table, sizeof head)) return 0;
  if (pointer_at(head, kObjectType) != reader.python().bytes_type) return 0;
  const auto bytes = value_at<std::size_t>(head, kObjectSize);
  if (bytes == 0 || bytes > kMostTableBytes) return 0;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  int line = 0;
  if (copy_guarded(memory, table + kBytesData, bytes)) {
    const int first = value_at<int>(code, reader.python().layout->code_first_line);
    line = line_of_instruction(static_cast<std::uint8_t*>(memory), bytes, first, instruction);
  }
  munmap(memory, bytes);
  return line;
}

// The program may have a copy of the interpreter's data in front of the interpreter's own.
template <typename Function>
bool take(const char* name, Function* function) noexcept {
  *function = reinterpret_cast<Function>(find_first_symbol(name));
  return *function != nullptr;
}

// Null when the frames can be read.
const char* fill(unsigned long version, Interpreter* python) noexcept {
  for (const Layout& layout : kLayouts) {
    if (version >> 16 == layout.version) python->layout = &layout;
  }
  // Alpha and beta releases change layouts.
  if (python->layout == nullptr || (version & 0xff) < 0xc0) return kUnknownVersion;
  if constexpr (sizeof(void*) != 8) return "frames are known of 64-bit builds";
  if (find_first_symbol("_Py_NegativeRefcount") != nullptr)
    return "frames of debug builds are not known";
  if (find_first_symbol("_Py_MergeZeroLocalRefcount") != nullptr) {
    return "frames of free-threaded builds are not known";
  }
  const bool has_all = take("PyGILState_GetThisThreadState", &python->thread_state) &&
                       take("PyInterpreterState_Head", &python->first_interpreter) &&
                       take("PyInterpreterState_Main", &python->main_interpreter) &&
                       (take("_Py_IsFinalizing", &python->is_finalizing) ||
                        take("Py_IsFinalizing", &python->is_finalizing));
  python->code_type = reinterpret_cast<std::uintptr_t>(find_first_symbol("PyCode_Type"));
  python->text_type = reinterpret_cast<std::uintptr_t>(find_first_symbol("PyUnicode_Type"));
  python->bytes_type = reinterpret_cast<std::uintptr_t>(find_first_symbol("PyBytes_Type"));
  const bool has_types =
      python->code_type != 0 && python->text_type != 0 && python->bytes_type != 0;
  return has_all && has_types ? nullptr : "the interpreter does not export what is needed";
}

// Of a library that could be unloaded; written once, before the thread that reads it is there.
char g_path[4096];

// The functions that were taken are kept, so their library must stay. The caller may hold up a
// dlopen() of another thread, which then holds the loader's lock.
void pin(const runtime::LoadedImage& image) noexcept {
  if (image.is_permanent || std::strlen(image.path) >= sizeof g_path) return;
  std::strcpy(g_path, image.path);
  const auto run = [](void*) -> void* {
    const runtime::ReentryGuard guard;
    dlopen(g_path, RTLD_NOW | RTLD_NOLOAD);
    return nullptr;
  };
  pthread_t thread;
  if (runtime::start_own_thread(&thread, run) == 0) pthread_detach(thread);
}

// Once, where there is one.
void look_for_python() noexcept {
  runtime::LoadedImage image;
  const auto text = reinterpret_cast<const char* (*)()>(find_first_symbol("Py_GetVersion", &image));
  if (text == nullptr || g_is_looking.test_and_set(std::memory_order_acquire)) return;
  pin(image);
  const auto* number = static_cast<const unsigned long*>(find_first_symbol("Py_Version"));
  snprintf(g_found_status.version, sizeof g_found_status.version, "%.*s",
           static_cast<int>(std::strcspn(text(), " ")), text());
  g_found_status.why_unread = number != nullptr ? fill(*number, &g_found) : kUnknownVersion;
  g_status.store(&g_found_status, std::memory_order_release);
  if (g_found_status.why_unread == nullptr) {
    g_interpreter.store(&g_found, std::memory_order_release);
  }
}

}  // namespace

void start_python_frames() noexcept {
  const int saved_errno = errno;
  look_for_python();
  errno = saved_errno;
}

void look_for_late_python() noexcept {
  if (g_status.load(std::memory_order_acquire) != nullptr) return;
  std::size_t number = 0;
  const Module* module = nullptr;
  while ((module = module_at(number)) != nullptr &&
         std::strncmp(base_name(module->path), "libpython3", 10) != 0) {
    ++number;
  }
  if (module != nullptr && !is_unloaded(number)) start_python_frames();
}

PythonCall find_python_call() noexcept {
  const Interpreter* python = g_interpreter.load(std::memory_order_acquire);
  if (python == nullptr || g_is_forbidden.load(std::memory_order_relaxed)) return {};
  if (python->thread_state() == nullptr || python->is_finalizing() != 0) return {};
  // With further interpreters the state of the thread need not be the one that runs.
  const void* interpreter = python->main_interpreter();
  if (interpreter == nullptr || interpreter != python->first_interpreter()) return {};
  if (is_first_thread() && g_is_proven.load(std::memory_order_relaxed)) {
    const Reader reader(*python, false);
    return nearest_call(reader, innermost_frame(reader, interpreter));
  }
  GuardedWalk walk;
  const Reader reader(*python, true, &walk);
  return nearest_call(reader, innermost_frame(reader, interpreter));
}

bool read_python_text(const PythonCall& call, PythonText* text) noexcept {
  const Interpreter* python = g_interpreter.load(std::memory_order_acquire);
  if (python == nullptr || call.code == 0) return false;
  const Reader reader(*python, true);
  std::uint8_t code[kCodeBytes];
  if (!reader.copy(code, call.code, sizeof code)) return false;
  if (!read_text(reader, pointer_at(code, kCodeFile), Cut::kBegin, text->file)) return false;
  if (!read_text(reader, pointer_at(code, kCodeFunction), Cut::kEnd, text->function)) return false;
  text->line = read_line(reader, code, call.instruction);
  return true;
}

PythonStatus python_status() noexcept {
  const PythonStatus* found = g_status.load(std::memory_order_acquire);
  if (found == nullptr) return {"", nullptr};
  PythonStatus status = *found;
  if (python_places_are_full()) {
    status.why_unread = "too many different ones: later ones are left out";
  }
  if (g_is_forbidden.load(std::memory_order_relaxed)) {
    status.why_unread = "process_vm_readv is not allowed here";
  }
  return status;
}

}  // namespace profiler
