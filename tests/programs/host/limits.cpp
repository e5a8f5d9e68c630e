// SPDX-License-Identifier: Apache-2.0
// Lowers a limit of its own and goes on: RESOURCE VALUE early|late [spin], before CUDA starts or
// after it. The value of "as" is what may come on top, in KiB. As root it first becomes nobody, for
// whom the limits hold.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "tests/programs/host/tiny.h"

namespace {

constexpr uid_t kNobody = 65534;

struct Resource {
  const char* name;
  __rlimit_resource number;
};
constexpr Resource kResources[] = {
    {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},     {"as", RLIMIT_AS},
    {"fsize", RLIMIT_FSIZE},   {"memlock", RLIMIT_MEMLOCK}, {"sigpending", RLIMIT_SIGPENDING},
    {"data", RLIMIT_DATA},     {"core", RLIMIT_CORE},       {"msgqueue", RLIMIT_MSGQUEUE},
};

rlim_t address_space_in_use() {
  unsigned long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) std::_Exit(3);
  std::fclose(file);
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void lower(const char* name, rlim_t value) {
  for (const Resource& resource : kResources) {
    if (std::strcmp(resource.name, name) != 0) continue;
    if (resource.number == RLIMIT_AS) value = address_space_in_use() + value * 1024;
    const rlimit limit{value, value};
    if (setrlimit(resource.number, &limit) != 0) std::_Exit(4);
    return;
  }
  std::_Exit(5);
}

// Launches, and looks at mapped memory without a further call: what was queued must be sent all the
// same, whoever is there to do it.
unsigned spin_on_mapped_memory() {
  void* host = nullptr;
  CHECK(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* value = static_cast<volatile unsigned*>(host);
  *value = 0;
  CHECK(cuMemHostGetDevicePointer(&tiny::g_cell, host, 0));
  for (unsigned step = 1; step <= 20; ++step) {
    tiny::bump(1);
    while (*value != step) sched_yield();
  }
  return *value;
}

}  // namespace

int main(int, char** argv) {
  if (getuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 2;
  const rlim_t value = std::strtoull(argv[2], nullptr, 10);
  const bool is_early = std::strcmp(argv[3], "early") == 0;
  if (is_early) lower(argv[1], value);
  tiny::start();
  if (!is_early) lower(argv[1], value);
  for (unsigned i = 0; i < 300; ++i) tiny::bump(1);
  std::printf("%u\n", tiny::cell());
  if (argv[4] != nullptr) std::printf("%u\n", spin_on_mapped_memory());
}
