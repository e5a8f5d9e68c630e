// SPDX-License-Identifier: Apache-2.0
// Expansion of report file names.
#include "profiler/report_path.h"

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "runtime/options.h"

namespace profiler {

bool expand_path(const char* pattern, const PathValues& values, char* path,
                 std::size_t capacity) noexcept {
  char pid[16];
  std::snprintf(pid, sizeof pid, "%d", values.pid);
  std::size_t size = 0;
  for (const char* in = pattern; *in != '\0'; ++in) {
    char literal[3] = {*in, '\0', '\0'};
    const char* piece = literal;
    if (*in == '%' && in[1] != '\0') {
      switch (*++in) {
        case 'p':
          piece = pid;
          break;
        case 'h':
          piece = values.host;
          break;
        case 'r':
          piece = values.rank;
          break;
        case 'e':
          piece = values.executable;
          break;
        case '%':
          break;
        default:
          literal[1] = *in;
          break;
      }
    }
    const std::size_t length = std::strlen(piece);
    if (size + length + 1 > capacity) return false;
    std::memcpy(path + size, piece, length);
    size += length;
  }
  path[size] = '\0';
  return size > 0;
}

bool wants_json(const char* pattern) noexcept {
  return std::string_view(pattern).ends_with(".json");
}

Rank rank_in(const runtime::Environment& environment) noexcept {
  // The names that runtime/process_start.cpp keeps: Open MPI, MPICH and Intel MPI, PMIx, Slurm,
  // torchrun.
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"}) {
    const char* rank = environment.value(name);
    if (rank == nullptr || rank[0] == '\0') continue;
    if (std::strspn(rank, "0123456789") == std::strlen(rank)) return {rank, name};
  }
  return {"0", "none"};
}

Rank rank_of_process() noexcept {
  return rank_in(runtime::process_environment());
}

}  // namespace profiler
