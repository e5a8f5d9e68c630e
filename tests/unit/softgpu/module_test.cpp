// SPDX-License-Identifier: Apache-2.0
// Modules, libraries, functions and links through the driver API.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/catch.h"
#include "tests/unit/softgpu/session.h"
#include "tests/unit/softgpu/test_data.h"

namespace {

CUmodule load(const std::string& file) {
  CUmodule module = nullptr;
  REQUIRE_OK(cuModuleLoad(&module, test_data_path(file).c_str()));
  return module;
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  REQUIRE_OK(cuModuleGetFunction(&function, module, name));
  return function;
}

template <class T>
T read_variable(CUmodule module, const char* name) {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  REQUIRE_OK(cuModuleGetGlobal(&address, &size, module, name));
  REQUIRE(size == sizeof(T));
  T value{};
  REQUIRE_OK(cuMemcpyDtoH(&value, address, size));
  return value;
}

const char kBadPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  frobnicate.u32 "
    "1;\n}\n";

// Runs `linked` of linked_a.cu and linked_b.cu: combine(helper(0)) with their own helpers, then the
// shared variable.
void check_linked(CUmodule module) {
  DeviceArray<int> out(2);
  void* params[] = {out.parameter()};
  REQUIRE_OK(
      cuLaunchKernel(function_of(module, "linked"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  CHECK(out.values() == std::vector<int>{100 * 3 + 11, 11});
}

}  // namespace

TEST_CASE("modules load from every kind of image", "[module]") {
  const Session session;
  for (const char* const file :
       {"kernels.ptx", "default.fatbin", "plain.fatbin", "speed.fatbin", "multi.fatbin"}) {
    INFO(file);
    CUmodule module = load(file);
    unsigned count = 0;
    REQUIRE_OK(cuModuleGetFunctionCount(&count, module));
    CHECK(count == 8);
    REQUIRE_OK(cuModuleUnload(module));

    const std::string bytes = read_test_data(file);
    REQUIRE_OK(cuModuleLoadData(&module, bytes.c_str()));
    CHECK(function_of(module, "vector_add") != nullptr);
    REQUIRE_OK(cuModuleUnload(module));
  }
  const std::string fatbin = read_test_data("default.fatbin");
  CUmodule module = nullptr;
  REQUIRE_OK(cuModuleLoadFatBinary(&module, fatbin.data()));
  REQUIRE_OK(cuModuleUnload(module));
}

TEST_CASE("images that cannot be loaded say why", "[module]") {
  const Session session;
  CUmodule module = nullptr;
  CHECK(cuModuleLoad(&module, test_data_path("no such file").c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(cuModuleLoad(&module, nullptr) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(cuModuleLoad(&module, test_data_path("sass.fatbin").c_str()) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cuModuleLoadData(&module, kBadPtx) == CUDA_ERROR_INVALID_PTX);
  CHECK(cuModuleLoadData(&module, ".version 99.0\n.target sm_80\n.address_size 64\n") ==
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(cuModuleLoadData(&module, "this is no code") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(cuModuleLoadData(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuModuleLoadData(nullptr, kBadPtx) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("JIT logs hold the parser's message", "[module]") {
  const Session session;
  char error[256] = "untouched", info[256] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_WALL_TIME,        CU_JIT_OPTIMIZATION_LEVEL};
  const auto fresh_values = [&] {
    return std::vector<void*>{error,   reinterpret_cast<void*>(sizeof(error)),
                              info,    reinterpret_cast<void*>(sizeof(info)),
                              nullptr, reinterpret_cast<void*>(std::size_t{4})};
  };
  std::vector<void*> values = fresh_values();
  CUmodule module = nullptr;
  CHECK(cuModuleLoadDataEx(&module, kBadPtx, 6, options, values.data()) == CUDA_ERROR_INVALID_PTX);
  CHECK(std::string(error).find("frobnicate") != std::string::npos);
  CHECK(std::strlen(error) == reinterpret_cast<std::size_t>(values[1]));
  CHECK(std::string(info).empty());

  values = fresh_values();
  values[1] = reinterpret_cast<void*>(std::size_t{5});
  CHECK(cuModuleLoadDataEx(&module, kBadPtx, 6, options, values.data()) == CUDA_ERROR_INVALID_PTX);
  CHECK(std::strlen(error) == 4);

  values = fresh_values();
  const std::string ptx = read_test_data("kernels.ptx");
  REQUIRE_OK(cuModuleLoadDataEx(&module, ptx.c_str(), 6, options, values.data()));
  CHECK(std::string(error).empty());
  CHECK_FALSE(std::string(info).empty());
  float milliseconds = -1;
  std::memcpy(&milliseconds, &values[4], sizeof(milliseconds));
  CHECK(milliseconds > 0);
  REQUIRE_OK(cuModuleUnload(module));

  CUjit_option unknown[] = {static_cast<CUjit_option>(CU_JIT_NUM_OPTIONS)};
  CHECK(cuModuleLoadDataEx(&module, ptx.c_str(), 1, unknown, values.data()) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuModuleLoadDataEx(&module, ptx.c_str(), 1, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("functions are found by name and die with their module", "[module]") {
  const Session session;
  CUmodule module = load("kernels.ptx");
  const CUfunction function = function_of(module, "vector_add");
  CHECK(function_of(module, "vector_add") == function);
  CUfunction none = nullptr;
  CHECK(cuModuleGetFunction(&none, module, "missing") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetFunction(&none, module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuModuleGetFunction(nullptr, module, "vector_add") == CUDA_ERROR_INVALID_VALUE);

  const char* name = nullptr;
  REQUIRE_OK(cuFuncGetName(&name, function));
  CHECK(std::string(name) == "vector_add");
  CUmodule owner = nullptr;
  REQUIRE_OK(cuFuncGetModule(&owner, function));
  CHECK(owner == module);

  std::vector<CUfunction> all(16);
  REQUIRE_OK(cuModuleEnumerateFunctions(all.data(), 16, module));
  CHECK(all[0] == function);
  CHECK(all[7] != nullptr);
  CHECK(all[8] == nullptr);

  REQUIRE_OK(cuModuleUnload(module));
  CHECK(cuFuncGetName(&name, function) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuModuleGetFunction(&none, module, "vector_add") == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuModuleUnload(nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuModuleUnload(reinterpret_cast<CUmodule>(&module)) == CUDA_ERROR_INVALID_HANDLE);

  // A reload gets the same handles: whoever keeps anything by handle must drop it at unload.
  const CUmodule reloaded = load("kernels.ptx");
  CHECK(reloaded == module);
  CHECK(function_of(reloaded, "vector_add") == function);
  REQUIRE_OK(cuModuleUnload(reloaded));
}

TEST_CASE("functions load lazily", "[module]") {
  const Session session;
  CUmoduleLoadingMode mode{};
  REQUIRE_OK(cuModuleGetLoadingMode(&mode));
  CHECK(mode == CU_MODULE_LAZY_LOADING);
  const CUmodule module = load("kernels.ptx");
  CUfunction functions[8];
  REQUIRE_OK(cuModuleEnumerateFunctions(functions, 8, module));
  CUfunctionLoadingState state{};
  REQUIRE_OK(cuFuncIsLoaded(&state, functions[1]));
  CHECK(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
  REQUIRE_OK(cuFuncLoad(functions[1]));
  REQUIRE_OK(cuFuncIsLoaded(&state, functions[1]));
  CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
  REQUIRE_OK(cuFuncIsLoaded(&state, functions[2]));
  CHECK(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
}

TEST_CASE("variables have their initial values and addresses", "[module]") {
  const Session session;
  const CUmodule module = load("kernels.ptx");
  CHECK(read_variable<int>(module, "counter") == 41);
  CHECK(read_variable<int>(module, "shared_count") == 7);
  struct Table {
    float values[4];
  };
  const Table table = read_variable<Table>(module, "table");
  CHECK(table.values[0] == 1.5f);
  CHECK(table.values[3] == 4.5f);
  CUdeviceptr counter = 0;
  REQUIRE_OK(cuModuleGetGlobal(&counter, nullptr, module, "counter"));
  CHECK(read_variable<CUdeviceptr>(module, "counter_address") == counter);
  CHECK(cuModuleGetGlobal(&counter, nullptr, module, "missing") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetGlobal(&counter, nullptr, module, nullptr) == CUDA_ERROR_INVALID_VALUE);

  // Managed memory is where the host can see it.
  CUdeviceptr managed = 0;
  REQUIRE_OK(cuModuleGetGlobal(&managed, nullptr, module, "shared_count"));
  CHECK(*reinterpret_cast<int*>(managed) == 7);
  REQUIRE_OK(cuModuleUnload(module));
  int value = 0;
  CHECK(cuMemcpyDtoH(&value, counter, sizeof(value)) != CUDA_SUCCESS);
}

TEST_CASE("parameter layout ends with INVALID_VALUE", "[module]") {
  const Session session;
  const CUmodule module = load("kernels.ptx");
  const CUfunction function = function_of(module, "mixed_parameters");
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {{0, 1},   {8, 8},  {16, 2},
                                                                     {24, 24}, {48, 8}, {56, 8}};
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE_OK(cuFuncGetParamInfo(function, i, &offset, &size));
    CHECK(offset == expected[i].first);
    CHECK(size == expected[i].second);
  }
  CHECK(cuFuncGetParamInfo(function, expected.size(), &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuFuncGetParamInfo(function, 0, nullptr, &size) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuFuncGetParamInfo(function, 0, &offset, nullptr));
  CHECK(cuFuncGetParamInfo(function_of(module, "nothing"), 0, &offset, &size) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("function attributes", "[module]") {
  const Session session;
  const CUmodule module = load("kernels.ptx");
  const auto get = [](CUfunction function, CUfunction_attribute attribute) {
    int value = -1;
    REQUIRE_OK(cuFuncGetAttribute(&value, attribute, function));
    return value;
  };
  const CUfunction reverse = function_of(module, "reverse_block");
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 256);
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 49152 - 256);
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 80);
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_NUM_REGS) > 0);
  CHECK(get(function_of(module, "bounded"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 64);

  constexpr CUfunction_attribute kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  REQUIRE_OK(cuFuncSetAttribute(reverse, kDynamic, 100000));
  CHECK(get(reverse, kDynamic) == 100000);
  CHECK(cuFuncSetAttribute(reverse, kDynamic, 163 * 1024 - 255) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuFuncSetAttribute(reverse, kDynamic, 163 * 1024 - 256));
  CHECK(cuFuncSetAttribute(reverse, kDynamic, -1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_NUM_REGS, 3) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  CHECK(get(reverse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == 50);
  REQUIRE_OK(cuFuncSetCacheConfig(reverse, CU_FUNC_CACHE_PREFER_L1));
  CHECK(cuFuncSetCacheConfig(reverse, static_cast<CUfunc_cache>(9)) == CUDA_ERROR_INVALID_VALUE);
  int value = 0;
  CHECK(cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(99), reverse) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cuFuncGetAttribute(&value, kDynamic, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a library's kernels work in every context", "[library]") {
  const Session session;
  CUlibrary library = nullptr;
  const std::string ptx = read_test_data("kernels.ptx");
  REQUIRE_OK(cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  REQUIRE_OK(cuLibraryGetKernelCount(&count, library));
  CHECK(count == 8);
  CUkernel kernel = nullptr, all[8] = {};
  REQUIRE_OK(cuLibraryGetKernel(&kernel, library, "read_variables"));
  CHECK(cuLibraryGetKernel(&kernel, library, "missing") == CUDA_ERROR_NOT_FOUND);
  REQUIRE_OK(cuLibraryEnumerateKernels(all, 8, library));
  CHECK(std::count(std::begin(all), std::end(all), kernel) == 1);
  const char* name = nullptr;
  REQUIRE_OK(cuKernelGetName(&name, kernel));
  CHECK(std::string(name) == "read_variables");
  CUlibrary owner = nullptr;
  REQUIRE_OK(cuKernelGetLibrary(&owner, kernel));
  CHECK(owner == library);
  std::size_t offset = 1, size = 0;
  REQUIRE_OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
  CHECK(offset == 0);
  CHECK(size == 8);

  std::map<CUcontext, CUfunction> instances;
  CUdeviceptr first_counter = 0, second_counter = 0, managed = 0;
  const auto run = [&](CUdeviceptr* counter) {
    CUcontext current = nullptr;
    REQUIRE_OK(cuCtxGetCurrent(&current));
    DeviceArray<float> out(5);
    void* params[] = {out.parameter()};
    // A CUkernel may stand where a CUfunction is asked for.
    REQUIRE_OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                              params, nullptr));
    CHECK(out.values() == std::vector<float>{42, 1.5f, 2.5f, 3.5f, 4.5f});
    REQUIRE_OK(cuKernelGetFunction(&instances[current], kernel));
    REQUIRE_OK(cuLibraryGetGlobal(counter, nullptr, library, "counter"));
  };
  run(&first_counter);
  {
    const Session other;
    run(&second_counter);
    CHECK(instances.size() == 2);
    CHECK(instances[session.context()] != instances[other.context()]);
    CHECK(first_counter != second_counter);
    // A function belongs to one context.
    CHECK(cuLaunchKernel(instances[session.context()], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                         nullptr) == CUDA_ERROR_INVALID_HANDLE);
  }
  REQUIRE_OK(cuLibraryGetManaged(&managed, nullptr, library, "shared_count"));
  CHECK(cuLibraryGetManaged(&managed, nullptr, library, "counter") == CUDA_ERROR_NOT_FOUND);
  CUmodule module = nullptr;
  REQUIRE_OK(cuLibraryGetModule(&module, library));
  CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  void* unified = nullptr;
  CHECK(cuLibraryGetUnifiedFunction(&unified, library, "vector_add") == CUDA_ERROR_NOT_FOUND);

  REQUIRE_OK(cuLibraryUnload(library));
  CHECK(cuLibraryUnload(library) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuKernelGetName(&name, kernel) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuFuncGetName(&name, instances[session.context()]) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a kernel's attributes are its instances'", "[library]") {
  const Session session;
  CUlibrary library = nullptr;
  REQUIRE_OK(cuLibraryLoadFromFile(&library, test_data_path("default.fatbin").c_str(), nullptr,
                                   nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  REQUIRE_OK(cuLibraryGetKernel(&kernel, library, "reverse_block"));
  constexpr CUfunction_attribute kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  int value = 0;
  REQUIRE_OK(cuKernelSetAttribute(kDynamic, 60000, kernel, session.device()));
  REQUIRE_OK(cuKernelGetAttribute(&value, kDynamic, kernel, session.device()));
  CHECK(value == 60000);
  CUfunction function = nullptr;
  REQUIRE_OK(cuKernelGetFunction(&function, kernel));
  REQUIRE_OK(cuFuncGetAttribute(&value, kDynamic, function));
  CHECK(value == 60000);
  REQUIRE_OK(cuKernelSetAttribute(kDynamic, 70000, kernel, session.device()));
  REQUIRE_OK(cuFuncGetAttribute(&value, kDynamic, function));
  CHECK(value == 70000);
  CHECK(cuKernelSetAttribute(kDynamic, 60000, kernel, 99) == CUDA_ERROR_INVALID_DEVICE);
  REQUIRE_OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED, session.device()));
  REQUIRE_OK(cuLibraryUnload(library));

  CUlibraryOption preserved[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  CHECK(cuLibraryLoadFromFile(&library, test_data_path("default.fatbin").c_str(), nullptr, nullptr,
                              0, preserved, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("relocatable modules are linked", "[link]") {
  const Session session;
  const std::string first = read_test_data("linked_a.ptx"), second = read_test_data("linked_b.ptx");
  CUlinkState link = nullptr;
  REQUIRE_OK(cuLinkCreate(0, nullptr, nullptr, &link));
  REQUIRE_OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(first.c_str()),
                           first.size() + 1, "linked_a", 0, nullptr, nullptr));
  REQUIRE_OK(cuLinkAddFile(link, CU_JIT_INPUT_FATBINARY, test_data_path("linked_b.fatbin").c_str(),
                           0, nullptr, nullptr));
  void* image = nullptr;
  std::size_t size = 0;
  REQUIRE_OK(cuLinkComplete(link, &image, &size));
  CHECK(size > 0);
  CUmodule module = nullptr;
  REQUIRE_OK(cuModuleLoadData(&module, image));
  REQUIRE_OK(cuLinkDestroy(link));
  CHECK(cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);
  check_linked(module);
  REQUIRE_OK(cuModuleUnload(module));

  SECTION("what nvcc -rdc registers is linked when it is loaded") {
    const std::string a = read_test_data("linked_a.fatbin"), b = read_test_data("linked_b.fatbin");
    const std::string sass = read_test_data("sass.fatbin");
    const void* const list[] = {a.data(), b.data(), nullptr};
    struct {
      unsigned magic = 0x466243b1, version = 2;
      const void* fatbin;
      const void* const* fatbins;
    } wrapper{.fatbin = sass.data(), .fatbins = list};
    REQUIRE_OK(cuModuleLoadData(&module, &wrapper));
    check_linked(module);
  }
}

TEST_CASE("private symbols of the same name stay apart and weak ones become one", "[link]") {
  const Session session;
  // Both modules have their own `state` and `helper`, and offer `pick` weakly; `twice` calls
  // across.
  const std::string header = ".version 7.0\n.target sm_80\n.address_size 64\n";
  const std::string weak_pick = ".weak .func (.param .b32 r) pick() { .reg .b32 %v; mov.u32 %v, ";
  const std::string first = header + R"(
    .extern .func (.param .b32 r) twice(.param .b32 v);
    .global .u32 state = 5; // its own /* not a comment start
    .func (.param .b32 r) helper() { .reg .b32 %v; ld.global.u32 %v, [state]; st.param.b32 [r], %v; ret; }
    )" + weak_pick + R"(1; st.param.b32 [r], %v; ret; }
    .visible .entry run(.param .u64 out) {
      .reg .b64 %p; .reg .b32 %v;
      ld.param.u64 %p, [out];
      { .param .b32 ret0; call (ret0), helper, (); ld.param.b32 %v, [ret0]; }
      st.global.u32 [%p], %v;
      { .param .b32 a; .param .b32 ret0; st.param.b32 [a], %v; call (ret0), twice, (a); ld.param.b32 %v, [ret0]; }
      st.global.u32 [%p+4], %v;
      { .param .b32 ret0; call (ret0), pick, (); ld.param.b32 %v, [ret0]; }
      st.global.u32 [%p+8], %v;
      ret;
    })";
  const std::string second = header + R"(
    .global .u32 state = 70;
    .func (.param .b32 r) helper() { .reg .b32 %v; ld.global.u32 %v, [state]; st.param.b32 [r], %v; ret; }
    )" + weak_pick + R"(2; st.param.b32 [r], %v; ret; }
    .visible .func (.param .b32 r) twice(.param .b32 v) {
      .reg .b32 %v, %w;
      { .param .b32 ret0; call (ret0), helper, (); ld.param.b32 %w, [ret0]; }
      ld.param.b32 %v, [v];
      mad.lo.u32 %v, %v, 2, %w;
      st.param.b32 [r], %v;
      ret;
    })";
  CUlinkState link = nullptr;
  REQUIRE_OK(cuLinkCreate(0, nullptr, nullptr, &link));
  for (const std::string& ptx : {first, second}) {
    REQUIRE_OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                             nullptr, 0, nullptr, nullptr));
  }
  void* image = nullptr;
  std::size_t size = 0;
  REQUIRE_OK(cuLinkComplete(link, &image, &size));
  CUmodule module = nullptr;
  REQUIRE_OK(cuModuleLoadData(&module, image));
  REQUIRE_OK(cuLinkDestroy(link));
  DeviceArray<int> out(3);
  void* params[] = {out.parameter()};
  REQUIRE_OK(
      cuLaunchKernel(function_of(module, "run"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  CHECK(out.values() == std::vector<int>{5, 80, 1});
}

TEST_CASE("links that fail name the symbol", "[link]") {
  const Session session;
  const std::string first = read_test_data("linked_a.ptx"), second = read_test_data("linked_b.ptx");
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUlinkState link = nullptr;
  REQUIRE_OK(cuLinkCreate(2, options, values, &link));
  const auto add = [&](const std::string& ptx) {
    REQUIRE_OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                             nullptr, 0, nullptr, nullptr));
  };
  void* image = nullptr;
  std::size_t size = 0;
  SECTION("defined nowhere") {
    add(first);
    add("\n.version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 exchanged;\n");
    CHECK(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS);
    CHECK(std::string(log).find("combine") != std::string::npos);
    CHECK(std::string(log).find("Undefined") != std::string::npos);
  }
  SECTION("defined twice") {
    add(second);
    add(second);
    CHECK(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS);
    CHECK(std::string(log).find("Multiple definition") != std::string::npos);
  }
  SECTION("not PTX") {
    const std::string sass = read_test_data("sass.fatbin");
    CHECK(cuLinkAddData(link, CU_JIT_INPUT_FATBINARY, const_cast<char*>(sass.data()), sass.size(),
                        nullptr, 0, nullptr, nullptr) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(std::string(log).find("PTX") != std::string::npos);
    CHECK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, test_data_path("sass.fatbin").c_str(), 0,
                        nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuLinkComplete(link, &image, &size) == CUDA_ERROR_INVALID_VALUE);
  }
  REQUIRE_OK(cuLinkDestroy(link));
}
