// SPDX-License-Identifier: Apache-2.0
// The files that `run` and `doctor` look at: programs of every sort and broken ones, LD_PRELOAD,
// the watch on the library.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/catch.h"
#include "tools/cli/failure.h"
#include "tools/cli/library_file.h"
#include "tools/cli/load_watch.h"
#include "tools/cli/program_file.h"
#include "tools/cli/setting_check.h"

namespace {

class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << content;
    chmod(path.c_str(), 0755);
    return path;
  }

 private:
  std::string path_ = "/tmp/cli-files-XXXXXX";
};

// A 64-bit ELF file with this interpreter; none: static.
std::string elf(const std::string& interpreter, std::uint16_t machine = EM_X86_64) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phnum = interpreter.empty() ? 0 : 1;
  Elf64_Phdr segment = {};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof header + sizeof segment;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  return bytes + interpreter + std::string(1, '\0');
}

constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";

}  // namespace

TEST_CASE("programs that the library cannot get into are told from others") {
  const Folder folder;
  const cli::ProgramFile library = cli::look_at(folder.write("library", elf(kLoader)));
  const auto reason = [&](const std::string& content) {
    const cli::ProgramFile file = cli::look_at(folder.write("program", content));
    return cli::reason_against(cli::program_behind(file), library);
  };
  CHECK(reason(elf(kLoader)).empty());
  CHECK(reason(elf("")).find("statically linked") == 0);
  CHECK(reason(elf("/lib/ld-musl-x86_64.so.1")).find("linked to musl") == 0);
  CHECK(reason(elf(kLoader, EM_AARCH64)).find("a program for another processor") == 0);
  CHECK(reason("no program at all").empty());
  const std::string interpreter = folder.write("static", elf(""));
  CHECK(reason("#! " + interpreter + " -x\n").find("statically linked") == 0);
  CHECK(reason("#!/usr/bin/env " + interpreter + "\n").find("statically linked") == 0);
}

TEST_CASE("any bytes may be in a program") {
  const Folder folder;
  std::mt19937_64 random(1);
  const std::string whole = elf(kLoader);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    for (int change = 0; change < 4 && bytes.size() > 4; ++change) {
      bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    }
    const cli::ProgramFile file = cli::look_at(folder.write("program", bytes));
    CHECK(file.interpreter.size() < 256);
  }
}

TEST_CASE("programs are found as the shell finds them, with the exit codes of env") {
  const Folder folder;
  const auto code = [](const std::string& name) {
    try {
      cli::find_program(name);
    } catch (const cli::Failure& failure) {
      return failure.code();
    }
    return 0;
  };
  const std::string path = folder.write("program", "");
  CHECK(code(path) == 0);
  CHECK(code("sh") == 0);
  CHECK(code(path + "x") == 127);
  CHECK(code("no-such-program-anywhere") == 127);
  CHECK(code("") == 127);
  chmod(path.c_str(), 0644);
  CHECK(code(path) == 126);
  CHECK(code("/") == 126);
}

TEST_CASE("the library goes behind what LD_PRELOAD holds, once") {
  const Folder folder;
  const std::string library = folder.write("libcajeta_xpu.so", "");
  const char* before = std::getenv("LD_PRELOAD");
  const std::string kept = before != nullptr ? before : "";
  const auto value = [&](const std::string& present) {
    setenv("LD_PRELOAD", present.c_str(), 1);
    const std::string appended = cli::appended_preload(library);
    kept.empty() ? unsetenv("LD_PRELOAD") : setenv("LD_PRELOAD", kept.c_str(), 1);
    return appended;
  };
  CHECK(value("") == library);
  CHECK(value("libm.so.6") == "libm.so.6:" + library);
  CHECK(value("a.so b.so") == "a.so b.so:" + library);
  CHECK(value("a.so:" + library + " b.so") == "a.so:" + library + " b.so");
  CHECK(cli::find_library(library) == library);
  CHECK_THROWS_AS(cli::find_library(folder.write("a b.so", "")), cli::Failure);
  CHECK_THROWS_AS(cli::find_library(library + "x"), cli::Failure);
}

TEST_CASE("the watch tells whether anybody opened the file") {
  const Folder folder;
  const std::string path = folder.write("library", "");
  {
    const cli::LoadWatch watch(path);
    CHECK(watch.was_ignored());
  }
  const cli::LoadWatch watch(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  close(file);
  CHECK_FALSE(watch.was_ignored());
  // Where it cannot be told nothing is claimed.
  CHECK_FALSE(cli::LoadWatch(path + "x").was_ignored());
}

TEST_CASE("settings are checked as the library reads them") {
  CHECK(cli::fault_of_setting("CAJETA_XPU_DEFER", "all").empty());
  CHECK(cli::fault_of_setting("CAJETA_XPU_DEFER", "some").find("legal values: all") !=
        std::string::npos);
  CHECK(cli::fault_of_setting("CAJETA_XPU_DEFFER", "all")
            .find("expected one of CAJETA_XPU_DEFER, ") != std::string::npos);
  CHECK(cli::full_setting_name("GRAPH_BYTES") == "CAJETA_XPU_GRAPH_BYTES");
  CHECK(cli::full_setting_name("CAJETA_XPU_DEFER") == "CAJETA_XPU_DEFER");
}
