#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one program under the preload library and judges what it leaves: the look-up log, the exit report, stderr.

    door_test.py MODE --driver DIR --shim FILE [--second FILE] PROGRAM [ARGUMENTS]

  passes    the program's own checks pass
  rows      every look-up of a name that has a row was answered with a wrapper (needs --table), but for --missing look-ups
            by dlsym where nothing of that name was in scope; at least --least look-ups
  reported  the exit report exists, once, and counts three calls of cuCtxSynchronize
  silent    no report and nothing on stderr
  disabled  CAJETA_XPU_DISABLE=1: the driver's own addresses, no report
  twice     a second copy of the library says so in one line and the report is written once
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import Failed, require  # noqa: E402


def run(options, folder, preload, settings):
    env = {
        name: value
        for name, value in os.environ.items()
        # A test's own: what tools/mutants plants, and what the driver lacks.
        if not name.startswith("CAJETA_") or name in ("CAJETA_XPU_MUTANT", "CAJETA_SOFTGPU_MISSING")
    }
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [options.driver, env.get("LD_LIBRARY_PATH", "")]))
    # The preload library stands before the sanitizer's runtime, which is right: it forwards what is not its own.
    env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0"]))
    env["LD_PRELOAD"] = preload
    env["CAJETA_XPU_DRIVER_PROFILE"] = "1"
    env["CAJETA_XPU_REPORT"] = str(folder / "report.%p.json")
    env["CAJETA_XPU_LOG_LOOKUPS"] = str(folder / "lookups")
    env.update(settings)
    return subprocess.run(options.program, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=options.timeout, check=False)


def check_ended(done):
    require(done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}")


def reports(folder):
    return [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("report.*")]


def check_report(folder):
    found = reports(folder)
    require(len(found) == 1, f"{len(found)} reports, not 1")
    calls = {entry["entry"]: entry["calls"] for entry in found[0]["entries"]}
    require(calls.get("cuCtxSynchronize") == 3, f"not 3 calls of cuCtxSynchronize: {calls}")


def rows_of(table):
    """Exported symbols, and for each name that cuGetProcAddress knows the first version it had."""
    symbols, since_of = set(), {}
    for symbol, api, since in re.findall(r"^(?:DRIVER|INTEROP)_ENTRY\((\w+), (\w+), (\d+),", table.read_text(encoding="utf-8"), re.M):
        symbols.add(symbol)
        since_of[api] = min(int(since), since_of.get(api, sys.maxsize))
    return symbols, since_of


def check_rows(options, folder):
    symbols, since_of = rows_of(options.table)
    lookups = answered = without_row = missing = 0
    for line in (folder / "lookups").read_text(encoding="utf-8").splitlines():
        fields = re.fullmatch(r"door=(\w+) name=(\w*)(?: version=(\d+) flags=(\d+))? answer=(\w+)", line)
        require(fields is not None, f"not a line of the look-up log: {line}")
        door, name, version, _, answer = fields.groups()
        lookups += 1
        has_row = name in symbols if door == "dlsym" else since_of.get(name, sys.maxsize) <= int(version)
        if answer == "wrapper":
            answered += 1
        elif not has_row:
            require(answer in ("missing", "generic"), f"slipped past: {line}")
            without_row += 1
        else:
            require(door == "dlsym" and answer == "missing", f"not answered with a wrapper: {line}")
            missing += 1
    print(f"{lookups} look-ups: {answered} wrappers, {without_row} names without a row, {missing} not found")
    require(lookups >= options.least, f"not {options.least} look-ups or more")
    require(missing == options.missing, f"not {options.missing} missing")


def judge(options, folder):
    shim = os.path.abspath(options.shim)
    if options.mode == "passes":
        check_ended(run(options, folder, shim, {}))
    elif options.mode == "rows":
        check_ended(run(options, folder, shim, {}))
        check_rows(options, folder)
    elif options.mode == "reported":
        check_ended(run(options, folder, shim, {}))
        check_report(folder)
    elif options.mode == "silent":
        done = run(options, folder, shim, {})
        check_ended(done)
        require(not reports(folder) and not done.stderr, f"a report or a message: {done.stderr}")
    elif options.mode == "disabled":
        done = run(options, folder, shim, {"CAJETA_XPU_DISABLE": "1", "CAJETA_TEST_ANSWER": "libcuda"})
        check_ended(done)
        require(not reports(folder) and not done.stderr, f"a report or a message: {done.stderr}")
    elif options.mode == "twice":
        second = shutil.copy(shim, folder / "libcajeta_xpu_second.so")
        # Two copies are what the address sanitizer warns of, and what is tried here.
        sanitizer = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_odr_violation=0"]))
        done = run(options, folder, f"{shim} {second}", {"ASAN_OPTIONS": sanitizer})
        check_ended(done)
        check_report(folder)
        lines = done.stderr.splitlines()
        require(len(lines) == 1 and "loaded twice" in lines[0], f"not one line about the second copy: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["passes", "rows", "reported", "silent", "disabled", "twice"])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--missing", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            judge(options, pathlib.Path(folder))
        except Failed as failure:
            print(f"{options.mode} {' '.join(options.program)}: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
