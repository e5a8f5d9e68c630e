// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/doctor_checks.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/options.h"
#include "tools/cli/driver_probe.h"
#include "tools/cli/failure.h"
#include "tools/cli/library_file.h"
#include "tools/cli/output.h"
#include "tools/cli/program_file.h"
#include "tools/cli/sanitizers.h"
#include "tools/cli/setting_check.h"

extern "C" char** environ;

namespace cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void add(Findings* findings, Health health, const std::string& subject, const std::string& text) {
  findings->push_back({health, subject, printable(text)});
}

// "cajeta-xpu 0.1.0" of the loaded library; empty without it.
std::string version_of(void* library) {
  const auto* marker = static_cast<const char*>(dlsym(library, "cajeta_xpu_marker"));
  if (marker == nullptr || std::strncmp(marker, "cajeta-xpu", 10) != 0) return "";
  return marker;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string driver_text(const DriverAnswer& answer) {
  return std::string(answer.path) +
         format(", CUDA %d.%d", answer.version / 1000, answer.version % 1000 / 10);
}

}  // namespace

std::string check_library(const std::string& given, Findings* findings) {
  std::string path;
  try {
    path = find_library(given);
  } catch (const Failure& failure) {
    add(findings, Health::kFail, "library", failure.what());
    return "";
  }
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* problem = dlerror();
    add(findings, Health::kFail, "library", std::string("does not load: ") + problem);
    return "";
  }
  const std::string version = version_of(library);
  const std::string own = std::string("cajeta-xpu ") + CAJETA_XPU_VERSION;
  if (version.empty()) {
    add(findings, Health::kFail, "library", path + " loads, but is no library of cajeta-xpu");
  } else if (version != own) {
    add(findings, Health::kWarn, "library",
        path + " is " + version + ", this tool is " + own + ": install both from one build");
  } else {
    add(findings, Health::kOk, "library", path + ", " + version);
  }
  return path;
}

void check_driver(Findings* findings) {
  DriverAnswer answer;
  std::string died;
  if (!probe_driver(&answer, &died)) {
    add(findings, Health::kFail, "driver", "libcuda.so.1 cannot be asked: " + died);
  } else if (answer.path[0] == '\0') {
    add(findings, Health::kFail, "driver",
        std::string(answer.problem) +
            "; install the NVIDIA driver, or put softgpu's folder into LD_LIBRARY_PATH");
  } else if (answer.init_result < 0) {
    add(findings, Health::kFail, "driver", driver_text(answer) + ": " + answer.problem);
  } else if (answer.init_result != 0) {
    add(findings, Health::kFail, "driver",
        driver_text(answer) + format(": cuInit returns CUDA error %d", answer.init_result));
  } else if (answer.devices == 0) {
    add(findings, Health::kWarn, "driver", driver_text(answer) + ", no device");
  } else {
    add(findings, Health::kOk, "driver",
        driver_text(answer) +
            format(", %d device%s, the first is ", answer.devices, answer.devices == 1 ? "" : "s") +
            answer.device);
  }
}

void check_preloads(const std::string& library, Findings* findings) {
  std::string others;
  std::istringstream names(variable("LD_PRELOAD"));
  for (std::string item; std::getline(names, item, ':');) {
    std::istringstream words(item);
    for (std::string path; words >> path;) {
      const bool is_ours = base_name(path) == "libcajeta_xpu.so";
      if (path.find('/') != std::string::npos && access(path.c_str(), R_OK) != 0) {
        add(findings, Health::kWarn, "LD_PRELOAD",
            path + " cannot be read: the loader goes on without it");
      } else if (is_ours && !library.empty() && path != library) {
        add(findings, Health::kWarn, "LD_PRELOAD",
            path + " is preloaded already, and is not " + library);
      } else if (!is_ours) {
        others += (others.empty() ? "" : ", ") + base_name(path);
      }
    }
  }
  if (others.find("torch_memory_saver") != std::string::npos) {
    add(findings, Health::kWarn, "LD_PRELOAD",
        "torch_memory_saver before 0.0.10 takes LD_PRELOAD for one path: upgrade it");
  }
  if (access("/etc/ld.so.preload", F_OK) == 0) {
    add(findings, Health::kWarn, "ld.so.preload",
        "/etc/ld.so.preload exists: its libraries come behind ours");
  }
  add(findings, Health::kOk, "other preloads", others.empty() ? "none" : others);
}

