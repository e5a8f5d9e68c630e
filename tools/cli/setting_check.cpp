// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/setting_check.h"

#include "runtime/options.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr const char* kPrefixes[] = {"CAJETA_XPU_", "CAJETA_"};

}  // namespace

std::string fault_of_setting(const std::string& name, const std::string& value) {
  std::string names;
  for (const runtime::Setting& setting : runtime::settings()) {
    if (name != setting.name) {
      names += (names.empty() ? "" : ", ") + std::string(setting.name);
      continue;
    }
    runtime::Options options;
    if (setting.parse(value.c_str(), &options)) return "";
    return name + "=" + printable(value) + " is not understood; legal values: " + setting.legal;
  }
  return name + " is no setting of the library; expected one of " + names;
}

std::string full_setting_name(const std::string& name) {
  for (const char* prefix : kPrefixes) {
    for (const runtime::Setting& setting : runtime::settings()) {
      if (prefix + name == setting.name) return setting.name;
    }
  }
  return name;
}

}  // namespace cli
