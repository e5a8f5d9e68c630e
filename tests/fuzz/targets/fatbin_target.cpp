// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: images of a known length as cuModuleLoad reads them from a file, and single LZ4
// blocks. A failure must come with its reason in one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/softgpu/driver/fatbin.h"

namespace {

void read_as_image(std::string_view bytes) {
  const softgpu::PtxImage image = softgpu::read_image(bytes, 80);
  const bool is_good = image.code == CUDA_SUCCESS;
  if (is_good ? image.texts.empty() : image.message.empty()) __builtin_trap();
  if (image.message.find('\n') != std::string::npos) __builtin_trap();
}

void read_as_lz4(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::size_t plain_size = static_cast<std::uint8_t>(bytes[0]) * 16;
  std::string plain;
  if (softgpu::decode_lz4(bytes.substr(1), plain_size, &plain) && plain.size() != plain_size) {
    __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_as_image(bytes);
  read_as_lz4(bytes);
  return 0;
}
