// SPDX-License-Identifier: Apache-2.0
// The exports and cuGetProcAddress against the table of driver entries.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/catch.h"

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);

namespace {

struct Row {
  const char* symbol;
  const char* api;
  int since;
  std::string flavour;
};

const std::vector<Row> kRows = {
#define DRIVER_ENTRY(symbol, api, since, flavour, class, rule, stream, failure) \
  {#symbol, #api, since, #flavour},
#include "runtime/driver_entries.def"
};

void* exported(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library != nullptr);
  return dlsym(library, name);
}

struct Answer {
  CUresult code;
  void* function;
  CUdriverProcAddressQueryResult status;
};

Answer ask(const char* name, int version, cuuint64_t flags = 0) {
  Answer answer{CUDA_SUCCESS, nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  answer.code = cuGetProcAddress_v2(name, &answer.function, version, flags, &answer.status);
  return answer;
}

}  // namespace

TEST_CASE("every row of the table is exported and found by name, version and flavour") {
  REQUIRE(kRows.size() == 637 + 35);  // the stub of CUDA 13.0, and GL, EGL and VDPAU
  for (const Row& row : kRows) {
    INFO(row.symbol);
    void* const function = exported(row.symbol);
    CHECK(function != nullptr);
    const cuuint64_t flags =
        row.flavour.empty() ? 0 : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const Answer answer = ask(row.api, row.since, flags);
    CHECK(answer.code == CUDA_SUCCESS);
    CHECK(answer.status == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(answer.function == function);
  }
}

TEST_CASE("the newest ABI that is not newer than asked for is chosen") {
  CHECK(ask("cuMemAlloc", 2000).function == exported("cuMemAlloc"));
  CHECK(ask("cuMemAlloc", 3010).function == exported("cuMemAlloc"));
  CHECK(ask("cuMemAlloc", 13000).function == exported("cuMemAlloc_v2"));
  CHECK(ask("cuCtxCreate", 12000).function == exported("cuCtxCreate_v3"));
  CHECK(ask("cuLaunchKernel", 4000, 2).function == exported("cuLaunchKernel"));
  CHECK(ask("cuLaunchKernel", 7000, 2).function == exported("cuLaunchKernel_ptsz"));
  CHECK(ask("cuLaunchKernel", 7000, 1).function == exported("cuLaunchKernel"));
  CHECK(ask("cuInit", 13000, 2).function == exported("cuInit"));
}

TEST_CASE("what cannot be found is told apart") {
  const Answer missing = ask("cuNoSuchThing", 13000);
  CHECK(missing.code == CUDA_SUCCESS);
  CHECK(missing.function == nullptr);
  CHECK(missing.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const Answer early = ask("cuGraphLaunch", 9000);
  CHECK(early.function == nullptr);
  CHECK(early.status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  // Names are asked for without version suffixes.
  CHECK(ask("cuMemAlloc_v2", 13000).status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* function = &function;
  CHECK(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0) == CUDA_ERROR_NOT_FOUND);
  CHECK(function == nullptr);
  CHECK(cuGetProcAddress("cuInit", &function, 13000, 0) == CUDA_SUCCESS);
  CHECK(function == exported("cuInit"));
  CHECK(cuGetProcAddress_v2("cuInit", &function, 13000, 0, nullptr) == CUDA_SUCCESS);
  CHECK(cuGetProcAddress_v2(nullptr, &function, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress_v2("cuInit", &function, 13000, 8, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("private export tables are not offered") {
  const void* table = &table;
  CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_FOUND);
  CHECK(table == nullptr);
}
