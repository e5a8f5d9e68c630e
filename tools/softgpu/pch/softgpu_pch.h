// SPDX-License-Identifier: Apache-2.0
// What most files of softgpu include anyhow, compiled once where -Db_pch=true says so (tools/test).
// Files still include what they use: builds are without it by default.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
