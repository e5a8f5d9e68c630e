// SPDX-License-Identifier: Apache-2.0
// PTX text to a RawModule: module-scope directives and, through FunctionParser, the bodies.
// lay_out() and the analyses come after it. Throws SyntaxError.
#pragma once

#include <string_view>

#include "tools/softgpu/ptx/symbols.h"

namespace softgpu::ptx {

// The newest PTX version understood, times ten.
inline constexpr int kNewestVersion = 90;

RawModule parse_text(std::string_view text, int device_cc);

}  // namespace softgpu::ptx
