#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the dynamic symbols of the two libraries. The preload library exports exactly the rows of
runtime/driver_entries.def and the doors of libc without a version, and the functions of cajeta/xpu.h under those that
shim/exports.map gives them; it needs nothing but glibc, is bound when it is loaded, and has no planted faults;
softgpu's libcuda exports exactly the rows. Exits 0 and prints one line, or 1 with one line per fault."""
import argparse
import pathlib
import re
import subprocess
import sys

GLIBC = re.compile(r"^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$")

# What stands in front of libc, and the mark that a second copy of the library looks for: never under a version.
DOORS = {"dlsym", "_exit", "_Exit", "sigaltstack", "cajeta_xpu_marker"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports_of(library):
    """Name -> symbol version, which is empty for most."""
    names = {}
    for line in run("nm", "-D", "--defined-only", str(library)).splitlines():
        kind, symbol = line.split()[-2:]
        if kind != "A":  # the version nodes themselves
            name, _, version = symbol.partition("@")
            names[name] = version.strip("@")
    return names


def needed_by(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(library)))


def rows_of(table):
    return set(re.findall(r"^(?:DRIVER|INTEROP)_ENTRY\((\w+),", table.read_text(encoding="utf-8"), re.M))


def versions_in_map(path):
    """Name or pattern -> the version node of the script that makes it global."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.S)
    return {name.strip(): node
            for node, body in re.findall(r"(\S*)\s*\{(.*?)\}", text, re.S)
            for section in re.findall(r"global\s*:(.*?)(?:local\s*:|$)", body, re.S)
            for name in section.split(";") if name.strip()}


def functions_of(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"\b(cajeta_xpu_\w+)\(", text))


def check_api(library, exported, declared, versions, problems):
    """The header, the version script and the library name the same functions, under the same versions."""
    for pattern in sorted(name for name in versions if re.search(r"[*?\[]", name)):
        problems.append(f"the version script's pattern {pattern} exports more than can be checked")
    problems += [f"no version of the version script names {name}" for name in sorted(declared - set(versions))]
    problems += [f"the version script names {name}, which the header does not declare"
                 for name in sorted(set(versions) - declared) if not re.search(r"[*?\[]", name)]
    for name in sorted(declared & set(versions)):
        if name not in exported:
            problems.append(f"{library.name}: does not export {name}")
        elif exported[name] != versions[name]:
            problems.append(f"{library.name}: exports {name} as of {exported[name] or 'no version'}, not {versions[name]}")


def check_loading(library, problems):
    """Nothing is left for the loader to do when a call comes: dlopen may hold its lock then."""
    if not re.search(r"\(FLAGS_1\).*\bNOW\b", run("readelf", "-dW", str(library))):
        problems.append(f"{library.name}: is not linked with -z now")


def check_shim(library, rows, header, export_map, problems):
    exported, declared = exports_of(library), functions_of(header)
    expected = rows | DOORS
    problems += [f"{library.name}: does not export {name}" for name in sorted(expected - set(exported))]
    problems += [f"{library.name}: exports {name}" for name in sorted(set(exported) - expected - declared)]
    problems += [f"{library.name}: exports {name} under a version" for name in sorted(expected & set(exported))
                 if exported[name]]
    check_api(library, exported, declared, versions_in_map(export_map), problems)
    problems += [f"{library.name}: needs {name}, which is not glibc" for name in needed_by(library)
                 if not GLIBC.match(name)]
    check_loading(library, problems)
    if b"CAJETA_XPU_MUTANT" in library.read_bytes():
        problems.append(f"{library.name}: has planted faults (-Dmutants=true)")
    return len(exported)


def check_softgpu(library, rows, problems):
    exported = set(exports_of(library))
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
    parser.add_argument("--header", type=pathlib.Path, default=top / "runtime/include/cajeta/xpu.h")
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("--softgpu", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (arguments.shim or arguments.softgpu):
        parser.error("name a library: --shim or --softgpu")
    rows, problems, counts = rows_of(arguments.table), [], []
    if not rows:
        problems.append(f"{arguments.table}: no rows")
    if arguments.shim:
        counts.append(f"shim {check_shim(arguments.shim, rows, arguments.header, arguments.map, problems)}")
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
