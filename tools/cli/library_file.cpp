// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/library_file.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tools/cli/diagnostics.h"
#include "tools/cli/failure.h"

namespace cli {
namespace {

constexpr const char* kName = "libcajeta_xpu.so";

std::filesystem::path own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::string real_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? "" : real.string();
}

// LD_PRELOAD is split at blanks and colons, and $ starts a token of the loader.
void require_nameable(const std::string& path) {
  if (path.find_first_of(" \t\n:$") == std::string::npos) return;
  throw Failure(path + ": LD_PRELOAD cannot name a path with a blank, ':' or '$'; move the library",
                kLauncherFailed);
}

}  // namespace

std::string find_library(const std::string& given) {
  std::vector<std::filesystem::path> places;
  if (!given.empty()) {
    places = {given};
  } else {
    const std::filesystem::path folder = own_folder();
    places = {folder / kName, folder / CAJETA_XPU_LIBDIR / kName, folder / "../../shim" / kName};
  }
  const char* const reasons[] = {given.empty() ? "beside this tool" : "by --library",
                                 "where it is installed", "in the build folder of this tool"};
  std::string looked;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::filesystem::path& place = places[i];
    const std::string path = real_path(place);
    if (!path.empty() && access(path.c_str(), R_OK) == 0) {
      require_nameable(path);
      log(LogLevel::kInfo, "the library is " + path + ", found " + reasons[i]);
      return path;
    }
    log(LogLevel::kTrace,
        "no library " + std::string(reasons[i]) + ": " + place.lexically_normal().string());
    looked += (looked.empty() ? "" : ", ") + place.lexically_normal().string();
  }
  throw Failure("the library is not at " + looked + "; expected --library FILE to name " + kName,
                kLauncherFailed);
}

std::string appended_preload(const std::string& library) {
  const char* present = std::getenv("LD_PRELOAD");
  const std::string before = present != nullptr ? present : "";
  for (std::size_t start = 0; start < before.size();) {
    std::size_t end = before.find_first_of(" :", start);
    if (end == std::string::npos) end = before.size();
    if (end > start && real_path(before.substr(start, end - start)) == library) {
      log(LogLevel::kDebug, "LD_PRELOAD names the library already");
      return before;
    }
    start = end + 1;
  }
  return before.empty() ? library : before + ":" + library;
}

}  // namespace cli
