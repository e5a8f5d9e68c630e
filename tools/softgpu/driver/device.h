// SPDX-License-Identifier: Apache-2.0
// The devices: identical, as many as CAJETA_SOFTGPU_DEVICES says. Constants only; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "tools/softgpu/driver/state.h"

namespace softgpu {

int device_count();
// Fails with INVALID_DEVICE.
void require_device(CUdevice device);
std::size_t total_memory(CUdevice device);
std::string device_name();
// What cuDeviceGetAttribute answers. False: no such attribute.
bool device_attribute(CUdevice_attribute attribute, CUdevice device, int* value);
// Thread block clusters: compute capability 9.0 and later.
bool has_clusters();

}  // namespace softgpu
