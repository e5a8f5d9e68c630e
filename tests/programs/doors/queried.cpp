// SPDX-License-Identifier: Apache-2.0
// The door of cuGetProcAddress, both versions: for every row the wrapper of exactly that ABI,
// itself included.
#include "runtime/driver.h"
#include "tests/programs/doors/door_check.h"

namespace {

using doors::check;
using Query1 = PFN_cuGetProcAddress_v11030;
using Query2 = PFN_cuGetProcAddress_v12000;

struct Queries {
  void* driver;
  Query1 query1;
  Query2 query2;
};

cuuint64_t flags_of(const runtime::EntryRow& row) {
  return row.per_thread_default() ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                  : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
}

void check_row(const Queries& ask, const runtime::EntryRow& row) {
  void* expected = dlsym(ask.driver, row.symbol);
  void* found = nullptr;
  check(ask.query1(row.api, &found, row.since, flags_of(row)) == CUDA_SUCCESS, "query 1",
        row.symbol);
  check(doors::is_answered(found), "query 1 answered", row.symbol);
  check(found == expected, "query 1 gives the row", row.symbol);
  found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  check(ask.query2(row.api, &found, row.since, flags_of(row), &status) == CUDA_SUCCESS, "query 2",
        row.symbol);
  check(status == CU_GET_PROC_ADDRESS_SUCCESS, "status", row.symbol);
  check(found == expected, "query 2 gives the row", row.symbol);
  found = nullptr;
  check(ask.query2(row.api, &found, row.since, flags_of(row), nullptr) == CUDA_SUCCESS, "no status",
        row.symbol);
  check(found == expected, "query 2 without status gives the row", row.symbol);
}

void check_flags(const Queries& ask) {
  void* found = nullptr;
  ask.query2("cuLaunchKernel", &found, 4000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  check(found == dlsym(ask.driver, "cuLaunchKernel"), "default flags are the legacy stream's");
  ask.query2("cuLaunchKernel", &found, 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
             nullptr);
  check(found == dlsym(ask.driver, "cuLaunchKernel_ptsz"), "the per-thread twin by flags");
  ask.query2("cuCtxSynchronize", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  check(found == dlsym(ask.driver, "cuCtxSynchronize"), "an old ABI");
  ask.query2("cuCtxSynchronize", &found, 13000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  check(found == dlsym(ask.driver, "cuCtxSynchronize_v2"), "the new ABI of that name");
}

void check_itself(const Queries& ask) {
  void* found = nullptr;
  ask.query2("cuGetProcAddress", &found, 11030, 0, nullptr);
  check(found == reinterpret_cast<void*>(ask.query1), "the query itself, four arguments");
  ask.query2("cuGetProcAddress", &found, 12000, 0, nullptr);
  check(found == reinterpret_cast<void*>(ask.query2), "the query itself, five arguments");
  // Asked through the answer: still wrappers.
  void* nested = nullptr;
  reinterpret_cast<Query2>(found)("cuInit", &nested, 2000, 0, nullptr);
  check(nested == dlsym(ask.driver, "cuInit"), "through the query's own answer");
}

void check_missing(const Queries& ask) {
  int marker = 0;
  void* found = &marker;
  check(ask.query1("cuNoSuchEntry", &found, 13000, 0) == CUDA_ERROR_NOT_FOUND,
        "missing by query 1");
  check(found == nullptr || found == &marker, "a missing name gives no address");
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  found = &marker;
  ask.query2("cuNoSuchEntry", &found, 13000, 0, &status);
  check(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "missing by query 2");
  check(found == nullptr || found == &marker, "a missing name gives no address");
}

}  // namespace

int main() {
  Queries ask{};
  ask.driver = doors::open_driver();
  ask.query1 = reinterpret_cast<Query1>(dlsym(ask.driver, "cuGetProcAddress"));
  ask.query2 = reinterpret_cast<Query2>(dlsym(ask.driver, "cuGetProcAddress_v2"));
  if (!check(ask.query1 != nullptr && ask.query2 != nullptr, "both queries"))
    return doors::finish();
  for (const runtime::EntryRow& row : runtime::kEntryTable) check_row(ask, row);
  check_flags(ask);
  check_itself(ask);
  check_missing(ask);
  return doors::finish();
}
