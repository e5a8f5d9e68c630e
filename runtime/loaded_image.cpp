// SPDX-License-Identifier: Apache-2.0
// Symbol tables as the gABI and GNU hash tables lay them out.
#include "runtime/loaded_image.h"

#include <cstring>
#include <string_view>

#include "runtime/driver.h"

namespace runtime {
namespace {

// glibc moves the addresses of a dynamic section to where the object lies; the kernel's own object
// keeps offsets.
template <typename Value>
void take_address(const LoadedImage& image, ElfW(Addr) value, const Value** address) noexcept {
  if (value < image.base) value += image.base;
  if (value < image.start || value >= image.end) return;
  *address = reinterpret_cast<const Value*>(value);
}

bool read_dynamic(const ElfW(Dyn) * entry, LoadedImage* image) noexcept {
  std::size_t soname = 0;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) take_address(*image, value, &image->symbols);
    if (entry->d_tag == DT_STRTAB) take_address(*image, value, &image->strings);
    if (entry->d_tag == DT_VERSYM) take_address(*image, value, &image->versions);
    if (entry->d_tag == DT_GNU_HASH) take_address(*image, value, &image->gnu_hash);
    if (entry->d_tag == DT_HASH) take_address(*image, value, &image->plain_hash);
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
  }
  if (image->symbols == nullptr || image->strings == nullptr) return false;
  if (soname != 0) image->soname = image->strings + soname;
  return true;
}

// False: nothing can be looked up there.
bool read_image(const dl_phdr_info& info, LoadedImage* image) noexcept {
  *image = {};
  image->path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  image->soname = "";
  image->base = info.dlpi_addr;
  image->start = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const std::uintptr_t at = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (header.p_type != PT_LOAD) continue;
    if (at < image->start) image->start = at;
    if (at + header.p_memsz > image->end) image->end = at + header.p_memsz;
  }
  return dynamic != nullptr && read_dynamic(dynamic, image);
}

const char* last_part(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// What is looked for, and what was found.
struct Search {
  const char* name;
  bool (*matches)(Search& search, const LoadedImage& image) noexcept;
  bool is_behind_us;
  bool wants_image;  // else the walk ends where it is found
  bool is_found = false;
  void* address = nullptr;
  LoadedImage image{};
};

// The loader itself stands among what was loaded with the program: so does all that is before it.
bool is_loader(const LoadedImage& image) noexcept {
  return std::string_view(image.soname).starts_with("ld-linux") ||
         std::string_view(image.soname).starts_with("ld64.so");
}

int visit(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& search = *static_cast<Search*>(data);
  LoadedImage image;
  if (!read_image(*info, &image)) return 0;
  if (search.is_found) {
    search.image.is_permanent = is_loader(image);
    return search.image.is_permanent ? 1 : 0;
  }
  const bool is_skipped = search.is_behind_us;
  if (image.has(reinterpret_cast<const void*>(&visit))) search.is_behind_us = false;
  if (is_skipped || !search.matches(search, image)) return 0;
  search.is_found = true;
  search.image = image;
  search.image.is_permanent = is_loader(image);
  return search.image.is_permanent || !search.wants_image ? 1 : 0;
}

bool defines(Search& search, const LoadedImage& image) noexcept {
  search.address = find_symbol(image, search.name);
  return search.address != nullptr;
}

bool is_called(Search& search, const LoadedImage& image) noexcept {
  const bool is_ours = image.has(reinterpret_cast<const void*>(&visit));
  return !is_ours && (std::strcmp(image.soname, search.name) == 0 ||
                      std::strcmp(last_part(image.path), search.name) == 0);
}

bool is_our_own(Search&, const LoadedImage& image) noexcept {
  return image.has(reinterpret_cast<const void*>(&visit));
}

bool run(Search& search, LoadedImage* image) noexcept {
  dl_iterate_phdr(visit, &search);
  if (search.is_found && search.wants_image) *image = search.image;
  return search.is_found;
}

// Null unless symbol `index` is a definition of `name` that has an address of its own.
void* definition(const LoadedImage& image, std::uint32_t index, const char* name) noexcept {
  constexpr ElfW(Half) kHiddenVersion = 0x8000;
  const ElfW(Sym)& symbol = image.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return nullptr;
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC) return nullptr;
  if (std::strcmp(image.strings + symbol.st_name, name) != 0) return nullptr;
  if (image.versions != nullptr && (image.versions[index] & kHiddenVersion) != 0) return nullptr;
  const std::uintptr_t base = symbol.st_shndx == SHN_ABS ? 0 : image.base;
  return reinterpret_cast<void*>(base + symbol.st_value);
}

void* find_by_gnu_hash(const LoadedImage& image, const char* name) noexcept {
  const std::uint32_t bucket_count = image.gnu_hash[0];
  const std::uint32_t first_symbol = image.gnu_hash[1];
  const std::uint32_t filter_words = image.gnu_hash[2];
  if (bucket_count == 0 || filter_words == 0) return nullptr;
  std::uint32_t hash = 5381;
  for (const char* at = name; *at != '\0'; ++at) hash = hash * 33 + static_cast<unsigned char>(*at);

  constexpr std::uint32_t kBits = sizeof(ElfW(Addr)) * 8;
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(image.gnu_hash + 4);
  const ElfW(Addr) word = filter[hash / kBits % filter_words];
  if ((word >> hash % kBits & word >> (hash >> image.gnu_hash[3]) % kBits & 1) == 0) return nullptr;

  const auto* buckets = reinterpret_cast<const std::uint32_t*>(filter + filter_words);
  const std::uint32_t* chain = buckets + bucket_count;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t known = chain[index - first_symbol];
    if ((known | 1) == (hash | 1)) {
      if (void* found = definition(image, index, name)) return found;
    }
    if ((known & 1) != 0) return nullptr;
  }
}

void* find_by_plain_hash(const LoadedImage& image, const char* name) noexcept {
  const std::uint32_t bucket_count = image.plain_hash[0];
  if (bucket_count == 0) return nullptr;
  std::uint32_t hash = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    hash = (hash << 4) + static_cast<unsigned char>(*at);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  const std::uint32_t* buckets = image.plain_hash + 2;
  const std::uint32_t* chain = buckets + bucket_count;
  for (std::uint32_t index = buckets[hash % bucket_count]; index != 0; index = chain[index]) {
    if (void* found = definition(image, index, name)) return found;
  }
  return nullptr;
}

}  // namespace

void* find_symbol(const LoadedImage& image, const char* name) noexcept {
  if (image.gnu_hash != nullptr) return find_by_gnu_hash(image, name);
  if (image.plain_hash != nullptr) return find_by_plain_hash(image, name);
  return nullptr;
}

bool find_image_called(const char* soname, LoadedImage* image) noexcept {
  Search search{soname, is_called, false, true};
  return run(search, image);
}

void* find_first_symbol(const char* name, LoadedImage* image) noexcept {
  Search search{name, defines, false, image != nullptr};
  return run(search, image) ? search.address : nullptr;
}

void* find_next_symbol(const char* name, LoadedImage* image) noexcept {
  Search search{name, defines, true, image != nullptr};
  return run(search, image) ? search.address : nullptr;
}

bool find_own_image(LoadedImage* image) noexcept {
  Search search{"", is_our_own, false, true};
  return run(search, image);
}

}  // namespace runtime
