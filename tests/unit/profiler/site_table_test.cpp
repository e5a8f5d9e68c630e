// SPDX-License-Identifier: Apache-2.0
// Stacks are kept once, counted from many threads, and dropped rather than waited for when the
// table is full; modules are known by address, build-id included.
#include "profiler/site_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "profiler/module_list.h"
#include "profiler/stack_walk.h"
#include "profiler/symbolize.h"
#include "tests/unit/catch.h"

using namespace profiler;
using runtime::EntryId;

namespace {

void start_once() {
  static const bool is_started = start_sites();
  REQUIRE(is_started);
}

std::vector<const Site*> sites_of(EntryId entry) {
  std::vector<const Site*> found;
  for (std::size_t slot = 0; slot < kMaxSites; ++slot) {
    const Site* site = site_at(slot);
    if (site != nullptr && site->entry == entry) found.push_back(site);
  }
  return found;
}

std::uintptr_t address_in_this_file() {
  return reinterpret_cast<std::uintptr_t>(&sites_of) + 1;
}

}  // namespace

TEST_CASE("nothing is kept before the table exists") {
  const std::uintptr_t stack[] = {1};
  if (site_at(0) == nullptr) record_site(EntryId::cuMemAlloc, {stack, 1}, 5, {});
  CHECK(sites_of(EntryId::cuMemAlloc).empty());
}

TEST_CASE("a stack is kept once, and told from others by entry, depth and addresses") {
  start_once();
  const std::uintptr_t stack[] = {0x1000, 0x2000, 0x3000};
  const std::uintptr_t other[] = {0x1000, 0x2001, 0x3000};
  CallFacts facts;
  facts.bytes = 4;
  facts.flushed = true;
  facts.host = HostSide::kPageable;
  record_site(EntryId::cuCtxSynchronize, {stack, 3}, 50, facts);
  record_site(EntryId::cuCtxSynchronize, {stack, 3}, 70, {});
  record_site(EntryId::cuCtxSynchronize, {other, 3}, 1, {});
  record_site(EntryId::cuCtxSynchronize, {stack, 2}, 1, {});
  record_site(EntryId::cuStreamQuery, {stack, 3}, 1, {});
  record_site(EntryId::cuStreamQuery, {nullptr, 0}, 1, {});
  CHECK(sites_of(EntryId::cuStreamQuery).size() == 2);
  const auto sites = sites_of(EntryId::cuCtxSynchronize);
  REQUIRE(sites.size() == 3);
  for (const Site* site : sites) {
    if (site->calls.load() != 2) continue;
    CHECK(site->total_ns.load() == 120);
    CHECK(site->max_ns.load() == 70);
    CHECK(site->bytes.load() == 4);
    CHECK(site->flushed.load() == 1);
    CHECK(site->pageable_calls.load() == 1);
    CHECK(site->modules[0] == kNoModule);
  }
}

