// SPDX-License-Identifier: Apache-2.0
// The fatbin container as nvcc 13.0 writes it, seen in files made with -fatbin
// (tests/unit/softgpu/fatbin_test.cpp reads such files): a 16-byte header, then entries of one
// header and one payload each. SASS payloads are skipped.
#include "tools/softgpu/driver/fatbin.h"

#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace softgpu {
namespace {

constexpr char kFatbinMagic[] = "\x50\xed\x55\xba";
constexpr char kWrapperMagic[] = "\xb1\x43\x62\x46";
constexpr char kElfMagic[] =
    "\x7f"
    "ELF";

constexpr std::size_t kFatbinHeaderBytes = 16;
constexpr std::size_t kEntryHeaderBytes = 64;
constexpr std::uint16_t kKindPtx = 1;

constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagOneArch = 0x100000;  // compute_90a: runs on exactly that architecture
constexpr std::uint64_t kFlagFamily = 0x200000;   // compute_100f: runs on the same major version

// No PTX module comes near this; a damaged header must not make us ask for more memory.
constexpr std::uint64_t kMaxPlainBytes = 1ull << 30;

// fatbinary_section.h: what .nvFatBinSegment holds.
struct FatbinWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* fatbin;
  const void* const* fatbins;  // version 2: null-terminated array of relocatable fatbins
};

PtxImage failure(CUresult code, std::string message) {
  PtxImage image;
  image.code = code;
  image.message = std::move(message);
  return image;
}

template <typename T>
T read_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

struct Entry {
  std::uint16_t kind = 0;
  int arch = 0;
  std::uint64_t flags = 0;
  std::uint64_t plain_size = 0;
  std::string_view payload;
  std::size_t next = 0;  // offset of the entry after this one
};

// The entry at `offset`, or nothing when the bytes cannot hold it.
std::optional<Entry> read_entry(std::string_view bytes, std::size_t offset) {
  if (bytes.size() - offset < kEntryHeaderBytes) return std::nullopt;
  const std::string_view header = bytes.substr(offset);
  const auto header_size = read_at<std::uint32_t>(header, 4);
  const auto padded_size = read_at<std::uint64_t>(header, 8);
  const auto compressed_size = read_at<std::uint32_t>(header, 16);
  if (header_size < kEntryHeaderBytes || header_size > header.size()) return std::nullopt;
  if (padded_size > header.size() - header_size) return std::nullopt;
  Entry entry;
  entry.kind = read_at<std::uint16_t>(header, 0);
  entry.arch = static_cast<int>(read_at<std::uint32_t>(header, 28) & 0xffff);
  entry.flags = read_at<std::uint64_t>(header, 40);
  entry.plain_size = read_at<std::uint64_t>(header, 56);
  entry.payload = header.substr(header_size, padded_size);
  if ((entry.flags & (kFlagLz4 | kFlagZstd)) != 0) {
    if (compressed_size > padded_size) return std::nullopt;
    entry.payload = entry.payload.substr(0, compressed_size);
  }
  entry.next = offset + header_size + static_cast<std::size_t>(padded_size);
  return entry;
}

bool runs_on(const Entry& entry, int device_cc) {
  if ((entry.flags & kFlagOneArch) != 0) return entry.arch == device_cc;
  if ((entry.flags & kFlagFamily) != 0 && entry.arch / 10 != device_cc / 10) return false;
  return entry.arch <= device_cc;
}

bool decode_zstd(std::string_view frame, std::size_t plain_size, std::string* plain) {
  // The frame knows its size too: asking first keeps a damaged header from allocating for nothing.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != plain_size) return false;
  plain->resize(plain_size);
  const std::size_t got = ZSTD_decompress(plain->data(), plain->size(), frame.data(), frame.size());
  return ZSTD_isError(got) == 0 && got == plain_size;
}

bool decode_entry(const Entry& entry, std::string* text) {
  if ((entry.flags & (kFlagLz4 | kFlagZstd)) == 0) {
    text->assign(entry.payload);
  } else {
    if (entry.plain_size > kMaxPlainBytes) return false;
    const auto plain_size = static_cast<std::size_t>(entry.plain_size);
    const bool ok = (entry.flags & kFlagZstd) != 0 ? decode_zstd(entry.payload, plain_size, text)
                                                   : decode_lz4(entry.payload, plain_size, text);
    if (!ok) return false;
  }
  const std::size_t end = text->find('\0');
  if (end != std::string::npos) text->resize(end);
  return true;
}

// `bytes` starts with the fatbin magic.
PtxImage read_fatbin(std::string_view bytes, int device_cc) {
  if (bytes.size() < kFatbinHeaderBytes)
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: cut short");
  const auto header_size = read_at<std::uint16_t>(bytes, 6);
  const auto entries_size = read_at<std::uint64_t>(bytes, 8);
  if (header_size < kFatbinHeaderBytes || header_size > bytes.size() ||
      entries_size > bytes.size() - header_size) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: the header claims more than there is");
  }
  bytes = bytes.substr(0, header_size + static_cast<std::size_t>(entries_size));
  std::optional<Entry> best;
  bool has_ptx = false;
  for (std::size_t offset = header_size; offset < bytes.size();) {
    const std::optional<Entry> entry = read_entry(bytes, offset);
    if (!entry) return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: damaged entry");
    offset = entry->next;
    if (entry->kind != kKindPtx) continue;
    has_ptx = true;
    if (runs_on(*entry, device_cc) && (!best || entry->arch > best->arch)) best = entry;
  }
  if (!best) {
    return failure(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   has_ptx ? "fatbin: its PTX is for newer devices only"
                           : "fatbin: holds no PTX (build with code=compute_XX)");
  }
  PtxImage image;
  image.texts.emplace_back();
  if (!decode_entry(*best, &image.texts.back())) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: damaged compressed PTX");
  }
  return image;
}