void check_settings(Findings* findings) {
  int good = 0;
  bool is_bad = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos) continue;
    if (!name.starts_with("CAJETA_XPU_") && !name.starts_with("CAJETA_PROFILER")) continue;
    const std::string fault = fault_of_setting(name, text.substr(equals + 1));
    if (fault.empty()) {
      ++good;
    } else {
      is_bad = true;
      add(findings, Health::kFail, "settings", fault);
    }
  }
  if (!is_bad) {
    add(findings, Health::kOk, "settings",
        good == 0 ? "none set; `cajeta-xpu env` lists them" : format("%d set, all legal", good));
  }
}

void check_report_path(Findings* findings) {
  const std::string path = variable("CAJETA_XPU_REPORT");
  if (path.empty() || path == "stderr" || path == "none") return;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (folder.find('%') != std::string::npos) return;  // differs by process
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    add(findings, Health::kFail, "report path",
        folder + " cannot be written to: let CAJETA_XPU_REPORT name another folder");
    return;
  }
  if (path.find("%p") == std::string::npos) {
    add(findings, Health::kWarn, "report path",
        path + " has no %p: the reports of several processes replace each other");
  } else {
    add(findings, Health::kOk, "report path", folder + " can be written to");
  }
}

void check_surroundings(Findings* findings) {
  runtime::Options options;
  if (variable("CAJETA_XPU_DISABLE") != "") {
    for (const runtime::Setting& setting : runtime::settings()) {
      if (std::string_view(setting.name) != "CAJETA_XPU_DISABLE") continue;
      setting.parse(variable("CAJETA_XPU_DISABLE").c_str(), &options);
    }
  }
  if (options.disabled) {
    add(findings, Health::kWarn, "switched off", "CAJETA_XPU_DISABLE is set: nothing will happen");
  }
  if (std::atoi(variable("CUDA_LAUNCH_BLOCKING").c_str()) != 0) {
    add(findings, Health::kWarn, "launches",
        "CUDA_LAUNCH_BLOCKING is set: nothing is deferred; unset it");
  }
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    if (!variable(name).empty()) {
      add(findings, Health::kWarn, "other tools",
          std::string(name) + " is set: a profiler is injected, and its figures will hold graphs");
    }
  }
  std::ifstream kernel("/proc/sys/kernel/osrelease");
  std::string release;
  std::getline(kernel, release);
  if (release.find("microsoft") != std::string::npos) {
    add(findings, Health::kOk, "WSL2", "launches are dear here: the more there is to gain");
  }
  void* unwinder = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
  if (unwinder == nullptr) {
    add(findings, Health::kWarn, "call sites",
        "no libunwind.so.8: only the direct caller of a call is certain; install libunwind8");
  } else {
    dlclose(unwinder);
    add(findings, Health::kOk, "call sites", "libunwind.so.8 is there");
  }
}

void check_program(const std::string& name, const std::string& library, Findings* findings) {
  try {
    const ProgramFile file = look_at(find_program(name));
    const ProgramFile program = program_behind(file);
    const std::string behind = program.path == file.path ? "" : file.path + " runs ";
    if (!program.is_elf) {
      add(findings, Health::kWarn, "program",
          behind + program.path + " is neither ELF nor a script");
      return;
    }
    const ProgramFile ours = library.empty() ? program : look_at(library);
    const std::string reason = reason_against(program, ours);
    if (!reason.empty()) {
      add(findings, Health::kFail, "program", behind + program.path + " is " + reason);
      return;
    }
    std::string cuda;
    for (const std::string& needed : program.needed) {
      if (needed.starts_with("libcuda")) cuda += (cuda.empty() ? ", linked to " : ", ") + needed;
    }
    add(findings, Health::kOk, "program",
        behind + program.path + ", dynamic, without other rights" + cuda);
    const std::string advice = sanitizer_advice(program);
    if (!advice.empty()) add(findings, Health::kWarn, "sanitizer", advice);
  } catch (const Failure& failure) {
    add(findings, Health::kFail, "program", failure.what());
  }
}

}  // namespace cli
