// SPDX-License-Identifier: Apache-2.0
// cuLink*: PTX and fatbins are collected and linked as text when the link is completed. The "cubin"
// handed out is that text, which cuModuleLoadData accepts like any other.
#include <string>

#include "tools/softgpu/driver/entry.h"
#include "tools/softgpu/driver/fatbin.h"
#include "tools/softgpu/driver/jit_options.h"
#include "tools/softgpu/driver/module_loading.h"
#include "tools/softgpu/driver/options.h"
#include "tools/softgpu/driver/raw_enum.h"

namespace softgpu {
namespace {

struct LinkObject {
  JitOptions options;
  std::vector<std::string> texts;
  std::string log;    // of all inputs so far
  std::string image;  // once complete
};

using LinkTable = ObjectTable<LinkObject, CUlinkState, HandleKind::kLink>;
LinkTable& links() {
  static auto& table = *new LinkTable;
  return table;
}

CUresult create(unsigned count, const CUjit_option* options, void** values, CUlinkState* state) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  usable_context();
  auto link = std::make_shared<LinkObject>();
  check(link->options.read(count, options, values));
  *state = links().add(std::move(link));
  return CUDA_SUCCESS;
}

PtxImage read_input(int type, std::string_view bytes, const std::string& name) {
  switch (type) {
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY:
      return read_image(bytes, options().compute_capability);
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
    case CU_JIT_INPUT_NVVM: {
      PtxImage image;
      image.code = CUDA_ERROR_NOT_SUPPORTED;
      image.message = name + ": softgpu links PTX and fatbins only";
      return image;
    }
    default: {
      PtxImage image;
      image.code = CUDA_ERROR_INVALID_VALUE;
      return image;
    }
  }
}

// `options` are this input's alone; without a log there, messages go to the link's.
CUresult add(CUlinkState state, int type, std::string_view bytes, const std::string& name,
             unsigned count, const CUjit_option* options, void** values) {
  LinkObject& link = links().get(state);
  JitOptions own;
  check(own.read(count, options, values));
  PtxImage image = read_input(type, bytes, name);
  if (image.code != CUDA_SUCCESS) {
    link.log += "error   : " + image.message + "\n";
    own.report("", image.message);
    link.options.report("", link.log);
    return image.code;
  }
  for (std::string& text : image.texts) link.texts.push_back(std::move(text));
  return CUDA_SUCCESS;
}

CUresult add_file(CUlinkState state, int type, const char* path, unsigned count,
                  const CUjit_option* options, void** values) {
  std::string bytes;
  check(read_file(path, &bytes));
  return add(state, type, bytes, path, count, options, values);
}

CUresult add_data(CUlinkState state, int type, const void* data, std::size_t size, const char* name,
                  unsigned count, const CUjit_option* options, void** values) {
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::string_view bytes(static_cast<const char*>(data), size);
  return add(state, type, bytes, name != nullptr ? name : "<unnamed>", count, options, values);
}

CUresult complete(CUlinkState state, void** image, std::size_t* size) {
  LinkObject& link = links().get(state);
  if (image == nullptr || link.texts.empty()) return CUDA_ERROR_INVALID_VALUE;
  Code code;
  const CUresult result = compile(link.texts, &code, &link.log);
  if (result != CUDA_SUCCESS) {
    link.options.report("", link.log);
    return result;
  }
  link.options.report(
      "info    : softgpu: linked " + std::to_string(link.texts.size()) + " inputs\n", link.log);
  link.image = std::move(code.text);
  *image = link.image.data();
  // With the NUL, for clients that copy the image.
  if (size != nullptr) *size = link.image.size() + 1;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using softgpu::call;
using softgpu::EntryId;

extern "C" {

CUresult CUDAAPI cuLinkCreate(unsigned int count, CUjit_option* options, void** values,
                              CUlinkState* state) {
  return call(EntryId::cuLinkCreate,
              [&] { return softgpu::create(count, options, values, state); });
}

CUresult CUDAAPI cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                                 CUlinkState* state) {
  return call(EntryId::cuLinkCreate_v2,
              [&] { return softgpu::create(count, options, values, state); });
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size,
                               const char* name, unsigned int count, CUjit_option* options,
                               void** values) {
  return call(EntryId::cuLinkAddData, [&] {
    return softgpu::add_data(state, softgpu::raw(type), data, size, name, count, options, values);
  });
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                                  const char* name, unsigned int count, CUjit_option* options,
                                  void** values) {
  return call(EntryId::cuLinkAddData_v2, [&] {
    return softgpu::add_data(state, softgpu::raw(type), data, size, name, count, options, values);
  });
}

CUresult CUDAAPI cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path,
                               unsigned int count, CUjit_option* options, void** values) {
  return call(EntryId::cuLinkAddFile, [&] {
    return softgpu::add_file(state, softgpu::raw(type), path, count, options, values);
  });
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                                  unsigned int count, CUjit_option* options, void** values) {
  return call(EntryId::cuLinkAddFile_v2, [&] {
    return softgpu::add_file(state, softgpu::raw(type), path, count, options, values);
  });
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  return call(EntryId::cuLinkComplete, [&] { return softgpu::complete(state, image, size); });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  return call(EntryId::cuLinkDestroy, [&]() -> CUresult {
    return softgpu::links().remove(state) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // extern "C"
