#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library was told, and what the process is called, is what it was started with: whatever the program does to
its environment, its arguments, its folder or its root, before or after its first call."""

import json
import os

from host_run import Host, main, require

PROFILE = {"CAJETA_XPU_DRIVER_PROFILE": "1", "CAJETA_XPU_DEFER": "all"}


def run(host, when, what, mode="preloaded", extra=None, folder=None, status=0, output=b"101\n"):
    done = host.run([host.program("environment"), when, what], mode, extra, cwd=folder or host.folder)
    require((done.returncode, done.stdout) == (status, output),
            f"{mode} {when} {what}: {done.returncode} {done.stdout} {done.stderr.decode(errors='replace')}")
    return done


def reported(host, when, what, name, pattern, folder=None):
    """The report of a run with CAJETA_XPU_REPORT=pattern.json must be at `name`, and say what was started."""
    extra = {**PROFILE, "CAJETA_XPU_REPORT": f"{pattern}.json", "OMPI_COMM_WORLD_RANK": "3"}
    run(host, when, what, extra=extra, folder=folder)
    require(os.path.exists(name), f"{when} {what}: no {name}; there are {sorted(os.listdir(host.folder))}")
    with open(name, encoding="utf-8") as file:
        process = json.load(file)["process"]
    require(process["executable"] == "environment", f"{when} {what}: {process}")
    require(process["command"].endswith(f"environment {when} {what}"), f"{when} {what}: {process}")
    require(process["rank"] == "3", f"{when} {what}: {process}")
    require(process["settings"]["REPORT"] == f"{pattern}.json", f"{when} {what}: {process}")
    os.remove(name)


def environment_overwritten(host: Host):
    """Titles over environment and arguments, with the environment moved away, or just lost."""
    for when in ("before", "after"):
        for what in ("title", "smash"):
            host.same_as_bare([host.program("environment"), when, what])
            reported(host, when, what, host.path("environment.3.json"), "%e.%r")
    host.same_as_bare([host.program("environment"), "after", "clear"])
    reported(host, "after", "clear", host.path("environment.3.json"), host.path("%e.%r"))


def environment_by_program(host: Host):
    """A program may still choose before its first call; what it sets later, or clears before, is as it says."""
    run(host, "before", "set", extra={**PROFILE, "CAJETA_XPU_REPORT": "told.json"})
    require(os.path.exists(host.path("set.json")) and not os.path.exists(host.path("told.json")), "set before")
    os.remove(host.path("set.json"))
    run(host, "after", "set", extra={**PROFILE, "CAJETA_XPU_REPORT": "told.json"})
    require(os.path.exists(host.path("told.json")) and not os.path.exists(host.path("set.json")), "set after")
    os.remove(host.path("told.json"))
    run(host, "before", "clear", extra={**PROFILE, "CAJETA_XPU_REPORT": "told.json"})
    require(not os.path.exists(host.path("told.json")), "cleared before")


def environment_folders(host: Host):
    """Relative paths are meant where the program was started."""
    odd = host.path("odd 100%p %%")
    os.mkdir(odd)
    for when in ("before", "after"):
        for folder in (host.folder, odd):
            reported(host, when, "chdir", os.path.join(folder, "r.json"), "r", folder)
            extra = {"CAJETA_PROFILER_OUT": "t.pftrace", "CAJETA_XPU_LOG_LOOKUPS": "lookups"}
            run(host, when, "chdir", "traced", extra, folder)
            require(os.path.getsize(os.path.join(folder, "t.pftrace")) > 0, f"{when} {folder}: no trace")
            os.remove(os.path.join(folder, "t.pftrace"))


def environment_out_of_reach(host: Host):
    """What cannot be written any more is said once, and changes nothing else."""
    for what in ("rename", "chroot"):
        folder = host.path(what)
        os.mkdir(folder)
        extra = {**PROFILE, "CAJETA_XPU_REPORT": "r.json"}
        done = host.run([host.program("environment"), "after", what], "preloaded", extra, cwd=folder)
        if done.returncode == 77:
            return "chroot is forbidden here"
        require((done.returncode, done.stdout) == (0, b"101\n"), f"{what}: {done}")
        require(done.stderr.count(b"cannot write") == 1, f"{what}: {done.stderr.decode()}")
    return None


def environment_race(host: Host):
    """Other threads, and the program itself, change the environment all the time: nothing of ours looks at it."""
    command = [host.program("environment")]
    for _ in range(3):
        for mode in ("preloaded", "deferred", "profiled"):
            done = host.run(command + ["after", "race"], mode)
            require(done.returncode == 0, f"race: {mode}: {done}")
    asked = {**PROFILE, "CAJETA_XPU_REPORT_SIGNAL": "URG"}
    run(host, "after", "snapshots", "profiled", asked)


def environment_quiet(host: Host):
    """A wrong value is told with the first call, and not where there is none."""
    wrong = {"CAJETA_XPU_DEFER": "al"}
    done = host.run(["/bin/true"], "preloaded", wrong)
    require((done.returncode, done.stderr) == (0, b""), f"true: {done}")
    done = run(host, "after", "nothing", extra=wrong)
    require(done.stderr.count(b"CAJETA_XPU_DEFER=al is not understood") == 1, done.stderr.decode())


CASES = [environment_overwritten, environment_by_program, environment_folders, environment_out_of_reach, environment_race, environment_quiet]

if __name__ == "__main__":
    raise SystemExit(main(CASES, __doc__))