TEST_CASE("threads that meet the same stacks lose no call") {
  start_once();
  constexpr std::uint64_t kCalls = 20'000;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([] {
      for (std::uint64_t call = 0; call < kCalls; ++call) {
        const std::uintptr_t stack[] = {0x5000 + call % 32, 0x6000};
        record_site(EntryId::cuMemFree_v2, {stack, 2}, 3, {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t calls = 0;
  std::set<std::uintptr_t> stacks;
  for (const Site* site : sites_of(EntryId::cuMemFree_v2)) {
    calls += site->calls.load();
    stacks.insert(site->addresses[0]);
  }
  CHECK(calls == 4 * kCalls);
  CHECK(stacks.size() == 32);
}

TEST_CASE("modules are found by address, with their build-id, and gone ones are told") {
  void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto in_library = reinterpret_cast<std::uintptr_t>(dlsym(library, "ZSTD_versionNumber"));
  const std::uintptr_t addresses[] = {in_library + 1, address_in_this_file(), 16};
  std::uint16_t modules[3];
  find_modules(addresses, modules, 3);
  REQUIRE(module_at(modules[0]) != nullptr);
  CHECK(std::strstr(module_at(modules[0])->path, "libzstd") != nullptr);
  CHECK(module_at(modules[0])->build_id_bytes > 0);
  CHECK_FALSE(module_at(modules[0])->is_executable);
  REQUIRE(module_at(modules[1]) != nullptr);
  CHECK(std::strcmp(base_name(module_at(modules[1])->path), "profiler_test") == 0);
  CHECK(module_at(modules[1])->is_executable);
  CHECK(modules[2] == kNoModule);
  CHECK_FALSE(is_unloaded(modules[0]));
  REQUIRE(dlclose(library) == 0);
  if (dlopen("libzstd.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) return;  // somebody else has it
  find_modules(nullptr, nullptr, 0);
  CHECK(is_unloaded(modules[0]));
  CHECK(std::strstr(module_at(modules[0])->path, "libzstd") != nullptr);
}

TEST_CASE("threads that look at once all find their module") {
  std::atomic<int> missed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&missed] {
      const auto address = reinterpret_cast<std::uintptr_t>(&module_at) + 1;
      for (int look = 0; look < 500; ++look) {
        std::uint16_t number = 0;
        find_modules(&address, &number, 1);
        if (number == kNoModule) ++missed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(missed == 0);
}

TEST_CASE("NVIDIA's libraries are told from others by name") {
  for (const char* path : {"/usr/lib/libcuda.so.1", "libcudart.so.12", "/x/libcublasLt.so.12",
                           "libcufft.so.11", "libcudnn_ops.so.9", "libnvidia-ml.so.1"}) {
    CHECK(is_cuda_library(path));
  }
  for (const char* path : {"", "/opt/libcuda/app", "libcupy.so", "libtorch_cuda.so", "libc.so.6"}) {
    CHECK_FALSE(is_cuda_library(path));
  }
}

TEST_CASE("symbols of one file, and none of files that are not there") {
  struct Found {
    std::string function, file;
    int frames = 0;
  };
  const auto take = [](void* context, const SourceFrame& frame) {
    auto* found = static_cast<Found*>(context);
    if (found->frames++ > 0) return;
    if (frame.function != nullptr) found->function = frame.function;
    if (frame.file != nullptr) found->file = frame.file;
  };
  const std::uintptr_t address = address_in_this_file();
  std::uint16_t number = kNoModule;
  find_modules(&address, &number, 1);
  const Module* module = module_at(number);
  REQUIRE(module != nullptr);
  Found found;
  symbolize(module->path, address - 1 - module->base, take, &found);
  CHECK(found.function.find("sites_of") != std::string::npos);
  CHECK(found.file.find("site_table_test.cpp") != std::string::npos);
  Found nothing;
  symbolize("/no/such/file", 0x1000, take, &nothing);
  symbolize("", 0x1000, take, &nothing);
  symbolize("/etc/passwd", 0x1000, take, &nothing);
  CHECK(nothing.frames == 0);
}

namespace {
[[gnu::noinline]] std::size_t walk_here(std::uintptr_t* addresses, std::size_t capacity) {
  const std::size_t count = walk_stack(__builtin_frame_address(0), addresses, capacity);
  asm volatile("" ::: "memory");  // the call above stays a call
  return count;
}
}  // namespace

TEST_CASE("stack walks stay within what they were given and keep errno") {
  for (const bool allow_libunwind : {false, true}) {
    start_stack_walk(allow_libunwind);
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{16}}) {
      std::uintptr_t addresses[17];
      std::fill(std::begin(addresses), std::end(addresses), 7);
      errno = EDOM;
      const std::size_t count = walk_here(addresses, capacity);
      CHECK(errno == EDOM);
      REQUIRE(count <= capacity);
      CHECK(addresses[capacity] == 7);
    }
    std::thread([] {
      std::uintptr_t addresses[16];
      CHECK(walk_here(addresses, 16) <= 16);
    }).join();
  }
}

TEST_CASE("a full table drops and counts") {
  start_once();
  const std::uint64_t dropped = dropped_site_calls();
  for (std::uintptr_t stack = 1; stack <= 4 * kMaxSites; ++stack) {
    record_site(EntryId::cuMemcpyDtoD_v2, {&stack, 1}, 1, {});
  }
  std::uint64_t kept = 0;
  for (const Site* site : sites_of(EntryId::cuMemcpyDtoD_v2)) kept += site->calls.load();
  CHECK(kept + dropped_site_calls() - dropped == 4 * kMaxSites);
  CHECK(dropped_site_calls() > dropped);
}
