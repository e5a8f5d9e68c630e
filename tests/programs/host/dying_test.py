#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that a signal ends has the status that it has without the library, and its report is whole."""

import json
import os
import shutil
import signal
import subprocess

from host_run import SHIMMED, main, require

KINDS = {
    "small": -signal.SIGTERM, "small_exit": 7, "alternative_abort": -signal.SIGABRT,
    "alternative_term": -signal.SIGTERM, "chain_number": -signal.SIGTERM, "chain_info": -signal.SIGTERM,
    "chain_fault": -signal.SIGSEGV, "trap": -signal.SIGSYS, "memory_error": -signal.SIGBUS,
    "ppoll": -signal.SIGTERM, "fault": -signal.SIGSEGV, "twice": -signal.SIGTERM, "reset": -signal.SIGTERM,
    "vfork": -signal.SIGTERM,
}


def dies(host, kind, command=None, status=None):
    """As bare in each mode; with the profile, the report is there, of a signal or of the end."""
    if host.cli is None:
        return "a sanitizer takes the signals, and most of a small stack"
    command = command or [host.program("dying"), kind]
    report = host.path("report.json")
    for name in ("stderr", report):
        runs = host.same_as_bare(command, extra={"CAJETA_XPU_REPORT": name})  # text report
        require(runs["bare"].returncode == (KINDS[kind] if status is None else status), f"bare: {runs['bare']}")
    if kind != "reset":  # which took our handler away
        with open(report, encoding="utf-8") as file:
            written_at = json.load(file)["written_at"]
        require(written_at == ("exit" if kind == "small_exit" else "signal"), f"written at {written_at}")
    require(not [name for name in os.listdir(host.folder) if "tmp" in name], f"{os.listdir(host.folder)}")
    text = runs["profiled"].stderr
    require(text == b"" or b"CALLS THAT OBSERVE" not in text, f"the report went to stderr: {text}")
    return None


def dying_case(kind):
    def case(host):
        return dies(host, kind)

    case.__name__ = f"dying_{kind}"
    return case


def dying_rust(host):
    """The overflow handler of Rust's runtime, on a stack of its own, ends in abort()."""
    compiler = shutil.which("rustc")
    if compiler is None:
        return "no rustc"
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "overflow.rs")
    built = subprocess.run([compiler, "-O", source, "-L", host.softgpu, "-o", host.path("overflow")],
                           capture_output=True, check=False)
    if built.returncode != 0:
        return f"rustc: {built.stderr.decode(errors='replace')[-300:]}"
    return dies(host, "rust", [host.path("overflow")], -signal.SIGABRT)


def whole_report(folder):
    """The one file of the folder, if any."""
    names = os.listdir(folder)
    require(len(names) <= 1 and all(name == "r.json" for name in names), f"left behind: {names}")
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)
    return None


def dying_while_exiting(host):
    for i in range(10):
        folder = host.path(f"out{i}")
        os.mkdir(folder)
        run = host.run([host.program("dying"), "exiting", folder], "profiled",
                       {"CAJETA_XPU_REPORT": folder + "/r.json"})
        require(run.returncode in (0, -signal.SIGTERM) and run.stderr == b"", f"{run}")
        require(whole_report(folder)["written_at"] == "exit", f"{folder}")


def dying_in_snapshot(host):
    for i in range(10):
        folder = host.path(f"out{i}")
        os.mkdir(folder)
        run = host.run([host.program("dying"), "snapshot", folder], "profiled",
                       {"CAJETA_XPU_REPORT": folder + "/r.json", "CAJETA_XPU_REPORT_SIGNAL": "USR1"})
        require(run.returncode == -signal.SIGTERM and run.stderr == b"", f"{run}")
        require(whole_report(folder)["written_at"] == "signal", f"{folder}")


def dying_first_process(host):
    """The first process of a container is not killed by what it does not handle, and ends at once when it ends."""
    if host.cli is None:
        return "a sanitizer takes the signals"
    prefix = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode:
        return "no namespaces here"
    command = prefix + [host.program("dying")]
    for kind in ("ppoll", "fault", "plain"):
        host.same_as_bare(command + [kind], extra={"CAJETA_XPU_REPORT": "none"}, timeout=30)
    return None


if __name__ == "__main__":
    raise SystemExit(main([dying_case(kind) for kind in KINDS] + [
        dying_rust, dying_while_exiting, dying_in_snapshot, dying_first_process], __doc__))
