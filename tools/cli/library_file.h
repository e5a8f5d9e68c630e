// SPDX-License-Identifier: Apache-2.0
// Finds libcajeta_xpu.so and puts it into LD_PRELOAD.
#pragma once

#include <string>

namespace cli {

// The library's absolute path: `given`, else beside this program, in the library folder of the
// installation, or in the build tree. A Failure (exit 125) that names the places.
std::string find_library(const std::string& given);

// The value of LD_PRELOAD with the library behind what is there; once, if it is there already.
std::string appended_preload(const std::string& library);

}  // namespace cli
