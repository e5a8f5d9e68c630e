// SPDX-License-Identifier: Apache-2.0
// From an image given to the API to parsed code, shared by module, library and link entries.
#pragma once

#include <string>

#include "tools/softgpu/driver/module_objects.h"

namespace softgpu {

// Where code comes from: memory, or a file when `path` is set.
struct ImageSource {
  const void* image = nullptr;
  const char* path = nullptr;
};

// FILE_NOT_FOUND when it cannot be read.
CUresult read_file(const char* path, std::string* bytes);

// Reads and parses; answers JIT options. Without the driver lock. A failure that no JIT log takes
// is told on stderr, with the name of the entry.
CUresult read_code(const char* entry, ImageSource source, unsigned option_count,
                   const CUjit_option* options, void** values, Code* code);

// Address and size of a module-scope variable; either may be null. NOT_FOUND when there is none of
// that name.
CUresult get_global(const ModuleObject& module, const char* name, CUdeviceptr* address,
                    std::size_t* bytes);

}  // namespace softgpu
