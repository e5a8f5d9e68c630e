// SPDX-License-Identifier: Apache-2.0
// The objects of this process (executable, libraries) as they were when a call site in them was
// first seen: a library that is unloaded later still has its name, build-id and base. Entries are
// never removed, and a number once given stays; one that there is no room for is in no module. Any
// thread: whoever finds another thread at work goes without. No lock of the loader (glibc 2.35 and
// later), no allocation: bounded memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace profiler {

inline constexpr std::size_t kMaxModules = 2048;
inline constexpr std::uint16_t kNoModule = 0xffff;
inline constexpr std::size_t kMaxBuildId = 20;

struct Module {
  const char* path;     // "" when it has none (the vdso)
  std::uintptr_t base;  // file addresses plus this are addresses in the process
  std::uintptr_t start, end;
  std::uint8_t build_id[kMaxBuildId];
  std::uint8_t build_id_bytes;  // 0: none
  bool is_ours;                 // this library
  bool is_cuda;                 // NVIDIA's: a call site is looked for behind it
  bool is_executable;           // the program itself
};

// Brings the list up to date for these addresses, notes what was unloaded, and finds the module of
// each address; kNoModule for those in none (code made at run time). A list that another thread is
// at is waited for, but not for ever. kOwn: the addresses are the caller's, whose stack keeps the
// objects loaded; others may be unloaded meanwhile, so they are read through the kernel, by a call
// that a program's threads may be forbidden.
enum class WhoseStack : std::uint8_t { kOwn, kOther };
void find_modules(const std::uintptr_t* addresses, std::uint16_t* modules, std::size_t count,
                  WhoseStack whose = WhoseStack::kOwn) noexcept;

// Null past the end. What it points to does not change.
const Module* module_at(std::size_t number) noexcept;
// Whether it had been unloaded when the list was last brought up to date.
bool is_unloaded(std::size_t number) noexcept;

// The last part of the path.
const char* base_name(const char* path) noexcept;
// Whether a file of this name belongs to NVIDIA's CUDA libraries.
bool is_cuda_library(const char* path) noexcept;

}  // namespace profiler
