#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the dynamic symbols of the two libraries. The preload library exports exactly the rows of
runtime/driver_entries.def, the other names that shim/exports.map lists, and its own cajeta_ API, needs nothing but
glibc, and has no planted faults; softgpu's libcuda exports exactly the rows. Exits 0 and prints one line, or 1 with
one line per fault."""
import argparse
import pathlib
import re
import subprocess
import sys

GLIBC = re.compile(r"^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports_of(library):
    names = set()
    for line in run("nm", "-D", "--defined-only", str(library)).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":  # the version nodes themselves
            names.add(name.split("@")[0])
    return names


def needed_by(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(library)))


def rows_of(table):
    return set(re.findall(r"^(?:DRIVER|INTEROP)_ENTRY\((\w+),", table.read_text(encoding="utf-8"), re.M))


def names_in_map(path):
    """The names and patterns in the global sections of a version script."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.S)
    names = set()
    for section in re.findall(r"global\s*:(.*?)(?:local\s*:|\})", text, re.S):
        names |= {name.strip() for name in section.split(";") if name.strip()}
    return names


def check_shim(library, rows, export_map, problems):
    exported = exports_of(library)
    listed = names_in_map(export_map)
    patterns = {name for name in listed if re.search(r"[*?\[]", name)}
    for pattern in sorted(patterns - {"cu*", "cu[A-Z]*", "cajeta_*"}):
        problems.append(f"{export_map.name}: the pattern {pattern} exports more than can be checked")
    interposed = listed - patterns
    expected = rows | interposed
    problems += [f"{library.name}: does not export {name}" for name in sorted(expected - exported)]
    problems += [f"{library.name}: exports {name}" for name in sorted(exported - expected)
                 if not name.startswith("cajeta_")]
    problems += [f"{library.name}: needs {name}, which is not glibc" for name in needed_by(library)
                 if not GLIBC.match(name)]
    if b"CAJETA_XPU_MUTANT" in library.read_bytes():
        problems.append(f"{library.name}: has planted faults (-Dmutants=true)")
    return len(exported)


def check_softgpu(library, rows, problems):
    exported = exports_of(library)
    problems += [f"{library.name}: does not export {name}" for name in sorted(rows - exported)]
    problems += [f"{library.name}: exports {name}" for name in sorted(exported - rows)]
    if "[libcuda.so.1]" not in run("readelf", "-dW", str(library)):
        problems.append(f"{library.name}: its soname is not libcuda.so.1")
    return len(exported)


def main():
    top = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=pathlib.Path, default=top / "runtime/driver_entries.def")
    parser.add_argument("--map", type=pathlib.Path, default=top / "shim/exports.map")
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("--softgpu", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (arguments.shim or arguments.softgpu):
        parser.error("name a library: --shim or --softgpu")
    rows, problems, counts = rows_of(arguments.table), [], []
    if not rows:
        problems.append(f"{arguments.table}: no rows")
    if arguments.shim:
        counts.append(f"shim {check_shim(arguments.shim, rows, arguments.map, problems)}")
    if arguments.softgpu:
        counts.append(f"softgpu {check_softgpu(arguments.softgpu, rows, problems)}")
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} faults")
        return 1
    print(f"exports as the table says: {', '.join(counts)}; table {len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
