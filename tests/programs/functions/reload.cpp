// SPDX-License-Identifier: Apache-2.0
// Functions of code that is unloaded and loaded again with other parameters under the same name,
// so that the driver hands out the same handles: reload WAY. A way is how a program gets at the
// function. Prints what the launches leave in memory.
#include <cstring>
#include <string>

#include "tests/programs/host/tiny.h"

namespace {

constexpr char kHead[] = ".version 7.0\n.target sm_80\n.address_size 64\n";
// bump(p, by) and bump(more, by, p), and beside it one of the same layout.
std::string code(const char* name, bool is_long) {
  const std::string more =
      is_long ? ".param .u32 more, .param .u32 by, .param .u64 p" : ".param .u64 p, .param .u32 by";
  return std::string(".visible .entry ") + name + "(" + more +
         ") {\n.reg .u64 %a; .reg .u32 %v, %b, %m;\n"
         "ld.param.u64 %a, [p]; ld.param.u32 %b, [by];\n" +
         (is_long ? "ld.param.u32 %m, [more]; add.u32 %b, %b, %m;\n" : "") +
         "ld.global.u32 %v, [%a]; add.u32 %v, %v, %b; st.global.u32 [%a], %v; ret;\n}\n";
}

struct Code {
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

Code load(const std::string& way, bool is_long) {
  const std::string text = kHead + code("bump", is_long) + code("beside", is_long);
  Code made;
  CUkernel kernel;
  if (way == "own") {
    CHECK(cuModuleLoadData(&made.module, text.c_str()));
    CHECK(cuModuleGetFunction(&made.function, made.module, "bump"));
    return made;
  }
  CHECK(cuLibraryLoadData(&made.library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUmodule module;
  if (way == "module") {
    CHECK(cuLibraryGetModule(&module, made.library));
    CHECK(cuModuleGetFunction(&made.function, module, "bump"));
  } else if (way == "listed") {
    CUfunction functions[2];
    CHECK(cuLibraryGetModule(&module, made.library));
    CHECK(cuModuleEnumerateFunctions(functions, 2, module));
    const char* name;
    CHECK(cuFuncGetName(&name, functions[0]));
    made.function = functions[std::strcmp(name, "bump") == 0 ? 0 : 1];
  } else {
    CHECK(cuLibraryGetKernel(&kernel, made.library, way == "parent" ? "beside" : "bump"));
    if (way == "kernel") {
      made.function = reinterpret_cast<CUfunction>(kernel);
    } else {
      CHECK(cuKernelGetFunction(&made.function, kernel));
    }
    if (way == "parent") {
      CHECK(cuFuncGetModule(&module, made.function));
      CHECK(cuModuleGetFunction(&made.function, module, "bump"));
    }
  }
  return made;
}

void unload(const Code& made) {
  CHECK(made.library != nullptr ? cuLibraryUnload(made.library) : cuModuleUnload(made.module));
}

void launch(const Code& made, bool is_long, unsigned by, CUstream stream) {
  unsigned more = 1000;
  void* shorter[] = {&tiny::g_cell, &by};
  void* longer[] = {&more, &by, &tiny::g_cell};
  CHECK(cuLaunchKernel(made.function, 1, 1, 1, 1, 1, 1, 0, stream, is_long ? longer : shorter,
                       nullptr));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  tiny::start();
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  for (int life = 0; life < 4; ++life) {
    const bool is_long = life % 2 != 0;
    const Code made = load(arguments[1], is_long);
    for (unsigned round = 0; round < 4; ++round) {
      for (unsigned by = 1; by <= 3; ++by) launch(made, is_long, by + round, stream);
      CHECK(cuStreamSynchronize(stream));
    }
    launch(made, is_long, 7, stream);  // waits when the code goes
    unload(made);
    std::printf("%d: %u\n", life, tiny::cell());
  }
}
