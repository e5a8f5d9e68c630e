// SPDX-License-Identifier: Apache-2.0
// `env`: the environment variables, out of the library's own table, and the LD_PRELOAD for scripts.
#include "runtime/options.h"
#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/json_output.h"
#include "tools/cli/library_file.h"
#include "tools/cli/output.h"
#include "tools/cli/roff.h"

namespace cli {
namespace {

std::string as_text() {
  std::string out;
  for (const runtime::Setting& setting : runtime::settings()) {
    out += std::string(setting.name) + "\n";
    out += "    " + std::string(setting.purpose) + "\n";
    out += "    values: " + std::string(setting.legal) + "\n";
    out += "    default: " + std::string(setting.by_default) + "\n";
  }
  return out;
}

std::string as_markdown() {
  std::string out = "| variable | values | default | |\n|---|---|---|---|\n";
  for (const runtime::Setting& setting : runtime::settings()) {
    out += "| `" + std::string(setting.name) + "` | " + setting.legal + " | " + setting.by_default +
           " | " + setting.purpose + " |\n";
  }
  return out;
}

std::string as_manual() {
  std::string out;
  for (const runtime::Setting& setting : runtime::settings()) {
    out += ".TP\n.B " + roff(setting.name) + "\n" + roff(setting.purpose) +
           "\nValues: " + roff(setting.legal) + ".\nDefault: " + roff(setting.by_default) + ".\n";
  }
  return out;
}

void print_json() {
  write_json("-", [](profiler::JsonWriter* out) {
    out->begin_array();
    for (const runtime::Setting& setting : runtime::settings()) {
      out->begin_object();
      out->text("name", setting.name);
      out->text("purpose", setting.purpose);
      out->text("values", setting.legal);
      out->text("default", setting.by_default);
      out->end_object();
    }
    out->end_array();
  });
}

}  // namespace

int show_environment(const EnvOptions& options) {
  if (options.is_preload) {
    print("LD_PRELOAD=" + appended_preload(find_library(options.library)) + "\n");
  } else if (options.format == "json") {
    print_json();
  } else if (options.format == "markdown") {
    print(as_markdown());
  } else if (options.format == "man") {
    print(as_manual());
  } else {
    print(as_text());
  }
  return kOk;
}

}  // namespace cli
