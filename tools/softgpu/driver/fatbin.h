// SPDX-License-Identifier: Apache-2.0
// Finds the PTX in what programs hand to cuModuleLoadData and cuLibraryLoadData: PTX text, a
// fatbin, or the wrapper struct nvcc puts into .nvFatBinSegment. Any thread; no state. Images are
// foreign bytes: inside a known length every read is checked, and what a header claims is never
// trusted further than that length.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

// What an image gave. `code` is what the load call returns; `message` says why in one line when
// that is not success.
struct PtxImage {
  CUresult code = CUDA_SUCCESS;
  std::string message;
  // PTX modules. More than one only from a -rdc build, whose relocatable modules are linked when
  // they are loaded.
  std::vector<std::string> texts;
};

// `image` as given to the API: its length is only what it says itself. `device_cc` is 80 for 8.0.
PtxImage read_image(const void* image, int device_cc);

// A whole file: PTX text or a fatbin, `bytes` long and not a byte more.
PtxImage read_image(std::string_view bytes, int device_cc);

// One LZ4 block that must give exactly `plain_size` bytes (CUDA 12 and older, and
// -compress-mode=speed).
[[nodiscard]] bool decode_lz4(std::string_view block, std::size_t plain_size, std::string* plain);

}  // namespace softgpu
