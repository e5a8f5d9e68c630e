// SPDX-License-Identifier: Apache-2.0
// The exported dlsym. Names that cannot be the driver's are passed on by a tail jump, so that libc
// sees the true caller (RTLD_NEXT, RTLD_DEFAULT) and this code touches neither the thread pointer
// nor any state: sanitizer runtimes call it before they have started. This file is built without
// instrumentation for the same reason. The real dlsym is found by dlvsym, which is therefore not
// hooked; no CUDA library has symbol versions to ask for.
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/real_dlsym.h"
#include "runtime/reentry.h"
#include "shim/lifecycle.h"
#include "shim/proc_address.h"

extern "C" {
// Read by the assembly. Written by any thread with the one same value.
[[gnu::visibility("hidden")]] runtime::DlsymFunction shim_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] void* shim_resolve_dlsym() noexcept;
[[gnu::visibility("hidden")]] void* shim_answer_dlsym(void* handle, const char* name,
                                                      const void* caller) noexcept;
}

namespace shim {

namespace {

// Returned by shim_answer_dlsym for "let libc answer, with the true caller".
void* const kForward = reinterpret_cast<void*>(1);

runtime::DlsymFunction real_dlsym() noexcept {
  if (shim_real_dlsym == nullptr) shim_resolve_dlsym();
  return shim_real_dlsym;
}

const link_map* object_of(const void* address) noexcept {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return nullptr;
  return map;
}

// Looks `name` up in an object that is loaded, and in its dependencies. A link_map is no handle
// yet: libraries loaded at program start have a search list only after a dlopen. The main program
// and the vdso have no path, and are left out.
void* find_in(const link_map* object, const char* name) noexcept {
  if (strchr(object->l_name, '/') == nullptr) return nullptr;
  void* handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = real_dlsym()(handle, name);
  dlclose(handle);
  return found;
}

// What the look-up would find if this library were not loaded: behind us in the global scope, else
// in the caller's own.
void* find_without_us(const char* name, const link_map* caller) noexcept {
  void* found = real_dlsym()(RTLD_NEXT, name);
  if (found == nullptr && caller != nullptr) found = find_in(caller, name);
  return runtime::is_own_address(found) ? nullptr : found;
}

// RTLD_NEXT as seen from `caller`: the first object loaded after it that defines `name` itself.
// libc would take its own caller, which is us, so the list is walked here.
void* find_after(const link_map* caller, const char* name) noexcept {
  for (const link_map* map = caller->l_next; map != nullptr; map = map->l_next) {
    void* found = find_in(map, name);
    if (found != nullptr && object_of(found) == map) return found;
  }
  return nullptr;
}

// The driver's address behind the look-up; null: there is none; kForward: not ours to answer.
void* find_for(void* handle, const char* name, const link_map* caller) noexcept {
  void* found;
  if (handle == RTLD_NEXT) {
    found = caller != nullptr ? find_after(caller, name) : nullptr;
    if (found == nullptr) return kForward;
  } else {
    found = real_dlsym()(handle, name);
    if (found == nullptr && handle == RTLD_DEFAULT) return kForward;
  }
  return runtime::is_own_address(found) ? find_without_us(name, caller) : found;
}

}  // namespace

}  // namespace shim

void* shim_resolve_dlsym() noexcept {
  const runtime::DlsymFunction found = runtime::find_real_dlsym();
  __atomic_store_n(&shim_real_dlsym, found, __ATOMIC_RELAXED);
  return reinterpret_cast<void*>(found);
}

// Names of the form cu[A-Z]* only. Returns the answer, or kForward.
void* shim_answer_dlsym(void* handle, const char* name, const void* caller) noexcept {
  using shim::kForward;
  // The driver's own look-ups (under WSL libcuda.so.1 loads the real one by dlsym) get what they
  // ask for.
  if (runtime::in_own_call()) return kForward;
  const bool is_open = shim::doors_are_open();
  const runtime::ReentryGuard guard;
  if (is_open) runtime::note_driver_in_lookup();
  if (is_open && runtime::is_in_driver(caller)) return kForward;
  void* found = shim::find_for(handle, name, shim::object_of(caller));
  // Closed doors hide our exports all the same: the program is to find what it would without us.
  if (found == kForward || !is_open) return found;
  const shim::Found answer = shim::wrap_symbol(found, name);
  shim::log_lookup("dlsym", name, -1, 0, answer.answer);
  // Another library's own entry of that name: libc knows best how to bind it (ifunc, scope).
  if (answer.answer == shim::Answer::kDriver && handle == RTLD_NEXT) return kForward;
  return answer.address;
}

#if defined(__x86_64__)
// rdi = handle, rsi = name, (rsp) = the caller. rax may be changed freely.
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, @function\n"
    ".balign 16\n"
    "dlsym:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  testq %rsi, %rsi\n"
    "  jz 1f\n"
    "  cmpb $'c', (%rsi)\n"
    "  jne 1f\n"
    "  cmpb $'u', 1(%rsi)\n"
    "  jne 1f\n"
    "  movzbl 2(%rsi), %eax\n"
    "  subl $'A', %eax\n"
    "  cmpl $25, %eax\n"
    "  ja 1f\n"
    "  pushq %rdi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  pushq %rsi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  movq 16(%rsp), %rdx\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call shim_answer_dlsym\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rsi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rdi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  cmpq $1, %rax\n"
    "  je 1f\n"
    "  ret\n"
    "1:\n"
    "  movq shim_real_dlsym(%rip), %rax\n"
    "  testq %rax, %rax\n"
    "  jz 2f\n"
    "  jmp *%rax\n"
    "2:\n"
    "  pushq %rdi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  pushq %rsi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call shim_resolve_dlsym\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rsi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rdi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  jmp *%rax\n"
    "  .cfi_endproc\n"
    "  .size dlsym, . - dlsym\n");
#else
#error "write the tail-jumping dlsym of this architecture"
#endif
