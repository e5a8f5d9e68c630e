#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set, or stand still, neither stop a trace nor hold up the program's end."""
import json
import subprocess
import sys

import host_run

# Smaller than what the program launches: a trace that is not carried on drops most of it.
RING = {"CAJETA_PROFILER_GPU_RING": "1024"}


def holds(host, how):
    runs = host.same_as_bare([host.program("stepped_clock"), how], extra=RING, timeout=60)
    host_run.require(runs["bare"].returncode == 0, f"bare: {runs['bare']}")
    if host.cli is None:
        return
    summary = subprocess.run([host.cli, "profile", "summary", "-f", "json", host.path("traced.pftrace")],
                             stdout=subprocess.PIPE, check=True)
    facts = json.loads(summary.stdout)["header"]
    host_run.require(facts["is_complete"] and facts["launches_kept"] > 10_000, f"{how}: {facts}")


def stepped_clock_forward(host):
    holds(host, "forward")


def stepped_clock_back(host):
    holds(host, "back")


def stepped_clock_still(host):
    holds(host, "still")


def stepped_clock_zero(host):
    holds(host, "zero")


if __name__ == "__main__":
    sys.exit(host_run.main(
        [stepped_clock_forward, stepped_clock_back, stepped_clock_still, stepped_clock_zero], __doc__))
