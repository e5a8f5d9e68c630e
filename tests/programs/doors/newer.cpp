// SPDX-License-Identifier: Apache-2.0
// A driver newer than the table (fake_driver.cpp): unknown entries work through generic thunks with
// all their arguments, a new ABI under an old name is not mistaken for the old one, entries that
// share an address keep their wrappers.
#include "runtime/driver.h"
#include "tests/programs/doors/door_check.h"

namespace {

using doors::check;
using Query2 = PFN_cuGetProcAddress_v12000;
using Future = std::int64_t (*)(int, std::int64_t, int, std::int64_t, int, std::int64_t, int,
                                std::int64_t, double, float, double, double, double, double, double,
                                double, double, double);
using Calls = long (*)(const char*);

constexpr std::int64_t kFutureResult =
    1 + 4 + 9 + 16 + 25 + 36 + 49 + 64 + 1000 * (1 + 4 + 9 + 16 + 25 + 36 + 49 + 64 + 81 + 100) / 2;

void check_unknown_entry(void* driver, Query2 query) {
  void* by_name = dlsym(driver, "cuFutureEntry");
  check(doors::lives_in(by_name, "cajeta_xpu"), "a thunk for the unknown entry");
  auto future = reinterpret_cast<Future>(by_name);
  const std::int64_t result =
      future(1, 2, 3, 4, 5, 6, 7, 8, .5, 1.f, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5);
  check(result == kFutureResult, "every argument arrived");
  void* by_query = nullptr;
  query("cuFutureEntry", &by_query, 13030, 0, nullptr);
  check(by_query == by_name, "one thunk per entry");
  query("cuFutureHidden", &by_query, 13030, 0, nullptr);
  check(doors::lives_in(by_query, "cajeta_xpu"), "a thunk for an entry that dlsym does not know");
  check(reinterpret_cast<CUresult (*)(unsigned, void*)>(by_query)(0, nullptr) == CUDA_SUCCESS,
        "it works");
}

void check_new_abi(void* driver, Query2 query, Calls calls) {
  void* found = nullptr;
  query("cuInit", &found, 13030, 0, nullptr);
  check(found != dlsym(driver, "cuInit"), "a newer ABI is not the row's");
  check(doors::lives_in(found, "cajeta_xpu"), "it gets a thunk");
  const long before = calls("newer");
  reinterpret_cast<CUresult (*)(unsigned, void*)>(found)(0, nullptr);
  check(calls("newer") == before + 1 && calls("cuInit") == 0, "and reaches the newer entry");
}

// The query knows another address for cuCtxAttach than dlsym: the wrapper must call that one from
// then on.
void check_other_address(void* driver, Query2 query, Calls calls) {
  void* found = nullptr;
  query("cuCtxAttach", &found, 13000, 0, nullptr);
  check(found == dlsym(driver, "cuCtxAttach"), "the row's wrapper");
  reinterpret_cast<CUresult (*)(CUcontext*, unsigned)>(found)(nullptr, 0);
  check(calls("cuCtxAttach") == 1, "the wrapper reaches the entry");
}

void check_shared_address(void* driver, Calls calls) {
  void* is_capturing = dlsym(driver, "cuStreamIsCapturing");
  void* end_capture = dlsym(driver, "cuStreamEndCapture");
  check(is_capturing != end_capture, "entries that share an address keep their own wrappers");
  CUstreamCaptureStatus status;
  const long before = calls("shared");
  reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureStatus*)>(is_capturing)(nullptr, &status);
  check(calls("shared") == before + 1, "the wrapper reaches the shared entry");
}

}  // namespace

int main() {
  void* driver = doors::open_driver();
  auto query = reinterpret_cast<Query2>(dlsym(driver, "cuGetProcAddress_v2"));
  auto calls = reinterpret_cast<Calls>(dlsym(driver, "fake_calls"));
  check_new_abi(driver, query, calls);
  check(reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"))(0) == CUDA_SUCCESS,
        "cuInit");
  check_unknown_entry(driver, query);
  check_other_address(driver, query, calls);
  check_shared_address(driver, calls);
  auto* data = static_cast<int*>(dlsym(driver, "cuFutureData"));
  check(data != nullptr && *data == 42, "data is not wrapped");
  return doors::finish();
}
