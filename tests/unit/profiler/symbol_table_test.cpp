// SPDX-License-Identifier: Apache-2.0
// Names from the symbol tables of files: this program's, and of what is no program or only half of
// one.
#include "profiler/trace/symbol_table.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/module_list.h"
#include "tests/unit/catch.h"

using namespace profiler;

namespace {

__attribute__((noinline)) int looked_for(int value) {
  asm volatile("");
  return value + 1;
}

NamedAddress at(std::uintptr_t address) {
  NamedAddress named{};
  named.address = address;
  return named;
}

// In the file of this program.
std::uintptr_t file_address_of(std::uintptr_t address, const char** path) {
  const std::uintptr_t inside = address + 1;
  std::uint16_t number = kNoModule;
  find_modules(&inside, &number, 1);
  const Module* module = module_at(number);
  REQUIRE(module != nullptr);
  *path = module->path;
  return address - module->base;
}

}  // namespace

TEST_CASE("functions are found by any address in them, and by none beside them") {
  CHECK(looked_for(1) == 2);
  const char* path = nullptr;
  const std::uintptr_t address =
      file_address_of(reinterpret_cast<std::uintptr_t>(&looked_for), &path);
  NamedAddress names[] = {at(0), at(1), at(address), at(address + 1), at(UINTPTR_MAX)};
  find_in_symbol_table(path, names, 5);
  CHECK_FALSE(names[0].is_found);
  CHECK_FALSE(names[1].is_found);
  CHECK(std::string(names[2].name) == "(anonymous namespace)::looked_for(int)");
  CHECK(std::string(names[3].name) == names[2].name);
  CHECK_FALSE(names[4].is_found);
}

TEST_CASE("a library without the full table is known by what it exports") {
  const char* path = nullptr;
  // libc of distributions is stripped.
  const std::uintptr_t address =
      file_address_of(reinterpret_cast<std::uintptr_t>(&::getppid), &path);
  NamedAddress name = at(address + 1);
  find_in_symbol_table(path, &name, 1);
  CHECK(name.is_found);
}

TEST_CASE("what is no ELF file, or was cut, has no names") {
  const char* program = nullptr;
  const std::uintptr_t address =
      file_address_of(reinterpret_cast<std::uintptr_t>(&looked_for), &program);
  std::ostringstream content;
  content << std::ifstream(program, std::ios::binary).rdbuf();
  const std::string whole = content.str();
  const std::string path = "/tmp/symbol_table_test." + std::to_string(getpid());
  std::vector<std::string> files = {"",
                                    "no program",
                                    "\177ELF",
                                    whole.substr(0, 64),
                                    whole.substr(0, whole.size() / 2),
                                    whole.substr(0, whole.size() - 100)};
  // Places of tables that lie far outside.
  for (std::size_t at = 16; at < 64; at += 5) {
    std::string broken = whole;
    broken.replace(at, 3, "\xff\xff\xff");
    files.push_back(broken);
  }
  for (const std::string& file : files) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
    NamedAddress names[] = {at(address), at(address + 1)};
    find_in_symbol_table(path.c_str(), names, 2);
    CHECK((!names[0].is_found || names[0].name[0] != '\0'));
  }
  unlink(path.c_str());
  NamedAddress name = at(address);
  find_in_symbol_table(path.c_str(), &name, 1);
  CHECK_FALSE(name.is_found);
  find_in_symbol_table("", &name, 1);
  CHECK_FALSE(name.is_found);
}
