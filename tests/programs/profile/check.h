/* SPDX-License-Identifier: Apache-2.0
   Ends the program with status 2 when a driver call fails. For C and C++. */
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check_result(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, call, (int)result);
  exit(2);
}
#define CHECK(call) check_result((call), #call, __LINE__)
