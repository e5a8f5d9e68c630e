// SPDX-License-Identifier: Apache-2.0
// Objects that the loader has mapped, and their symbols, read from memory. Unlike dlsym() and
// dladdr() this never takes the lock that dlopen() holds while constructors run, so that a thread
// which a constructor waits for may call it. dl_iterate_phdr() guards the list against unloading;
// its lock is held for no code of others. Any thread; no allocation; keeps dlerror().
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace runtime {

struct LoadedImage {
  const char* path;  // as the loader has it: empty for the program
  const char* soname;
  std::uintptr_t base;
  std::uintptr_t start, end;  // of its segments
  // Loaded with the program, hence never unloaded. Of others `path` and all below die with them.
  bool is_permanent;

  const ElfW(Sym) * symbols;
  const char* strings;
  const ElfW(Half) * versions;      // may be null
  const std::uint32_t* gnu_hash;    // may be null
  const std::uint32_t* plain_hash;  // may be null

  bool has(const void* address) const noexcept {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value >= start && value < end;
  }
};

// The definition that dlsym() would find in this object alone; null for what only code can resolve
// (ifunc) and for thread-local data.
void* find_symbol(const LoadedImage& image, const char* name) noexcept;

// The object that calls itself `soname`, or whose file is called so. Never this library.
bool find_image_called(const char* soname, LoadedImage* image) noexcept;

// The first object in the order of loading that defines `name`; `image` may be null.
void* find_first_symbol(const char* name, LoadedImage* image = nullptr) noexcept;
// The same behind this library. Objects loaded with the program stand in the order of its global
// scope.
void* find_next_symbol(const char* name, LoadedImage* image = nullptr) noexcept;

// The object that this code is part of.
bool find_own_image(LoadedImage* image) noexcept;

}  // namespace runtime
