// SPDX-License-Identifier: Apache-2.0
// The plugin of loader.cpp: its constructor joins a worker that calls entries which nobody called
// before.
#include "tests/programs/host/loader_plugin.h"

#include <thread>

#include "tests/programs/host/tiny.h"

namespace {

void work_with(const LoaderTable& table) {
  const auto retain = reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(table.entries[0]);
  const auto set_current = reinterpret_cast<CUresult (*)(CUcontext)>(table.entries[1]);
  const auto create = reinterpret_cast<CUresult (*)(CUstream*, unsigned)>(table.entries[2]);
  const auto synchronize = reinterpret_cast<CUresult (*)(CUstream)>(table.entries[3]);
  CUcontext context;
  CUstream stream;
  CHECK(retain(&context, 0));
  CHECK(set_current(context));
  CHECK(create(&stream, 0));
  CHECK(synchronize(stream));
}

void work() {
  CUstream stream;
  tiny::start();
  CHECK(cuStreamCreate(&stream, 0));
  for (unsigned i = 0; i < 20; ++i) tiny::bump(1, stream);
  CHECK(cuStreamSynchronize(stream));
  std::printf("%u\n", tiny::cell());
}

[[gnu::constructor]] void load() {
  std::thread([] {
    const LoaderTable& table = *loader_table();
    table.entries[0] != nullptr ? work_with(table) : work();
    std::printf("plugin is ready\n");
  }).join();
}

}  // namespace
