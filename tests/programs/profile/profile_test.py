#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program whose blocking calls are known under the driver profile and holds the JSON report
against its source: lines, counts, shares; totals against softgpu's counters; the file against the schema.

    profile_test.py CASE --softgpu DIR --shim FILE --schema FILE PROGRAM [ARGUMENTS]

  planted   planted.cpp, with deferral and without, stacks by libunwind and by frame pointers
  stripped  planted.cpp without symbols, with its debug file and without
  plain     plain.c, which loads plugin.cpp and unloads it
  jit       jit.cpp, whose code has its name in a perf map
  endings   planted.cpp ended by _exit and by signals: same exit status, and the report is there
  settings  wrong values are named once with the legal ones
  python    python_host.py, by ctypes: lines, functions and counts
  bindings  python_host.py, by cuda-bindings from PyPI; exit status 77 when that is not to be had
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import Failed, SKIPPED, require  # noqa: E402
from client_runs import BINDINGS, python_with  # noqa: E402
from compare import LONG_DEADLINE_US, Runner  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parent


def marks():
    """Name of each SITE mark -> "file:line"."""
    found = {}
    for path in (*SOURCES.glob("*.c*"), SOURCES / "python_host.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            mark = re.search(r"SITE (\w+)", line)
            if mark and "the lines marked" not in line:
                found[mark[1]] = f"{path.name}:{number}"
    return found


def bucket_floor(bucket):
    return bucket if bucket < 8 else (8 + bucket % 8) << (bucket // 8 - 1)


def check_times(times, calls):
    require(sum(count for _, count in times["histogram"]) == calls, f"histogram is not {calls} calls: {times}")
    if calls:
        require(times["min_ns"] <= times["median_ns"] <= times["p99_ns"] <= times["max_ns"], f"order: {times}")
        first, last = times["histogram"][0][0], times["histogram"][-1][0]
        require(bucket_floor(first) <= times["min_ns"] < bucket_floor(first + 1), f"least bucket: {times}")
        require(bucket_floor(last) <= times["max_ns"] < bucket_floor(last + 1), f"last bucket: {times}")


def validate(report, options):
    schema = json.loads(options.schema.read_text(encoding="utf-8"))
    jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)


class Profile:
    """One finished run: its report, checked for form and sums, and its counters."""

    def __init__(self, options, settings=(), arguments=(), status=0, count=1,
                 has_all_sites=True, is_running=False):
        runner = Runner(options.softgpu, options.shim)
        with tempfile.TemporaryDirectory() as folder:
            extra = {"CAJETA_XPU_DRIVER_SITES": "1", "CAJETA_XPU_DEFER_DEADLINE_US": str(LONG_DEADLINE_US)}
            extra["CAJETA_XPU_REPORT"] = str(pathlib.Path(folder) / "report.%p.json")
            extra.update(settings)
            self.run = runner.run(options.program + list(arguments), True, extra=extra)
            require(self.run.status == status,
                    f"exit status {self.run.status}, not {status}\n{self.run.stderr.decode(errors='replace')}")
            files = sorted(pathlib.Path(folder).glob("report.*"))
            require(len(files) == count, f"{len(files)} files, not {count}: {files}\n{self.run.stderr.decode()}")
            if not files:
                return
            self.report = json.loads(files[0].read_text(encoding="utf-8"))
        validate(self.report, options)
        self.entries = {entry["entry"]: entry for entry in self.report["entries"]}
        # Threads that still call when the process ends are counted at different moments.
        if not is_running:
            self.check_sums(has_all_sites)

    def check_sums(self, has_all_sites):
        launches = self.report["launches"]
        require(launches["total"] == launches["replayed"] + launches["sent_one_by_one"] + launches["pending"],
                f"launches do not add up: {launches}")
        for entry in self.report["entries"]:
            check_times(entry, entry["calls"])
            truth = self.run.counters.get(entry["entry"], 0)
            require(entry["calls"] == truth, f"{entry['entry']}: {entry['calls']} calls, softgpu counted {truth}")
        if self.report["sites"] is None or not has_all_sites:
            return
        for name, entry in self.entries.items():
            calls = sum(site["calls"] for site in self.report["sites"]["list"] if site["entry"] == name)
            time = sum(site["total_ns"] for site in self.report["sites"]["list"] if site["entry"] == name)
            require((calls, time) == (entry["calls"], entry["total_ns"]),
                    f"{name}: sites hold {calls} calls, {time} ns; the entry {entry['calls']}, {entry['total_ns']}")

    def at(self, place, entry):
        """Calls, time and the first site of the entry whose place is this source line."""
        sites = [site for site in self.report["sites"]["list"]
                 if site["entry"] == entry and site["place"].split(" ")[0] == place]
        require(sites, f"no call of {entry} at {place}; places: "
                + ", ".join(f"{site['entry']} {site['place']}" for site in self.report["sites"]["list"]))
        return sum(site["calls"] for site in sites), sum(site["total_ns"] for site in sites), sites[0]


def check_planted(profile, has_symbols=True):
    place = marks()
    expected = [("read_four_bytes", "cuMemcpyDtoH_v2", 40, "Residual::read"), ("hidden_wait", "cuStreamSynchronize", 25, "wait_for"),
                ("free_that_waits", "cuMemFree_v2", 9, "free_memory"), ("poll", "cuStreamQuery", 200, "poll"),
                ("thread_up", "cuMemcpyHtoD_v2", 30, "work"), ("thread_down", "cuMemcpyDtoH_v2", 30, "work")]
    for name, entry, calls, function in expected:
        found, _, site = profile.at(place[name], entry)
        require(found == calls, f"{name}: {found} calls, not {calls}")
        # Without a symbol table there is the name in DWARF, which has no class.
        named = function if has_symbols else function.split("::")[-1]
        require(named in site["place"], f"{name}: {site['place']} does not name {named}")
        require(site["through"] is None, f"{name}: through {site['through']}")
    small = profile.at(place["read_four_bytes"], "cuMemcpyDtoH_v2")[2]
    require((small["bytes"], small["pageable_calls"]) == (160, 40), f"4 bytes of pageable memory each: {small}")
    locked = profile.at(place["thread_down"], "cuMemcpyDtoH_v2")[2]
    require((locked["bytes"], locked["pageable_calls"]) == (30 * 1024, 0), f"page-locked memory: {locked}")
    _, _, hidden = profile.at(place["hidden_wait"], "cuStreamSynchronize")
    require("libprofile_hidden.so" in hidden["place"], f"the library is not named: {hidden['place']}")
    entry = profile.entries["cuMemcpyDtoH_v2"]
    require((entry["bytes"], entry["pageable_calls"], entry["page_locked_calls"]) == (160 + 30 * 1024, 40, 30),
            f"bytes and host memory of both copies: {entry}")
    whole = sum(entry["total_ns"] for entry in profile.report["entries"])
    places = sum(site["total_ns"] for site in profile.report["sites"]["list"])
    require(whole == places, f"places hold {places} ns of {whole}")


def case_planted(options):
    for defer in ("all", "0"):
        for walk in ("auto", "frame-pointers"):
            profile = Profile(options, {"CAJETA_XPU_DEFER": defer, "CAJETA_XPU_SITES_WALK": walk})
            check_planted(profile)
            print(f"planted, DEFER={defer}, stacks by {profile.report['sites']['walk']}: "
                  f"{len(profile.report['sites']['list'])} stacks")
    profile = Profile(options, {"CAJETA_XPU_DRIVER_SITES": "sync,query:100s"}, has_all_sites=False)
    kinds = {site["kind"] for site in profile.report["sites"]["list"]}
    require(kinds == {"sync"}, f"sites of {kinds}, not of sync alone")


def case_stripped(options):
    """The program without symbols: names and lines come from the separate debug file, else there are offsets."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "stripped"
        debug = program.with_suffix(".debug")
        subprocess.run(["objcopy", "--only-keep-debug", options.program[0], debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", options.program[0], program], check=True)
        # The copy finds its library where the original lies.
        os.environ["LD_LIBRARY_PATH"] = str(pathlib.Path(options.program[0]).resolve().parent)
        options.program = [str(program)]
        check_planted(Profile(options), has_symbols=False)
        debug.unlink()
        profile = Profile(options)
        found = {site["place"].split("+")[0] for site in profile.report["sites"]["list"]
                 if site["entry"] == "cuMemcpyDtoH_v2"}
        require(found == {"stripped"}, f"places without any symbols: {found}")
        modules = profile.report["sites"]["modules"]
        require([module["build_id"] for module in modules if module["path"] == str(program)] != [""], "no build-id")


def case_plain(options):
    profile = Profile(options)
    place = marks()
    found, _, site = profile.at(place["read_back"], "cuMemcpyDtoH_v2")
    require(found == 12 and "read_back" in site["place"], f"{found} calls at {site['place']}")
    found, _, site = profile.at(place["plugin_wait"], "cuCtxSynchronize")
    require(found == 5 and "plugin_wait" in site["place"], f"{found} calls at {site['place']}")
    modules = profile.report["sites"]["modules"]
    gone = [module for module in modules if module["unloaded"]]
    require([pathlib.Path(module["path"]).name for module in gone] == [pathlib.Path(options.program[-1]).name],
            f"unloaded: {gone}")
    require(all(module["build_id"] for module in gone), f"no build-id: {gone}")


def case_jit(options):
    for walk in ("auto", "frame-pointers"):
        profile = Profile(options, {"CAJETA_XPU_SITES_WALK": walk})
        pathlib.Path(f"/tmp/perf-{profile.report['process']['pid']}.map").unlink()
        found, _, site = profile.at("py::step:/app/train.py", "cuCtxSynchronize")
        require(found == 11, f"{found} calls, not 11")
        require(site["frames"][0]["module"] is None, f"the code lies in a file: {site['frames'][0]}")
        require(site["frames"][0]["function"] == site["place"], f"frame and place differ: {site}")


def case_endings(options):
    bare = Runner(options.softgpu, options.shim)
    for how, moment in (("_exit", "exit"), ("abort", "signal"), ("fault", "signal"), ("raised_fault", "signal"),
                        ("term", "signal"), ("handled", "exit")):
        status = bare.run(options.program + [how], False).status
        profile = Profile(options, arguments=[how], status=status)
        require(profile.report["written_at"] == moment, f"{how}: written at {profile.report['written_at']}")
        require(profile.entries["cuStreamQuery"]["calls"] == 200, f"{how}: {profile.entries['cuStreamQuery']}")
        if moment == "exit":
            check_planted(profile)
        elif profile.report["sites"]["has_symbols"]:
            raise Failed(f"{how}: symbols were read in a signal handler")
        text = Profile(options, {"CAJETA_XPU_REPORT": "stderr"}, arguments=[how], status=status, count=0)
        require(text.run.stderr.decode().count("CALLS THAT OBSERVE") == 1, f"{how}: not one text report")
    for how, settings in (("asked", {"CAJETA_XPU_REPORT_SIGNAL": "USR1"}), ("waited", {"CAJETA_XPU_REPORT_EVERY": "1"})):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "snapshot.json")
            settings["CAJETA_XPU_REPORT"] = path
            Profile(options, settings, arguments=[how, path], status=-9, count=0)
            report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            validate(report, options)
            require(report["written_at"] == "snapshot", f"{how}: written at {report['written_at']}")
    print("endings: every exit status as bare")


def case_settings(options):
    for value in ("2", "sync:50", "sync:50us,", "sink:50us", "sync:us", "sync:1h", ":5us"):
        profile = Profile(options, {"CAJETA_XPU_DRIVER_SITES": value}, count=0)
        lines = [line for line in profile.run.stderr.decode().splitlines() if "DRIVER_SITES" in line]
        require(len(lines) == 1 and "sync, copy, query, alloc, other, all" in lines[0], f"{value}: {lines}")
    profile = Profile(options, {"CAJETA_XPU_DRIVER_SITES": "0", "CAJETA_XPU_DRIVER_PROFILE": "1"})
    require(profile.report["sites"] is None, "sites though they are off")


def check_python(profile, expected):
    """`expected`: (mark, entry, calls, last part of the function's name)."""
    place = marks()
    python = profile.report["sites"]["python"]
    require(python["is_read"], f"frames were not read: {python}")
    for name, entry, calls, function in expected:
        found, _, site = profile.at(place[name], entry)
        require(found == calls, f"{name}: {found} calls, not {calls}")
        require(site["python"]["function"].split(".")[-1] == function, f"{name}: {site['python']}, not {function}")
        file, line = place[name].split(":")
        require(pathlib.Path(site["python"]["file"]).resolve() == SOURCES / file and site["python"]["line"] == int(line),
                f"{name}: {site['python']}")


def case_python(options):
    options.program.insert(0, sys.executable)
    # From 3.12 on a comprehension is part of the function around it.
    inner = "<listcomp>" if sys.version_info < (3, 12) else "calls"
    wait, copy = "cuCtxSynchronize", "cuMemcpyDtoH_v2"
    for walk in ("auto", "frame-pointers"):
        profile = Profile(options, {"CAJETA_XPU_SITES_WALK": walk}, ["calls"])
        check_python(profile, [
            ("python_first", copy, 12, "converged"), ("python_second", copy, 12, "converged"),
            ("python_free", "cuMemFree_v2", 1, "close"), ("python_generator", wait, 7, "steps"),
            ("python_coroutine", wait, 6, "step"), ("python_spread", "cuStreamSynchronize", 1, "many_lines"),
            ("python_thread", "cuMemcpyHtoD_v2", 30, "in_thread"), ("python_unicode", wait, 1, "naïve_wait"),
            ("python_lambda", wait, 5, "<lambda>"), ("python_comprehension", "cuStreamQuery", 9, inner),
            ("python_holding", wait, 4, "calls")])
        cells = {(site["python"]["file"], site["python"]["line"], site["calls"])
                 for site in profile.report["sites"]["list"] if site["python"]["file"].startswith("<cell")}
        require(cells == {(f"<cell {n}>", n + 1, 1) for n in range(20)}, f"code that came and went: {sorted(cells)}")
    for _ in range(5):
        Profile(options, arguments=["daemon"], count=1, has_all_sites=False, is_running=True)


def case_bindings(options):
    options.program.insert(0, python_with(options.venv, "cuda-bindings", BINDINGS))
    if options.program[0] is None:
        sys.exit(SKIPPED)
    check_python(Profile(options, arguments=["bindings"]), [
        ("bindings_wait", "cuCtxSynchronize", 13, "wait_for_all"), ("bindings_poll", "cuStreamQuery", 8, "poll")])


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--softgpu", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--schema", type=pathlib.Path, required=True)
    parser.add_argument("--venv", help="Python environment, made when missing")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    try:
        CASES[options.case](options)
    except Failed as failure:
        print(failure)
        return 1
    print(f"{options.case}: as planted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
