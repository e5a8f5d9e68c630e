// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/cli/failure.h"

namespace cli {
namespace {

// Segments and entries looked at, so that a broken file costs no time.
constexpr std::size_t kMostSegments = 256;
constexpr std::size_t kMostDynamic = 4096;
// Of names of symbols: a large program that exports everything has some ten million bytes.
constexpr std::uint64_t kMostNames = 64 << 20;

class File {
 public:
  explicit File(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw Failure(path + ": cannot open: " + std::strerror(errno), kCannotExecute);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(file_); }

  template <typename Value>
  bool read(std::uint64_t offset, Value* value) const {
    return offset <= INT64_MAX && pread(file_, value, sizeof *value, static_cast<off_t>(offset)) ==
                                      static_cast<ssize_t>(sizeof *value);
  }
  // As many as there are.
  std::string bytes(std::uint64_t offset, std::uint64_t size) const {
    std::string buffer(size, '\0');
    if (offset > INT64_MAX) return "";
    const ssize_t length = pread(file_, buffer.data(), size, static_cast<off_t>(offset));
    buffer.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return buffer;
  }
  // Up to the first zero byte, 255 bytes at most.
  std::string text(std::uint64_t offset) const {
    char buffer[256] = "";
    if (offset > INT64_MAX) return "";
    const ssize_t length = pread(file_, buffer, sizeof buffer - 1, static_cast<off_t>(offset));
    return length > 0 ? std::string(buffer, strnlen(buffer, static_cast<std::size_t>(length))) : "";
  }

 private:
  int file_;
};

std::vector<Elf64_Phdr> segments_of(const File& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, kMostSegments); ++i) {
    Elf64_Phdr segment;
    if (!file.read(header.e_phoff + i * sizeof segment, &segment)) break;
    segments.push_back(segment);
  }
  return segments;
}

// What the dynamic section says.
struct Dynamic {
  std::vector<std::string> needed;
  std::string names;  // of symbols and libraries, each behind a zero byte
};

Dynamic dynamic_of(const File& file, const std::vector<Elf64_Phdr>& segments) {
  std::uint64_t strings = 0;
  std::uint64_t strings_size = 0;
  std::vector<std::uint64_t> names;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const std::uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, kMostDynamic); ++i) {
      Elf64_Dyn entry;
      if (!file.read(segment.p_offset + i * sizeof entry, &entry) || entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    }
  }
  Dynamic dynamic;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || strings < segment.p_vaddr) continue;
    if (strings - segment.p_vaddr >= segment.p_filesz) continue;
    const std::uint64_t offset = segment.p_offset + (strings - segment.p_vaddr);
    for (const std::uint64_t name : names) dynamic.needed.push_back(file.text(offset + name));
    dynamic.names = file.bytes(offset, std::min(strings_size, kMostNames));
    break;
  }
  return dynamic;
}

// The runtime's entry is named whether it is a library or part of the program.
void find_sanitizer(const Dynamic& dynamic, ProgramFile* program) {
  using namespace std::string_literals;
  if (dynamic.names.find("\0__asan_init\0"s) != std::string::npos) {
    program->sanitizer = Sanitizer::kAddress;
  } else if (dynamic.names.find("\0__tsan_init\0"s) != std::string::npos) {
    program->sanitizer = Sanitizer::kThread;
  }
  for (const std::string& library : dynamic.needed) {
    program->has_shared_sanitizer |= library.starts_with("libasan.") ||
                                     library.starts_with("libtsan.") ||
                                     library.starts_with("libclang_rt.");
  }
}

void read_elf(const File& file, ProgramFile* program) {
  unsigned char identity[EI_NIDENT] = {};
  if (!file.read(0, &identity) || std::memcmp(identity, ELFMAG, SELFMAG) != 0) return;
  program->is_elf = true;
  program->is_64_bit = identity[EI_CLASS] == ELFCLASS64;
  Elf64_Ehdr header;
  if (!program->is_64_bit || !file.read(0, &header)) return;
  program->machine = header.e_machine;
  const std::vector<Elf64_Phdr> segments = segments_of(file, header);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) program->interpreter = file.text(segment.p_offset);
  }
  const Dynamic dynamic = dynamic_of(file, segments);
  program->needed = dynamic.needed;
  find_sanitizer(dynamic, program);
}

void read_script(const File& file, ProgramFile* program) {
  std::string line = file.text(0);
  if (!line.starts_with("#!")) return;
  line = line.substr(2, line.find('\n') - 2);
  const auto skip_blanks = [&line] { line.erase(0, line.find_first_not_of(" \t")); };
  skip_blanks();
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  program->script_interpreter = line.substr(0, end);
  line.erase(0, end);
  skip_blanks();
  program->script_argument = line;
}

// Whether the kernel would tell the loader to trust nothing (AT_SECURE).
bool is_privileged(const std::string& path, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

bool is_executable(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.empty()) throw Failure("the name of the program is empty", kNotFound);
  if (name.find('/') != std::string::npos) {
    if (is_executable(name)) return name;
    if (access(name.c_str(), F_OK) != 0) throw Failure(name + ": not found", kNotFound);
    throw Failure(name + ": found, but cannot be executed", kCannotExecute);
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";
  bool exists = false;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::string folder = end > start ? path.substr(start, end - start) : ".";
    const std::string candidate = folder + "/" + name;
    if (is_executable(candidate)) return candidate;
    exists |= access(candidate.c_str(), F_OK) == 0;
    start = end + 1;
  }
  if (exists) throw Failure(name + ": found in PATH, but cannot be executed", kCannotExecute);
  throw Failure(name + ": not found in PATH", kNotFound);
}

ProgramFile look_at(const std::string& path) {
  ProgramFile program;
  program.path = path;
  const File file(path);
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) program.is_privileged = is_privileged(path, status);
  read_elf(file, &program);
  if (!program.is_elf) read_script(file, &program);
  return program;
}

ProgramFile program_behind(const ProgramFile& file) {
  ProgramFile program = file;
  // The kernel follows four interpreters.
  for (int depth = 0; depth < 5 && !program.script_interpreter.empty(); ++depth) {
    std::string next = program.script_interpreter;
    // "env python3", "env -S python3 -u"
    std::string argument = program.script_argument;
    if (argument.starts_with("-S")) {
      argument.erase(0, argument.find_first_not_of(" \t", 2));
    }
    argument = argument.substr(0, argument.find_first_of(" \t"));
    if (base_name(next) == "env" && !argument.empty() && argument[0] != '-' &&
        argument.find('=') == std::string::npos) {
      next = find_program(argument);
    }
    program = look_at(next);
  }
  return program;
}

std::string reason_against(const ProgramFile& program, const ProgramFile& library) {
  if (!program.is_elf) return "";
  if (program.is_64_bit != library.is_64_bit || program.machine != library.machine) {
    return "a program for another processor than the library";
  }
  if (program.interpreter.empty()) return "statically linked: no loader reads LD_PRELOAD";
  if (program.interpreter.find("ld-musl") != std::string::npos) {
    return "linked to musl; the library needs glibc";
  }
  if (program.is_privileged) {
    return "run with other rights than yours (setuid, setgid or file capabilities): the loader"
           " ignores LD_PRELOAD";
  }
  return "";
}

}  // namespace cli
