// SPDX-License-Identifier: Apache-2.0
// A small host for life_test.py. `idle` never calls CUDA and prints how many threads it has;
// `plugin FILE` loads, uses and unloads a plugin again and again; `driver` does so with libcuda
// itself.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern "C" const char kScenarioPtx[];

namespace {

void require(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// A program linked to libcuda that could call it, and does not.
void idle() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  std::printf("threads %td\n", std::distance(begin(tasks), end(tasks)));
}

struct Session {
  Session() {
    require(cuInit(0) == CUDA_SUCCESS, "cuInit");
    require(cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS, "cuCtxCreate");
    require(cuModuleLoadData(&module, kScenarioPtx) == CUDA_SUCCESS, "cuModuleLoadData");
    require(cuModuleGetFunction(&affine, module, "affine") == CUDA_SUCCESS, "cuModuleGetFunction");
    require(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS, "cuStreamCreate");
    require(cuMemAlloc(&memory, 256) == CUDA_SUCCESS, "cuMemAlloc");
    require(cuMemsetD32(memory, 1, 64) == CUDA_SUCCESS, "cuMemsetD32");
  }
  ~Session() { require(cuCtxDestroy(context) == CUDA_SUCCESS, "cuCtxDestroy"); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void print() const {
    unsigned words[64];
    require(cuStreamSynchronize(stream) == CUDA_SUCCESS, "cuStreamSynchronize");
    require(cuMemcpyDtoH(words, memory, sizeof words) == CUDA_SUCCESS, "cuMemcpyDtoH");
    std::printf("words %u %u\n", words[0], words[63]);
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction affine = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

void plugin(const char* file) {
  using Launch = CUresult (*)(CUfunction, CUstream, CUdeviceptr, unsigned);
  const Session session;
  for (unsigned round = 0; round < 8; ++round) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    require(library != nullptr, "dlopen of the plugin");
    auto launch = reinterpret_cast<Launch>(dlsym(library, "plugin_launch"));
    require(launch != nullptr, "plugin_launch");
    for (unsigned i = 0; i < 4; ++i) {
      const CUresult result = launch(session.affine, session.stream, session.memory, round + i);
      require(result == CUDA_SUCCESS, "launch");
    }
    require(dlclose(library) == 0, "dlclose");
    require(round % 2 == 1 || dlopen(file, RTLD_NOW | RTLD_NOLOAD) == nullptr, "it is gone");
    session.print();
  }
}

void driver() {
  for (int round = 0; round < 4; ++round) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    require(library != nullptr, "dlopen of libcuda");
    auto count = reinterpret_cast<CUresult (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    require(count != nullptr, "cuDeviceGetCount");
    {
      const Session session;
      session.print();
    }
    int devices = 0;
    require(count(&devices) == CUDA_SUCCESS && dlclose(library) == 0, "count and dlclose");
    std::printf("devices %d\n", devices);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "";
  if (std::strcmp(what, "idle") == 0) {
    idle();
  } else if (std::strcmp(what, "plugin") == 0 && count == 3) {
    plugin(arguments[2]);
  } else if (std::strcmp(what, "driver") == 0) {
    driver();
  } else {
    std::fprintf(stderr, "usage: host idle | plugin FILE | driver\n");
    return 2;
  }
  return 0;
}
