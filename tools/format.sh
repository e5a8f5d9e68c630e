#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ and CUDA source in place with clang-format 14; --check only reports. Tables (*.def) are left alone.
# FORMAT_ROOT names another tree, for the test of this script.
set -eu
top=${FORMAT_ROOT:-$(cd "$(dirname "$0")/.." && pwd)}
mode=-i
case "${1:-}" in
  '') ;;
  --check) mode="--dry-run --Werror" ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac

formatter=
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then formatter=$candidate; break; fi
done
[ -n "$formatter" ] || { echo "format: clang-format 14 is not installed" >&2; exit 1; }

cd "$top"
# shellcheck disable=SC2086
find . \( -path './build*' -o -path './.git' \) -prune -o -type f \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 |
  xargs -0 -r "$formatter" --style=file $mode
