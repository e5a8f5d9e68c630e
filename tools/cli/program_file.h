// SPDX-License-Identifier: Apache-2.0
// What kind of file a program is, and why LD_PRELOAD would do nothing to it. Reads files, runs
// nothing; any bytes may be in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

enum class Sanitizer { kNone, kAddress, kThread };

struct ProgramFile {
  std::string path;
  bool is_elf = false;
  bool is_64_bit = false;
  std::uint16_t machine = 0;        // e_machine
  std::string interpreter;          // of an ELF program; empty: static
  std::vector<std::string> needed;  // libraries
  Sanitizer sanitizer = Sanitizer::kNone;
  bool has_shared_sanitizer = false;  // its runtime is a library
  std::string script_interpreter;     // behind "#!"
  std::string script_argument;
  bool is_privileged = false;  // runs with other rights than ours: the loader ignores LD_PRELOAD
};

// As execvp() finds it. A Failure with the exit code of env(1) (127, 126).
std::string find_program(const std::string& name);

// A Failure when it cannot be read.
ProgramFile look_at(const std::string& path);

// The ELF program that runs in the end: interpreters of scripts are followed, `env` too.
ProgramFile program_behind(const ProgramFile& file);

// Why the library does not get into it, in words behind "PATH is ..."; empty: it should.
std::string reason_against(const ProgramFile& program, const ProgramFile& library);

}  // namespace cli
