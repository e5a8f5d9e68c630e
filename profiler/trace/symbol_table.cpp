// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/symbol_table.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "profiler/symbolize.h"

namespace profiler {
namespace {

// The full table of a large debug build is left alone: .dynsym has the functions that callers of
// other libraries see, and names the rest when the trace ends.
constexpr std::uint64_t kMostTableBytes = 32 * 1024 * 1024;
constexpr std::size_t kSymbolsAtOnce = 512;
constexpr std::size_t kLongestName = 2048;

class ElfFile {
 public:
  explicit ElfFile(const char* path) noexcept : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~ElfFile() {
    if (file_ >= 0) close(file_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool is_open() const noexcept { return file_ >= 0; }
  // Bytes read; 0 also when they cannot be.
  std::size_t read(void* to, std::size_t size, std::uint64_t at) const noexcept {
    const ssize_t bytes = pread(file_, to, size, static_cast<off_t>(at));
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }
  template <typename T>
  bool read_one(T* to, std::uint64_t at) const noexcept {
    return read(to, sizeof *to, at) == sizeof *to;
  }

 private:
  int file_;
};

struct Tables {
  ElfW(Shdr) symbols;
  ElfW(Shdr) names;
};

bool find_tables(const ElfFile& file, Tables* tables) noexcept {
  ElfW(Ehdr) header;
  if (!file.read_one(&header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_shentsize != sizeof(ElfW(Shdr))) return false;
  const auto place = [&header](std::uint64_t section) {
    return header.e_shoff + section * sizeof(ElfW(Shdr));
  };
  bool is_found = false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section;
    if (!file.read_one(&section, place(i))) return false;
    const bool is_full = section.sh_type == SHT_SYMTAB && section.sh_size <= kMostTableBytes;
    if (!is_full && (section.sh_type != SHT_DYNSYM || is_found)) continue;
    if (section.sh_entsize != sizeof(ElfW(Sym)) || section.sh_link >= header.e_shnum) continue;
    if (!file.read_one(&tables->names, place(section.sh_link))) return false;
    tables->symbols = section;
    is_found = true;
    if (is_full) break;
  }
  return is_found;
}

bool is_function(const ElfW(Sym) & symbol) noexcept {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_size > 0;
}

// Of functions that lie in one another the inner one holds.
void note_function(const ElfW(Sym) & symbol, NamedAddress* addresses, std::size_t count) noexcept {
  NamedAddress* const end = addresses + count;
  NamedAddress* at = std::lower_bound(
      addresses, end, symbol.st_value,
      [](const NamedAddress& left, std::uint64_t value) { return left.address < value; });
  for (; at != end && at->address - symbol.st_value < symbol.st_size; ++at) {
    if (at->is_found && at->start >= symbol.st_value) continue;
    at->is_found = true;
    at->start = symbol.st_value;
    at->name_at = symbol.st_name;
  }
}

void read_name(const ElfFile& file, const ElfW(Shdr) & names, NamedAddress* address) noexcept {
  char name[kLongestName];
  const std::uint64_t left =
      address->name_at < names.sh_size ? names.sh_size - address->name_at : 0;
  const std::size_t bytes = file.read(name, std::min<std::uint64_t>(sizeof name - 1, left),
                                      names.sh_offset + address->name_at);
  name[bytes] = '\0';
  if (!demangle(name, address->name, sizeof address->name)) {
    const std::size_t length = std::min(std::strlen(name), sizeof address->name - 1);
    std::memcpy(address->name, name, length);
    address->name[length] = '\0';
  }
  address->is_found = address->name[0] != '\0';
}

}  // namespace

void find_in_symbol_table(const char* path, NamedAddress* addresses, std::size_t count) noexcept {
  const ElfFile file(path);
  Tables tables;
  if (!file.is_open() || !find_tables(file, &tables)) return;
  ElfW(Sym) symbols[kSymbolsAtOnce];
  for (std::uint64_t done = 0; done < tables.symbols.sh_size;) {
    const std::uint64_t left = tables.symbols.sh_size - done;
    const std::size_t bytes = file.read(symbols, std::min<std::uint64_t>(sizeof symbols, left),
                                        tables.symbols.sh_offset + done);
    const std::size_t read = bytes / sizeof symbols[0];
    if (read == 0) break;
    for (std::size_t i = 0; i < read; ++i) {
      if (is_function(symbols[i])) note_function(symbols[i], addresses, count);
    }
    done += read * sizeof symbols[0];
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (addresses[i].is_found) read_name(file, tables.names, &addresses[i]);
  }
}

}  // namespace profiler
