// SPDX-License-Identifier: Apache-2.0
// Links PTX modules on the level of their text, for cuLink* and for programs built with -rdc. Any
// thread; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

// One PTX text that means what `texts` linked together mean: symbols private to a module are
// renamed where names collide, weak and repeated external declarations are merged, functions are
// declared before they are used. False: `log` names the symbol that is defined twice or nowhere.
[[nodiscard]] bool merge_ptx(const std::vector<std::string_view>& texts, std::string* merged,
                             std::string* log);

}  // namespace softgpu
