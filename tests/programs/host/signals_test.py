#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program's signals are its own: what it blocks, waits for, handles or sets to the default comes to it as without us, and
no sample is among it; what libc does by its own two signals works."""
import json
import subprocess
import sys

import host_run


def holds(host, case):
    runs = host.same_as_bare([host.program("signals"), case], timeout=120)
    host_run.require(runs["bare"].returncode == (7 if case == "programs" else 0), f"bare: {runs['bare']}")
    if host.cli is None or case == "programs":  # which ends as another program, whose trace may have taken the file's place
        return
    summary = subprocess.run([host.cli, "profile", "summary", "-f", "json", host.path("traced.pftrace")],
                             stdout=subprocess.PIPE, check=True)
    facts = json.loads(summary.stdout)["header"]
    host_run.require(facts["samples_kept"] > 0, f"the run that was sampled has no samples: {facts}")


def signals_descriptor(host):
    holds(host, "descriptor")


def signals_wait(host):
    holds(host, "wait")


def signals_handlers(host):
    holds(host, "handlers")


def signals_defaults(host):
    holds(host, "defaults")


def signals_cancel(host):
    holds(host, "cancel")


def signals_timer(host):
    holds(host, "timer")


def signals_identity(host):
    holds(host, "identity")


def signals_programs(host):
    holds(host, "programs")


if __name__ == "__main__":
    sys.exit(host_run.main(
        [signals_descriptor, signals_wait, signals_handlers, signals_defaults, signals_cancel, signals_timer, signals_identity,
         signals_programs],
        __doc__))