// In memory only the header says how long the fatbin is.
PtxImage read_fatbin_at(const void* fatbin, int device_cc) {
  const char* const bytes = static_cast<const char*>(fatbin);
  if (std::strncmp(bytes, kFatbinMagic, 4) != 0) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: wrong magic number");
  }
  const std::string_view header(bytes, kFatbinHeaderBytes);
  const auto entries_size = read_at<std::uint64_t>(header, 8);
  if (entries_size > PTRDIFF_MAX - 0x10000) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin: the header claims more than there is");
  }
  return read_fatbin({bytes, read_at<std::uint16_t>(header, 6) + entries_size}, device_cc);
}

// A -rdc build: `fatbin` may hold a linked cubin, which is of no use here; the array has what it
// was linked from, and also libraries such as libdevrt that exist as SASS only.
PtxImage read_relocatable(const FatbinWrapper& wrapper, int device_cc) {
  PtxImage image =
      failure(CUDA_ERROR_NO_BINARY_FOR_GPU, "fatbin: holds no PTX (build with code=compute_XX)");
  if (wrapper.fatbin != nullptr) image = read_fatbin_at(wrapper.fatbin, device_cc);
  if (image.code == CUDA_SUCCESS || wrapper.fatbins == nullptr) return image;
  for (const void* const* fatbin = wrapper.fatbins; *fatbin != nullptr; ++fatbin) {
    PtxImage part = read_fatbin_at(*fatbin, device_cc);
    if (part.code == CUDA_ERROR_NO_BINARY_FOR_GPU) continue;
    if (part.code != CUDA_SUCCESS) return part;
    image.code = CUDA_SUCCESS;
    image.message.clear();
    image.texts.push_back(std::move(part.texts.front()));
  }
  return image;
}

PtxImage read_wrapper(const void* bytes, int device_cc) {
  FatbinWrapper wrapper;
  std::memcpy(&wrapper, bytes, sizeof(wrapper));
  if (wrapper.version == 2) return read_relocatable(wrapper, device_cc);
  if (wrapper.version != 1 || wrapper.fatbin == nullptr) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "fatbin wrapper: unknown version");
  }
  return read_fatbin_at(wrapper.fatbin, device_cc);
}

PtxImage read_text(std::string_view text) {
  // A driver calls text that is no PTX at all an invalid image, and PTX with mistakes invalid PTX.
  if (text.find(".version") == std::string_view::npos) {
    return failure(CUDA_ERROR_INVALID_IMAGE, "image: neither PTX nor a fatbin");
  }
  PtxImage image;
  image.texts.emplace_back(text);
  return image;
}

PtxImage elf_failure() {
  return failure(CUDA_ERROR_NO_BINARY_FOR_GPU, "image: SASS, which softgpu does not run");
}

}  // namespace

PtxImage read_image(const void* image, int device_cc) {
  const char* const bytes = static_cast<const char*>(image);
  // strncmp stops at the first difference, so a short text is not read beyond its NUL.
  if (std::strncmp(bytes, kFatbinMagic, 4) == 0) return read_fatbin_at(image, device_cc);
  if (std::strncmp(bytes, kWrapperMagic, 4) == 0) return read_wrapper(image, device_cc);
  if (std::strncmp(bytes, kElfMagic, 4) == 0) return elf_failure();
  return read_text(bytes);
}

PtxImage read_image(std::string_view bytes, int device_cc) {
  if (bytes.substr(0, 4) == std::string_view(kFatbinMagic, 4)) return read_fatbin(bytes, device_cc);
  if (bytes.substr(0, 4) == std::string_view(kElfMagic, 4)) return elf_failure();
  return read_text(bytes.substr(0, bytes.find('\0')));
}

bool decode_lz4(std::string_view block, std::size_t plain_size, std::string* plain) {
  // One byte of input stands for at most 255 of output.
  if (plain_size / 256 > block.size()) return false;
  plain->clear();
  plain->reserve(plain_size);
  std::size_t at = 0;
  // A length of 15 in a token goes on in the bytes that follow, up to the first that is not 255.
  const auto read_length = [&](std::size_t length) -> std::optional<std::size_t> {
    if (length < 15) return length;
    for (unsigned char more = 255; more == 255; length += more) {
      if (at == block.size()) return std::nullopt;
      more = static_cast<unsigned char>(block[at++]);
    }
    return length;
  };
  while (at < block.size()) {
    const auto token = static_cast<unsigned char>(block[at++]);
    const std::optional<std::size_t> literals = read_length(token >> 4);
    if (!literals || *literals > block.size() - at || *literals > plain_size - plain->size()) {
      return false;
    }
    plain->append(block.substr(at, *literals));
    at += *literals;
    if (at == block.size()) break;  // the last sequence has no match
    if (block.size() - at < 2) return false;
    const std::size_t distance = read_at<std::uint16_t>(block, at);
    at += 2;
    const std::optional<std::size_t> match = read_length(token & 15);
    if (!match || distance == 0 || distance > plain->size() ||
        *match + 4 > plain_size - plain->size()) {
      return false;
    }
    // A match may overlap what it writes, so it goes byte by byte.
    for (std::size_t i = 0; i < *match + 4; ++i)
      plain->push_back((*plain)[plain->size() - distance]);
  }
  return plain->size() == plain_size;
}

}  // namespace softgpu
