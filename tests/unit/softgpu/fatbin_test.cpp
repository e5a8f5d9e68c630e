// SPDX-License-Identifier: Apache-2.0
// Reads fatbins that nvcc made in this build, by every compression it has, and the same files
// damaged.
#include "tools/softgpu/driver/fatbin.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/test_data.h"

using softgpu::PtxImage;
using softgpu::read_image;

namespace {

PtxImage read_string(const std::string& bytes, int cc) {
  return read_image(std::string_view(bytes), cc);
}

bool has_target(const PtxImage& image, const std::string& target) {
  return image.texts.size() == 1 && image.texts[0].find(".target " + target) != std::string::npos;
}

struct Wrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* fatbin = nullptr;
  const void* const* fatbins = nullptr;
};

}  // namespace

TEST_CASE("every compression gives the same PTX", "[fatbin]") {
  const std::string plain = read_test_data("plain.fatbin");
  const PtxImage expected = read_string(plain, 80);
  REQUIRE(expected.code == CUDA_SUCCESS);
  REQUIRE(has_target(expected, "sm_80"));
  CHECK(expected.texts[0].find(".entry vector_add") != std::string::npos);
  CHECK(expected.texts[0].find('\0') == std::string::npos);
  for (const char* const name : {"default.fatbin", "speed.fatbin"}) {
    INFO(name);
    const std::string bytes = read_test_data(name);
    CHECK(bytes.size() < plain.size());
    const PtxImage image = read_string(bytes, 80);
    REQUIRE(image.code == CUDA_SUCCESS);
    CHECK(image.texts == expected.texts);
    const PtxImage in_memory = read_image(static_cast<const void*>(bytes.data()), 80);
    CHECK(in_memory.texts == expected.texts);
  }
}

TEST_CASE("the highest architecture that the device has is chosen", "[fatbin]") {
  const std::string bytes = read_test_data("multi.fatbin");
  CHECK(has_target(read_string(bytes, 80), "sm_80"));
  CHECK(has_target(read_string(bytes, 86), "sm_80"));
  CHECK(has_target(read_string(bytes, 90), "sm_90"));
  CHECK(has_target(read_string(bytes, 120), "sm_90"));
  CHECK(read_string(bytes, 75).code == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("SASS is no binary for this device", "[fatbin]") {
  const PtxImage image = read_string(read_test_data("sass.fatbin"), 80);
  CHECK(image.code == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(image.message.find("PTX") != std::string::npos);
  CHECK(read_string(std::string("\x7f"
                                "ELF\2\1\1",
                                7),
                    80)
            .code == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("text without a version directive is no image", "[fatbin]") {
  CHECK(read_image(static_cast<const void*>(""), 80).code == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read_image(static_cast<const void*>("P"), 80).code == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read_string("", 80).code == CUDA_ERROR_INVALID_IMAGE);
  CHECK(read_string(".version 8.0\n", 80).code == CUDA_SUCCESS);
}

TEST_CASE("both versions of the wrapper lead to the PTX", "[fatbin]") {
  const std::string whole = read_test_data("default.fatbin");
  const std::string sass = read_test_data("sass.fatbin");
  Wrapper wrapper;
  wrapper.fatbin = whole.data();
  CHECK(has_target(read_image(static_cast<const void*>(&wrapper), 80), "sm_80"));

  // As nvcc -rdc leaves it: the linked code is SASS, its PTX parts and SASS-only libraries are in
  // the list.
  const std::string first = read_test_data("linked_a.fatbin");
  const std::string second = read_test_data("linked_b.fatbin");
  const void* const list[] = {first.data(), sass.data(), second.data(), nullptr};
  wrapper = {0x466243b1, 2, sass.data(), list};
  const PtxImage image = read_image(static_cast<const void*>(&wrapper), 80);
  REQUIRE(image.code == CUDA_SUCCESS);
  REQUIRE(image.texts.size() == 2);
  CHECK(image.texts[1].find(".func") != std::string::npos);

  const void* const nothing[] = {sass.data(), nullptr};
  wrapper.fatbins = nothing;
  CHECK(read_image(static_cast<const void*>(&wrapper), 80).code == CUDA_ERROR_NO_BINARY_FOR_GPU);
  wrapper.version = 3;
  CHECK(read_image(static_cast<const void*>(&wrapper), 80).code == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("a fatbin cut short is refused", "[fatbin]") {
  for (const char* const name :
       {"default.fatbin", "speed.fatbin", "plain.fatbin", "multi.fatbin"}) {
    const std::string bytes = read_test_data(name);
    for (std::size_t size = 4; size < bytes.size(); ++size) {
      // In memory of exactly that size: a sanitizer sees every byte read beyond.
      const std::vector<char> part(bytes.begin(),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(read_image(std::string_view(part.data(), part.size()), 80).code ==
            CUDA_ERROR_INVALID_IMAGE);
    }
  }
}

TEST_CASE("damaged fatbins give an error or text, never a crash", "[fatbin]") {
  std::mt19937 random(20251);
  int refused = 0;
  for (const char* const name : {"default.fatbin", "speed.fatbin", "multi.fatbin"}) {
    const std::string bytes = read_test_data(name);
    for (int round = 0; round < 4000; ++round) {
      std::vector<char> damaged(bytes.begin(), bytes.end());
      // Half the damage goes to the headers, where sizes are.
      const std::size_t area = round % 2 == 0 ? 96 : damaged.size();
      for (unsigned change = 0; change <= random() % 4; ++change) {
        damaged[4 + random() % (area - 4)] = static_cast<char>(random());
      }
      const PtxImage image = read_image(std::string_view(damaged.data(), damaged.size()), 80);
      if (image.code != CUDA_SUCCESS) {
        ++refused;
        CHECK_FALSE(image.message.empty());
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("LZ4 blocks", "[fatbin]") {
  std::string plain;
  // Token 0x35: three literals, then a match of 9 bytes at distance 3, then one literal.
  const std::string block(
      "\x35"
      "abc\x03\x00\x10"
      "z",
      8);
  REQUIRE(softgpu::decode_lz4(block, 13, &plain));
  CHECK(plain == "abcabcabcabcz");
  CHECK_FALSE(softgpu::decode_lz4(block, 12, &plain));
  CHECK_FALSE(softgpu::decode_lz4(block, 14, &plain));
  CHECK_FALSE(softgpu::decode_lz4(std::string("\x35"
                                              "abc\x04\x00\x10"
                                              "z",
                                              8),
                                  13, &plain));
  CHECK_FALSE(softgpu::decode_lz4(std::string("\x35"
                                              "abc\x00\x00\x10"
                                              "z",
                                              8),
                                  13, &plain));
  CHECK_FALSE(softgpu::decode_lz4(std::string("\xf0\xff\xff", 3), 1000, &plain));
  CHECK(softgpu::decode_lz4("", 0, &plain));
}
