#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the root of the CUDA toolkit to build against: CUDA_HOME, the newest /usr/local/cuda*, nvcc on PATH, or the
# tree that tools/setup.sh assembled in build/toolkit. Exits 1 with one line on stderr when there is none.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)

# A root needs headers of CUDA 13 and a compiler.
usable() {
  [ -n "$1" ] && [ -x "$1/bin/nvcc" ] && [ -r "$1/include/cuda.h" ] &&
    awk '$2 == "CUDA_VERSION" { exit !($3 >= 13000) }' "$1/include/cuda.h"
}

if [ -n "${CUDA_HOME:-}" ]; then
  if usable "$CUDA_HOME"; then echo "$CUDA_HOME"; exit 0; fi
  echo "find_cuda: CUDA_HOME=$CUDA_HOME has no nvcc and cuda.h of CUDA 13 or newer; looking elsewhere" >&2
fi
on_path=$(command -v nvcc 2>/dev/null || true)
if [ -n "$on_path" ]; then
  on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
fi
# shellcheck disable=SC2012
for root in /usr/local/cuda $(ls -d /usr/local/cuda-* 2>/dev/null | sort -rV) "$on_path" "$top/build/toolkit"; do
  if usable "$root"; then echo "$root"; exit 0; fi
done
echo "find_cuda: no CUDA 13 toolkit in CUDA_HOME, /usr/local/cuda*, PATH or build/toolkit (run tools/setup.sh)" >&2
exit 1
