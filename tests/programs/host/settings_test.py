#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that write over their arguments and their environment, change their folder, or end their first thread, once
CUDA has started: the settings are those of the start, and the files are where and what they were to be."""

import json
import os
import sys

from host_run import main, require

EXTRA = {"CAJETA_XPU_REPORT": "report-%e-%r.json", "CAJETA_PROFILER_OUT": "trace-%e-%r.pftrace", "RANK": "7"}


def run(host, what, **extra):
    host.same_as_bare([host.program("settings"), what, "and", "more"], extra=dict(EXTRA, **extra), timeout=60)
    report, trace = host.path("report-settings-7.json"), host.path("trace-settings-7.pftrace")
    require(os.path.exists(report) and os.path.exists(trace), f"no report or trace: {os.listdir(host.folder)}")
    require(os.path.getsize(trace) > 0, "the trace is empty")
    with open(report, encoding="utf-8") as file:
        report = json.load(file)
    process = report["process"]
    require(process["executable"] == "settings", f"executable: {process}")
    require(process["rank"] in (7, "7"), f"rank: {process}")
    require(EXTRA["CAJETA_XPU_REPORT"] in str(report), f"the settings of the start are not in the report: {report}")
    return process


def program_writes_title(host):
    process = run(host, "title")
    require("settings title and more" in process["command"], f"command: {process}")


def program_has_title_before(host):
    run(host, "before")


def program_wipes_environment(host):
    run(host, "wipe")


def program_clears_environment(host):
    run(host, "clear")
    run(host, "unset")


def program_changes_folder(host):
    run(host, "folder")


def program_grows_environment(host):
    run(host, "grow", CAJETA_XPU_REPORT_EVERY="1", CAJETA_XPU_REPORT_SIGNAL="USR1")


def program_ends_first_thread(host):
    run(host, "leader")


if __name__ == "__main__":
    sys.exit(
        main(
            [
                program_writes_title,
                program_has_title_before,
                program_wipes_environment,
                program_clears_environment,
                program_changes_folder,
                program_grows_environment,
                program_ends_first_thread,
            ],
            __doc__,
        )
    )
