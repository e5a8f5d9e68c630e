// SPDX-License-Identifier: Apache-2.0
// The threads of the device. They begin with the default floating-point environment, and not with
// that of the thread that happened to be the first to need them.
#pragma once

#include <cfenv>
#include <thread>
#include <utility>

namespace softgpu {

// Never waited for: they may outlive main().
template <class Work>
void start_thread(Work work) {
  std::thread([work = std::move(work)] {
    std::fesetenv(FE_DFL_ENV);
    work();
  }).detach();
}

}  // namespace softgpu
