// SPDX-License-Identifier: Apache-2.0
#include "runtime/options.h"

#include <cstdlib>

#include "tests/unit/catch.h"

using runtime::DeferMode;

namespace {

struct Variable {
  const char* name;
  Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
};

runtime::Options with(const char* name, const char* value) {
  Variable variable(name, value);
  return runtime::read_options();
}

}  // namespace

TEST_CASE("deferral by name, alias and case") {
  CHECK(runtime::read_options().defer == DeferMode::kUnset);
  CHECK(with("CAJETA_XPU_DEFER", "all").defer == DeferMode::kAll);
  CHECK(with("CAJETA_XPU_DEFER", "1").defer == DeferMode::kAll);
  CHECK(with("CAJETA_XPU_DEFER", "ALL").defer == DeferMode::kAll);
  for (const char* never : {"0", "off", "none"})
    CHECK(with("CAJETA_XPU_DEFER", never).defer == DeferMode::kNever);
  for (const char* wrong : {"al", "2", "yes please"}) {
    CHECK(with("CAJETA_XPU_DEFER", wrong).defer == DeferMode::kUnset);
  }
}

TEST_CASE("numbers have bounds and suffixes; wrong ones keep the default") {
  CHECK(runtime::read_options().deadline_us == 200);
  CHECK(with("CAJETA_XPU_DEFER_DEADLINE_US", "1000").deadline_us == 1000);
  for (const char* wrong : {"0", "-1", "", "1.5", "200us", "99999999999999999999", "3600000001"}) {
    CHECK(with("CAJETA_XPU_DEFER_DEADLINE_US", wrong).deadline_us == 200);
  }
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "64M").graph_bytes == 64ull << 20);
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "0").graph_bytes == 0);
  CHECK(with("CAJETA_XPU_GRAPH_BYTES", "2000G").graph_bytes == 256ull << 20);
}

TEST_CASE("switches take the usual words") {
  for (const char* on : {"1", "on", "YES", "true"}) CHECK(with("CAJETA_XPU_DISABLE", on).disabled);
  for (const char* off : {"0", "off", "", "maybe"})
    CHECK_FALSE(with("CAJETA_XPU_DISABLE", off).disabled);
  CHECK(with("CUDA_LAUNCH_BLOCKING", "1").launch_blocking);
  CHECK_FALSE(with("CUDA_LAUNCH_BLOCKING", "0").launch_blocking);
}
