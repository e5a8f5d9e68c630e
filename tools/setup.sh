#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prepares this machine for a build, idempotently: the Debian packages that are missing, and, where no CUDA 13 toolkit
# is found, its compiler, headers and static runtime from PyPI in build/toolkit; and the Python that tests run in, in
# build/python. Changes nothing that is already there.
#   tools/setup.sh            all of it
#   tools/setup.sh --check    change nothing; exit 1 and name what is missing
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
check_only=
case "${1:-}" in
  '') ;;
  --check) check_only=1 ;;
  *) echo "usage: tools/setup.sh [--check]" >&2; exit 2 ;;
esac

# The pinned toolkit; the wheels unpack to one tree shaped like a CUDA_HOME.
cuda_wheels="nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85"

packages="g++ clang clang-format-14 llvm libclang-rt-14-dev meson ninja-build pkg-config binutils python3 python3-jsonschema
  python3-venv util-linux catch2 libbenchmark-dev libcli11-dev libprotozero-dev libspdlog-dev libunwind-dev libzstd-dev
  nlohmann-json3-dev gcc-12-offload-nvptx libgomp-plugin-nvptx1 libx11-6 libjemalloc2"

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# The packages that are not installed, one a line.
missing_packages() {
  for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: packages are left to you"; return 0; }
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  [ -z "$check_only" ] || die "missing Debian packages: $missing"
  if [ "$(id -u)" = 0 ]; then as_root=
  elif sudo -n true 2>/dev/null; then as_root=sudo
  else die "not root, and sudo asks for a password; please run: apt-get install $missing"
  fi
  say "installing $missing"
  $as_root apt-get update -q >&2 || die "apt-get update failed"
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2 ||
    die "apt-get install failed for: $missing"
}

# make_venv FOLDER [OPTION]: a private Python environment, of Debian's Python where there is one. Other ones, of the user
# or of a package manager, may lack what Debian's packages bring, or have other versions of it.
make_venv() {
  [ -x "$top/build/$1/bin/pip" ] && return 0
  [ -z "$check_only" ] || die "no build/$1"
  rm -rf "$top/build/$1"
  base=python3
  [ ! -x /usr/bin/python3 ] || base=/usr/bin/python3
  $base -m venv ${2:+"$2"} "$top/build/$1" >&2 || die "$base -m venv failed"
}

install_toolkit() {
  "$top/tools/find_cuda.sh" >/dev/null 2>&1 && return 0
  [ -z "$check_only" ] || die "no CUDA 13 toolkit (see tools/find_cuda.sh)"
  [ "$(uname -m)" = x86_64 ] || die "no CUDA 13 toolkit; install one and set CUDA_HOME"
  say "no CUDA 13 toolkit here: taking nvcc, headers and static runtime from PyPI into build/toolkit"
  make_venv venv
  # shellcheck disable=SC2086
  "$top/build/venv/bin/pip" install -q --no-deps --only-binary :all: $cuda_wheels >&2 ||
    die "pip could not install the CUDA wheels"
  tree=$(find "$top/build/venv/lib" -maxdepth 4 -type d -path '*/nvidia/cu13' | head -n 1)
  [ -n "$tree" ] || die "the CUDA wheels have an unknown layout (no nvidia/cu13)"
  link_toolkit "$tree"
  "$top/tools/find_cuda.sh" >/dev/null || die "the toolkit from PyPI is not usable"
}

# The wheels lack lib64 and the unversioned names that a linker looks for.
link_toolkit() {
  chmod +x "$1"/bin/* "$1"/nvvm/bin/*
  ln -sfn lib "$1/lib64"
  for library in "$1"/lib/lib*.so.*; do
    [ -e "$library" ] || continue
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
  ln -sfn "${1#"$top/build/"}" "$top/build/toolkit"
}

mkdir -p "$top/build"
install_packages
install_toolkit
make_venv python --system-site-packages
